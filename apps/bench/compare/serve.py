"""`vit serve` compared with other servers, and as immich's machine learning service.

    python apps/bench/compare/serve.py clients --vit build/release/vit --work ~/compare-serve --images FOLDER --random small
    python apps/bench/compare/serve.py mixed --vit build/release/vit --work ~/compare-serve --images FOLDER --random small
    python apps/bench/compare/serve.py library --vit build/release/vit --work ~/compare-serve --images FOLDER --random tiny
    python apps/bench/compare/serve.py immich --vit build/release/vit --work ~/compare-serve --images FOLDER --random tiny

FOLDER holds JPEG files, or .zip files of them. The model is a CLIP of transformers, --model FOLDER, or one with drawn weights and an image
tower of DeiT-Ti (tiny), ViT-S/16 (small) or ViT-B/16 (base) size; every server gets its weights.

clients: eight clients that send one image after the other, on connections that stay, for --seconds each, by turns: `vit serve`, a service of
FastAPI and ONNX Runtime (written below, as such services are), and infinity, whose program --infinity names (PyPI: infinity-emb[server,torch,
vision]); `vit embed` on the same images first. Prints images per second, the median and the 99th percentile of the time of a request, memory
(PSS of all processes, after the run), the time from the start of the program to its first answer, and the least cosine with vit's vectors.
mixed: seven clients that send one image each and pause for --pause seconds, as people do, each from an address of its own, without and with
an eighth that sends batches of --batch images without a pause: the times of the seven, and what the eighth gets.
library: --count images (10,000; the files again and again) through immich's route by eight clients: all are answered, memory does not grow.
immich: /predict compared with what immich's releases compute from the ONNX form of the same weights: Pillow, numpy, tokenizers, ONNX Runtime; ends
with 1 where the cosine of an image or text is not above 0.9999.
"""

import argparse
import base64
import http.client
import io
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
import zipfile
from pathlib import Path

import numpy as np

CLIENTS = 8
# tokenizers.py next to this file has the name of a package that transformers needs.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]
ROOT = Path(__file__).resolve().parents[3]
SIZES = {"tiny": (192, 3), "small": (384, 6), "base": (768, 12)}

SERVICE = '''
import base64, io, sys
import numpy as np, onnxruntime
from fastapi import FastAPI
from PIL import Image
from pydantic import BaseModel
settings = onnxruntime.SessionOptions()
settings.intra_op_num_threads = int(sys.argv[3])
session = onnxruntime.InferenceSession(sys.argv[1], settings, providers=["CPUExecutionProvider"])
mean, std = (np.array(v, np.float32) for v in ((0.48145466, 0.4578275, 0.40821073), (0.26862954, 0.26130258, 0.27577711)))
app = FastAPI()

class Body(BaseModel):
    input: list[str]

def pixels(uri):
    image = Image.open(io.BytesIO(base64.b64decode(uri.partition(",")[2]))).convert("RGB")
    short = min(image.size)
    image = image.resize(tuple(side * 224 // short for side in image.size), Image.Resampling.BICUBIC)
    left, top = (image.width - 224) // 2, (image.height - 224) // 2
    image = image.crop((left, top, left + 224, top + 224))
    return ((np.asarray(image, np.float32) / 255 - mean) / std).transpose(2, 0, 1)

@app.post("/v1/embeddings")
def embeddings(body: Body):
    vectors = session.run(None, {"image": np.stack([pixels(uri) for uri in body.input])})[0]
    return {"data": [{"index": i, "embedding": base64.b64encode(v.tobytes()).decode()} for i, v in enumerate(vectors)]}

if __name__ == "__main__":
    import uvicorn
    uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
'''


# ------------------------------------------------------------------------------------------------- models and images


def random_folder(size, folder):
    import torch
    import transformers
    torch.manual_seed(0)
    width, heads = SIZES[size]
    vision = {"hidden_size": width, "intermediate_size": 4 * width, "num_attention_heads": heads, "patch_size": 16}
    text = {"vocab_size": 714, "hidden_size": 192, "intermediate_size": 768, "num_attention_heads": 3, "num_hidden_layers": 6, "bos_token_id": 712, "eos_token_id": 2}
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=512))
    model.save_pretrained(folder)
    transformers.CLIPImageProcessor().save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((ROOT / "data/golden/text/hf-clip" / name).read_bytes())


def onnx_files(options):
    """The towers with their projections and normalized vectors, as immich's exporter writes those of OpenCLIP."""
    files = [options.work / f"{options.model.name}-{kind}.onnx" for kind in ("visual", "textual")]
    if all(file.exists() for file in files):
        return files
    import torch
    import transformers
    model = transformers.CLIPModel.from_pretrained(options.model, attn_implementation="eager").eval()

    class Visual(torch.nn.Module):
        def forward(self, image):
            vectors = model.visual_projection(model.vision_model(pixel_values=image).pooler_output)
            return torch.nn.functional.normalize(vectors, dim=-1)

    class Textual(torch.nn.Module):
        def forward(self, text):
            vectors = model.text_projection(model.text_model(input_ids=text).pooler_output)
            return torch.nn.functional.normalize(vectors, dim=-1)

    batch = torch.export.Dim("batch")
    visual, textual = Visual(), Textual()
    visual.model = textual.model = model
    size, context = model.config.vision_config.image_size, model.config.text_config.max_position_embeddings
    torch.onnx.export(visual.eval(), (torch.zeros(2, 3, size, size),), files[0], input_names=["image"], dynamo=True, verbose=False,
                      dynamic_shapes=({0: batch},))
    torch.onnx.export(textual.eval(), (torch.ones(1, context, dtype=torch.int32),), files[1], input_names=["text"], dynamo=True, verbose=False)
    return files


def read_images(options):
    """The bytes of JPEG files below a folder and in .zip files there."""
    images = []
    for path in sorted(Path(options.images).rglob("*")):
        if path.suffix.lower() in (".jpg", ".jpeg"):
            images.append(path.read_bytes())
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                images += [archive.read(name) for name in archive.namelist()[:20_000] if name.lower().endswith((".jpg", ".jpeg"))]
        if len(images) >= options.count:
            break
    if not images:
        raise SystemExit(f"no JPEG files in {options.images}")
    return images


# ------------------------------------------------------------------------------------------------- servers and clients


class Server:
    def __init__(self, name, command, port, log, path="/v1/embeddings"):
        self.name, self.port, self.path = name, port, path
        self.log = Path(log)
        self.started = time.perf_counter()
        with self.log.open("w") as log_file:
            self.process = subprocess.Popen(command, stdout=log_file, stderr=log_file)

    def wait(self, body, content_type="application/json"):
        """Until the first answer; the seconds that took."""
        while self.process.poll() is None and time.perf_counter() - self.started < 120:
            answer = "none"
            try:
                status, answer = self.ask(self.connect(), body, content_type)
                if status == 200:
                    return time.perf_counter() - self.started
                if status not in (404, 503):
                    break
            except OSError:
                pass
            time.sleep(0.005)
        self.end()
        raise SystemExit(f"{self.name} does not answer: {answer}\n{self.log.read_text()[-2000:]}")

    def connect(self, address="127.0.0.1"):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120, source_address=(address, 0))

    def ask(self, connection, body, content_type="application/json"):
        connection.request("POST", self.path, body, {"Content-Type": content_type})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def tree(self):
        out, left = [], [self.process.pid]
        while left:
            process = left.pop()
            out.append(process)
            for task in Path(f"/proc/{process}/task").iterdir():
                left += [int(child) for child in (task / "children").read_text().split()]
        return out

    def memory(self):
        """MiB, shared pages counted once."""
        return sum(int(re.search(r"^Pss: +(\d+)", Path(f"/proc/{p}/smaps_rollup").read_text(), re.M).group(1)) for p in self.tree()) / 1024

    def cpu_seconds(self):
        fields = [Path(f"/proc/{p}/stat").read_text().rpartition(")")[2].split() for p in self.tree()]
        return sum(int(f[11]) + int(f[12]) for f in fields) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.terminate()
        self.process.wait()


def embedding_body(images, model):
    uris = ["data:image/jpeg;base64," + base64.b64encode(image).decode() for image in images]
    return json.dumps({"model": model, "input": uris, "modality": "image", "encoding_format": "base64"}).encode()


def vector_of(answer):
    vector = np.frombuffer(base64.b64decode(json.loads(answer)["data"][0]["embedding"]), np.float32).astype(np.float64)
    return vector / np.linalg.norm(vector)


def run_clients(server, bodies, seconds=None, count=None, content_type="application/json"):
    """Eight clients for some seconds, or until `count` requests are answered: requests per second, and the seconds of each."""
    times, taken, lock, begin = [], [0], threading.Lock(), time.perf_counter()

    def work():
        connection = server.connect()
        while True:
            with lock:
                at = taken[0]
                taken[0] += 1
            start = time.perf_counter()
            if (seconds and start - begin > seconds) or (count and at >= count):
                return
            status, answer = server.ask(connection, bodies[at % len(bodies)], content_type)
            if status != 200:
                raise SystemExit(f"{server.name}: {status} {answer[:300]}")
            times.append(time.perf_counter() - start)

    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return len(times) / (time.perf_counter() - begin), sorted(times)


def vit_server(options, port, path="/v1/embeddings"):
    return Server("vit serve", [str(options.vit), "serve", "--port", str(port), "--log", "none", "--threads", str(options.threads), "--model",
                                f"{options.model}={options.model}"], port,
                  options.work / "vit.log", path)


def vit_embed_rate(options, images, count):
    """Images per second of the program on files, less a run on one."""
    folder = options.work / "files"
    folder.mkdir(exist_ok=True)
    paths = []
    for i, image in enumerate(images):
        paths.append(folder / f"{i:05}.jpg")
        paths[-1].write_bytes(image)

    def seconds(number):
        listed = "".join(f"{paths[i % len(paths)]}\n" for i in range(number))
        start = time.perf_counter()
        subprocess.run([options.vit, "embed", "-", "--quiet", "--model", options.model, "--threads", str(options.threads), "--output",
                        options.work / "x.npy"], input=listed, text=True, check=True)
        return time.perf_counter() - start
    return (count - 1) / (seconds(count) - seconds(1))


def makers_of(options):
    """Starts of the servers, by name."""
    visual, _ = onnx_files(options)
    (options.work / "service.py").write_text(SERVICE)
    makers = {
        "vit serve": lambda: vit_server(options, 18321),
        "FastAPI, ONNX Runtime": lambda: Server("FastAPI, ONNX Runtime", [sys.executable, str(options.work / "service.py"), str(visual), "18322",
                                                                         str(options.threads)], 18322,
                                                 options.work / "service.log")}
    if options.infinity:
        makers["infinity"] = lambda: Server("infinity", [options.infinity, "v2", "--host", "127.0.0.1", "--model-id", str(options.model), "--served-model-name", str(options.model),
                                                         "--engine", "torch", "--device", "cpu", "--port", "18323", "--url-prefix", "/v1",
                                                         "--no-bettertransformer", "--no-model-warmup"], 18323, options.work / "infinity.log")
        os.environ.update(HF_HUB_OFFLINE="1", DO_NOT_TRACK="1", INFINITY_ANONYMOUS_USAGE_STATS="0", OMP_NUM_THREADS=str(options.threads))
    return makers


def clients(options):
    images, makers = read_images(options)[:200], makers_of(options)
    bodies = [embedding_body([image], str(options.model)) for image in images]
    found = {name: {"rate": [], "p50": [], "p99": [], "cpu": [], "memory": [], "start": []} for name in makers}
    embed, expected = [], None
    for turn in range(options.rounds):
        embed.append(vit_embed_rate(options, images, max(16, int(options.embed_images))))
        for name, make in makers.items():
            server = make()
            try:
                start = server.wait(bodies[0])
                vectors = [vector_of(server.ask(server.connect(), body)[1]) for body in bodies[:8]]
                expected = expected or vectors
                run_clients(server, bodies, seconds=1)
                cpu = server.cpu_seconds()
                rate, times = run_clients(server, bodies, seconds=options.seconds)
                cpu = (server.cpu_seconds() - cpu) / len(times)
                mine = found[name]
                for key, value in (("rate", rate), ("p50", times[len(times) // 2]), ("p99", times[int(0.99 * len(times))]), ("cpu", cpu),
                                   ("memory", server.memory()), ("start", start)):
                    mine[key].append(value)
                mine["cosine"] = min(float(a @ b) for a, b in zip(expected, vectors))
            finally:
                server.end()
    ours, embed_rate = {key: statistics.median(v) for key, v in found["vit serve"].items() if key != "cosine"}, statistics.median(embed)
    print(f"{options.model.name}, {options.threads} threads, {CLIENTS} clients, {options.rounds} rounds of {options.seconds} s; vit embed {embed_rate:.1f} images/s, "
          f"vit serve {ours['rate'] / embed_rate:.2f} of it")
    print("| server | images/s | vit / it | p50, ms | p99, ms | CPU, ms an image | memory, MiB | of vit's | first answer, s | of vit's | least cosine |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for name, values in found.items():
        m = {key: statistics.median(v) for key, v in values.items() if key != "cosine"}
        print(f"| {name} | {m['rate']:.1f} | {ours['rate'] / m['rate']:.2f} | {1e3 * m['p50']:.0f} | {1e3 * m['p99']:.0f} | {1e3 * m['cpu']:.1f} | {m['memory']:.0f} | "
              f"{m['memory'] / ours['memory']:.1f} | {m['start']:.2f} | {m['start'] / ours['start']:.1f} | {values['cosine']:.6f} |")


def run_mixed(server, bodies, batch, seconds, pause):
    """Seven clients of single images, and one that sends `batch`, if it is given: the times of the former, the images a second of the latter."""
    times, done, begin = [], [0], time.perf_counter()

    def single(first):
        connection = server.connect(f"127.0.0.{2 + first}")
        for at in range(first, 1 << 30, 7):
            start = time.perf_counter()
            if start - begin > seconds:
                return
            status, answer = server.ask(connection, bodies[at % len(bodies)])
            if status != 200:
                raise SystemExit(f"{server.name}: {status} {answer[:300]}")
            times.append(time.perf_counter() - start)
            time.sleep(pause)

    def bulk():
        connection = server.connect("127.0.0.9")
        while time.perf_counter() - begin < seconds:
            status, answer = server.ask(connection, batch)
            if status != 200:
                raise SystemExit(f"{server.name}, batch: {status} {answer[:300]}")
            done[0] += len(json.loads(answer)["data"])

    threads = [threading.Thread(target=single, args=(i,)) for i in range(7)] + ([threading.Thread(target=bulk)] if batch else [])
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times), done[0] / (time.perf_counter() - begin)


def mixed(options):
    images, makers = read_images(options)[:200], makers_of(options)
    bodies = [embedding_body([image], str(options.model)) for image in images]
    batch = embedding_body([images[i % len(images)] for i in range(options.batch)], str(options.model))
    found = {name: {key: [] for key in ("rate", "p50", "p99", "p50 mixed", "p99 mixed", "rate mixed", "bulk")} for name in makers}
    for turn in range(options.rounds):
        for name, make in makers.items():
            server = make()
            try:
                server.wait(bodies[0])
                run_clients(server, bodies, seconds=1)
                for suffix, sent in (("", None), (" mixed", batch)):
                    times, bulk = run_mixed(server, bodies, sent, options.seconds, options.pause)
                    mine = found[name]
                    mine["p50" + suffix].append(1e3 * times[len(times) // 2])
                    mine["p99" + suffix].append(1e3 * times[int(0.99 * len(times))])
                    mine["rate" + suffix].append(len(times) / options.seconds)
                mine["bulk"].append(bulk)
            finally:
                server.end()
    print(f"{options.model.name}, {options.threads} threads, seven clients of single images, pauses of {options.pause} s, and one of batches of {options.batch}, {options.rounds} rounds of {options.seconds} s")
    print("| server | p50, ms | p99, ms | images/s | p50 next to batches | p99 next to batches | images/s | images/s of the batches |\n|---|---|---|---|---|---|---|---|")
    for name, values in found.items():
        m = {key: statistics.median(v) for key, v in values.items()}
        print(f"| {name} | {m['p50']:.0f} | {m['p99']:.0f} | {m['rate']:.1f} | {m['p50 mixed']:.0f} | {m['p99 mixed']:.0f} | {m['rate mixed']:.1f} | {m['bulk']:.1f} |")


# ---------------------------------------------------------------------------------------------------------- immich


FORM_TYPE = "multipart/form-data; boundary=----formdata-undici-053267071149"


def form(entries, name, value):
    out = b""
    for field, head, data in (("entries", "", json.dumps(entries).encode()),
                              (name, '; filename="blob"\r\nContent-Type: application/octet-stream' if name == "image" else "", value)):
        out += f'------formdata-undici-053267071149\r\nContent-Disposition: form-data; name="{field}"{head}\r\n\r\n'.encode() + data + b"\r\n"
    return out + b"------formdata-undici-053267071149--\r\n"


def image_form(options, image):
    return form({"clip": {"visual": {"modelName": str(options.model)}}}, "image", image)


class Releases:
    """What immich's releases compute: the shorter edge to the size of the model, the longer one rounded down, bicubic, a crop that begins
    rounded down, numpy's float32 for the rest; texts with single blanks, cut and padded by the tokenizers library."""

    def __init__(self, options):
        import onnxruntime
        import tokenizers
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = options.threads
        self.visual, self.textual = (onnxruntime.InferenceSession(file, settings, providers=["CPUExecutionProvider"]) for file in onnx_files(options))
        rules = json.loads((options.model / "preprocessor_config.json").read_text())
        self.size = rules["crop_size"]["height"]
        self.mean, self.std = (np.array(rules[key], np.float32) for key in ("image_mean", "image_std"))
        self.tokenizer = tokenizers.Tokenizer.from_file(str(options.model / "tokenizer.json"))
        context = self.textual.get_inputs()[0].shape[1]
        pad = json.loads((options.model / "tokenizer_config.json").read_text())["pad_token"]
        self.tokenizer.enable_padding(length=context, pad_token=pad, pad_id=self.tokenizer.token_to_id(pad))
        self.tokenizer.enable_truncation(max_length=context)

    def image(self, data):
        from PIL import Image
        image = Image.open(io.BytesIO(data)).convert("RGB")
        short, size = min(image.size), self.size
        image = image.resize(tuple(size if edge == short else int(edge / short * size) for edge in image.size), Image.Resampling.BICUBIC)
        left, top = (int(edge / 2 - size / 2) for edge in image.size)
        pixels = np.asarray(image.crop((left, top, left + size, top + size)), np.float32) / 255.0
        pixels = pixels * (1.0 / self.std) - self.mean / self.std
        return self.visual.run(None, {"image": pixels.transpose(2, 0, 1)[None]})[0][0]

    def text(self, text):
        ids = self.tokenizer.encode(" ".join(text.split())).ids
        return self.textual.run(None, {"text": np.array([ids], np.int32)})[0][0]


def clip_vector(answer):
    return np.array(json.loads(json.loads(answer)["clip"]), np.float64)


def immich(options):
    from PIL import Image
    images, reference = read_images(options)[:100], Releases(options)
    for width, height in ((300, 200), (201, 333), (224, 224), (640, 97), (33, 50), (1000, 1001)):  # shapes that files may lack
        with Image.open(io.BytesIO(images[0])) as image:
            buffer = io.BytesIO()
            image.convert("RGB").resize((width, height)).save(buffer, "PNG")
            images.append(buffer.getvalue())
    texts = ["a cat", "  Two   dogs\ton a beach\n", "naïve café", "日本", "a " * 200, "It's 5 o'clock!"]
    server = vit_server(options, 18324, "/predict")
    try:
        server.wait(image_form(options, images[0]), FORM_TYPE)
        cosines = {"images": [], "texts": []}
        for image in images:
            status, answer = server.ask(server.connect(), image_form(options, image), FORM_TYPE)
            assert status == 200, answer
            cosines["images"].append(float(clip_vector(answer) @ reference.image(image)))
        for text in texts:
            status, answer = server.ask(server.connect(), form({"clip": {"textual": {"modelName": str(options.model)}}}, "text", text.encode()), FORM_TYPE)
            assert status == 200, answer
            cosines["texts"].append(float(clip_vector(answer) @ reference.text(text)))
    finally:
        server.end()
    for kind, values in cosines.items():
        print(f"{kind}: least cosine {min(values):.8f} of {len(values)} with the ONNX form")
    if min(min(values) for values in cosines.values()) <= 0.9999:
        raise SystemExit("vectors differ from immich's")


def library(options):
    images = read_images(options)
    server = vit_server(options, 18325, "/predict")
    try:
        bodies = [image_form(options, image) for image in images]
        server.wait(bodies[0], FORM_TYPE)
        run_clients(server, bodies, count=200, content_type=FORM_TYPE)
        before = server.memory()
        rate, times = run_clients(server, bodies, count=options.count, content_type=FORM_TYPE)
        print(f"{options.model.name}: {len(times):,} images of {len(images):,} files through /predict, {rate:.1f} images/s, p50 {1e3 * times[len(times) // 2]:.0f} ms, "
              f"p99 {1e3 * times[int(0.99 * len(times))]:.0f} ms, memory {before:.0f} -> {server.memory():.0f} MiB")
    finally:
        server.end()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["clients", "mixed", "library", "immich"])
    parser.add_argument("--vit", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--random", choices=list(SIZES))
    parser.add_argument("--infinity", help="the program infinity_emb of a virtual environment")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10, help="of a round of clients")
    parser.add_argument("--batch", type=int, default=64, help="images of a request of the eighth client of mixed")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between the requests of a client of single images of mixed")
    parser.add_argument("--embed-images", type=int, default=300, help="of a round of vit embed")
    parser.add_argument("--count", type=int, default=10_000, help="images of library")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.random:
        options.model = (options.work / f"clip-{options.random}").resolve()
        if not options.model.exists():
            random_folder(options.random, options.model)
    options.model = options.model.resolve()
    {"clients": clients, "mixed": mixed, "library": library, "immich": immich}[options.what](options)


if __name__ == "__main__":
    main()
