"""Depth Anything V2 of random weights and the published shape, at 518 x 518, batch 1: `vit` next to ONNX Runtime, OpenVINO
(float32, bfloat16, and int8 by NNCF) and PyTorch, by turns, one process each, with the peak of their memory. No downloads.

    python depth.py --vit build/release/vit --work ~/compare --variants small base --rounds 5

    python depth.py --vit build/release/vit --work ~/compare --folder [PHOTOS]

With --folder it compares `vit depth PHOTOS --output FOLDER/` with transformers' depth-estimation pipeline that writes the same
16-bit PNGs: seconds of the whole process, and of each further image, once loaded. Without PHOTOS it draws 12 of 640 x 480 and
12 of 1600 x 1200 as JPEG. Depths of random weights span 0.03 % of their value: the last digits of float32 are hundreds of the
65,535 steps of such a PNG.

Prepares the models in --work (transformers writes them, torch.onnx exports them), stops unless all depths agree, and prints
milliseconds and MiB: medians of rounds, and the ratio to vit within rounds; rounds are added to WORK/depth.jsonl. Needs torch, timm, transformers, onnx, onnxruntime, openvino
and nncf.
"""

import argparse
import datetime
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

# tokenizers.py next to this file has the name of a package that transformers needs: its folder comes last.
HERE = Path(__file__).resolve().parent
sys.path = [*(p for p in sys.path if Path(p or ".").resolve() != HERE), str(HERE)]

SIZE = 518
# Width, heads, channels of the four maps, channels of the fused map: depth_anything_v2_vits, vitb, vitl.
VARIANTS = {"small": (384, 6, 12, [48, 96, 192, 384], 64, [3, 6, 9, 12]),
            "base": (768, 12, 12, [96, 192, 384, 768], 128, [3, 6, 9, 12]),
            "large": (1024, 16, 24, [256, 512, 1024, 1024], 256, [5, 12, 18, 24])}
TOLERANCE = {"float32": 1e-3, "bfloat16": 0.1, "int8": 0.2}  # of the largest depth

PRELUDE = """
import json, statistics, sys, time
import numpy
def peak():
    return [int(line.split()[1]) // 1024 for line in open("/proc/self/status") if line.startswith("VmHWM")][0]
def measure(run, seconds):
    first = run()
    times, begin = [], time.perf_counter()
    run()
    begin = time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    numpy.save(OUT, numpy.asarray(first, numpy.float32).reshape(SIZE, SIZE))
    print(json.dumps({"ms": 1e3 * statistics.median(times), "mib": peak()}))
"""
# Each begins with its imports and ends with measure(); FOLDER, ONNX, PIXELS, OUT, SIZE, THREADS and SECONDS are there.
ENGINES = {
    "ONNX Runtime": """
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = THREADS
session = onnxruntime.InferenceSession(ONNX, options, providers=["CPUExecutionProvider"])
feed = {session.get_inputs()[0].name: numpy.load(PIXELS)}
measure(lambda: session.run(None, feed)[0], SECONDS)
""",
    "OpenVINO": """
import openvino
compiled = openvino.Core().compile_model(ONNX, "CPU", {
    "INFERENCE_PRECISION_HINT": HINT, "INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": 1})
request, pixels = compiled.create_infer_request(), numpy.load(PIXELS)
measure(lambda: next(iter(request.infer([pixels], share_inputs=True).values())), SECONDS)
""",
    "torch": """
import torch, transformers
torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
model = transformers.AutoModelForDepthEstimation.from_pretrained(FOLDER).eval()
pixels = torch.from_numpy(numpy.load(PIXELS))
def run():
    with torch.autocast("cpu", torch.bfloat16, enabled=HINT == "bf16"):
        return model(pixels).predicted_depth.float().numpy()
measure(run, SECONDS)
""",
}


# The same for the folder: every image of FOLDER to OUT, as vit writes it.
PIPELINE = """
import sys
from pathlib import Path
import numpy, torch, transformers
from PIL import Image
torch.set_num_threads(THREADS)
model = transformers.AutoModelForDepthEstimation.from_pretrained(FOLDER)
pipe = transformers.pipeline("depth-estimation", model=model, device="cpu",
                             image_processor=transformers.AutoImageProcessor.from_pretrained(FOLDER))
files = [Path(word) for word in sys.argv[1:]]
for file, result in zip(files, pipe(str(file) for file in files)):
    depth = result["predicted_depth"].float().numpy().squeeze()
    low, high = depth.min(), depth.max()
    Image.fromarray(numpy.rint((depth - low) / (high - low) * 65535).astype(numpy.uint16)).save(f"{OUT}/{file.stem}.png")
"""


def prepare(work, variant):
    """The folder with config, weights, processor, pixels and the exported model."""
    folder = work / f"depth_anything_v2_{variant}"
    onnx = folder / "model.onnx"
    if onnx.exists():
        return folder
    import torch
    import transformers
    width, heads, depth, channels, features, stages = VARIANTS[variant]
    torch.manual_seed(0)
    backbone = transformers.Dinov2Config(hidden_size=width, num_attention_heads=heads, num_hidden_layers=depth, image_size=SIZE,
                                         patch_size=14, out_indices=stages, apply_layernorm=True,
                                         reshape_hidden_states=False)
    config = transformers.DepthAnythingConfig(backbone_config=backbone, reassemble_hidden_size=width, patch_size=14,
                                              neck_hidden_sizes=channels, fusion_hidden_size=features)
    model = transformers.DepthAnythingForDepthEstimation(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():  # of a size at which depths differ
            if "lambda" in name:
                parameter.fill_(0.1)
        model.head.conv3.bias.fill_(1.0)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    transformers.DPTImageProcessor(size={"height": SIZE, "width": SIZE}, keep_aspect_ratio=True, ensure_multiple_of=14,
                                   image_mean=[0.485, 0.456, 0.406],
                                   image_std=[0.229, 0.224, 0.225]).save_pretrained(folder)
    pixels = np.random.default_rng(1).standard_normal((1, 3, SIZE, SIZE)).astype(np.float32)
    np.save(folder / "pixels.npy", pixels)
    with torch.no_grad():
        torch.onnx.export(model, torch.from_numpy(pixels), str(onnx), input_names=["pixels"], output_names=["depth"],
                          opset_version=17, dynamo=False)
    return folder


def run_python(engine, folder, options, hint):
    onnx = folder / "model.onnx"
    if hint == "int8":
        from engines import noise_like, quantised_by_nncf
        onnx, hint = quantised_by_nncf(onnx, lambda: noise_like(np.load(folder / "pixels.npy"))), "f32"
    values = {"FOLDER": str(folder), "ONNX": str(onnx), "PIXELS": str(folder / "pixels.npy"),
              "OUT": str(folder / "depth.npy"), "SIZE": SIZE, "THREADS": options.threads, "SECONDS": options.seconds, "HINT": hint}
    program = "\n".join([*(f"{key} = {value!r}" for key, value in values.items()), PRELUDE, ENGINES[engine]])
    finished = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                              check=True, env={**os.environ, "OMP_NUM_THREADS": str(options.threads)})
    return json.loads(finished.stdout.splitlines()[-1]), np.load(folder / "depth.npy")


def run_vit(folder, options, dtype):
    def vit(*words):
        return subprocess.run([options.vit, *(str(word) for word in words)], check=True, stdout=subprocess.PIPE,
                              text=True).stdout
    vit("depth", "--model", folder, "--dtype", dtype, "--raw", folder / "pixels.npy", "--output", folder / "vit.npz")
    bench = json.loads(vit("bench", "--model", folder, "--sizes", SIZE, "--threads", options.threads, "--batch", 1,
                           "--dtype", dtype, "--seconds", options.seconds, "--json"))
    result = bench["results"][0]
    stages = result["ms_per_stage"]
    return ({"ms": result["ms_per_image"], "mib": result["peak_memory_bytes"] >> 20, "machine": bench["machine"],
             "head": stages["dense"] / sum(stages.values())}, np.load(folder / "vit.npz")["depth.0"])


def draw_photographs(folder):
    """Shapes of some size with noise, at the sizes of cameras and of data sets."""
    from PIL import Image
    folder.mkdir(parents=True, exist_ok=True)
    random = np.random.default_rng(5)
    for number in range(24):
        size = (640, 480) if number < 12 else (1600, 1200)
        small = Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8))
        big = np.asarray(small.resize(size, Image.Resampling.BICUBIC), np.int16)
        noise = random.integers(-8, 9, big.shape)
        Image.fromarray(np.clip(big + noise, 0, 255).astype(np.uint8)).save(folder / f"photo{number:02}.jpg", quality=90)
    return folder


def timed(*words, **more):
    start = time.perf_counter()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{words[0]}: {done.stderr.strip()[-1000:]}")
    return time.perf_counter() - start


def compare_folder(options, variant):
    from PIL import Image
    model = prepare(options.work, variant)
    photos = Path(options.folder) if options.folder else draw_photographs(options.work / "photos")
    files = sorted(path for path in photos.iterdir() if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if len(files) < 2:
        sys.exit(f"{photos}: fewer than two photographs")
    environment = {**os.environ, "OMP_NUM_THREADS": str(options.threads)}
    outputs = {name: options.work / "folder" / name.replace(" ", "_") for name in
               ("vit", "transformers", "vit, bfloat16")}  # the pipeline has no bfloat16: numpy does not know it

    def run(name, some):
        shutil.rmtree(outputs[name], ignore_errors=True)
        outputs[name].mkdir(parents=True)
        if name.startswith("vit"):
            return timed(options.vit, "depth", "--model", model, *some, "--output", f"{outputs[name]}/", "--quiet",
                         "--threads", options.threads, "--dtype", "bfloat16" if "bfloat16" in name else "float32")
        values = {"FOLDER": str(model), "THREADS": options.threads, "OUT": str(outputs[name])}
        program = "\n".join([*(f"{key} = {value!r}" for key, value in values.items()), PIPELINE])
        return timed(sys.executable, "-c", program, *some, env=environment)

    rounds = []
    for number in range(options.rounds):
        rounds.append({name: (run(name, files[:1]), run(name, files)) for name in outputs})
        print(f"{variant}: round {number + 1} of {options.rounds}", file=sys.stderr)
    worst = 0
    for file in files:
        of_vit, of_torch = (np.asarray(Image.open(outputs[name] / f"{file.stem}.png"), np.int32)
                            for name in ("vit", "transformers"))
        worst = max(worst, int(np.abs(of_vit - of_torch).max()))
    print(f"Depth Anything V2 {variant}, {len(files)} photographs to 16-bit PNG, {options.threads} threads; float32 depths differ by "
          f"{worst} of 65535 at most")
    print("| program | s | of vit's time in float32 | s of each further image | of vit's |\n|---|---|---|---|---|")
    for name in outputs:
        each = [{key: (whole - first) / (len(files) - 1) for key, (first, whole) in r.items()} for r in rounds]
        total = statistics.median(r[name][1] for r in rounds)
        ratio = statistics.median(r[name][1] / r["vit"][1] for r in rounds)
        further = statistics.median(e[name] for e in each)
        of_vit = statistics.median(e[name] / e["vit"] for e in each)
        print(f"| {name} | {total:.2f} | {ratio:.2f} | {further:.3f} | {of_vit:.2f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", required=True)
    parser.add_argument("--work", type=Path, required=True, help="folder for weights and exports")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["small", "base"])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0, help="of each engine in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", nargs="?", const="", metavar="PHOTOS",
                        help="compare a folder of photographs with the pipeline instead")
    options = parser.parse_args()
    if options.folder is not None:
        for variant in options.variants:
            compare_folder(options, variant)
        return
    engines = {"vit": lambda folder: run_vit(folder, options, "float32"),
               "vit, bfloat16": lambda folder: run_vit(folder, options, "bfloat16"),
               "vit, int8": lambda folder: run_vit(folder, options, "int8"),
               "ONNX Runtime": lambda folder: run_python("ONNX Runtime", folder, options, ""),
               "OpenVINO": lambda folder: run_python("OpenVINO", folder, options, "f32"),
               "OpenVINO, bfloat16": lambda folder: run_python("OpenVINO", folder, options, "bf16"),
               "OpenVINO, int8": lambda folder: run_python("OpenVINO", folder, options, "int8"),
               "torch": lambda folder: run_python("torch", folder, options, "")}
    for variant in options.variants:
        folder = prepare(options.work, variant)
        rounds = []
        for number in range(options.rounds):
            found = {name: run(folder) for name, run in engines.items()}
            reference = found["torch"][1]
            for name, (_, depth) in found.items():
                off = np.abs(depth.reshape(reference.shape) - reference).max() / np.abs(reference).max()
                limit = TOLERANCE[name.partition(", ")[2] or "float32"]
                if not off <= limit:
                    sys.exit(f"{variant}, {name}: depths differ from torch's by {off:.2g} of the largest, more than {limit}")
            rounds.append({name: result for name, (result, _) in found.items()})
            with (options.work / "depth.jsonl").open("a") as log:
                for name, result in rounds[-1].items():
                    log.write(json.dumps({"day": datetime.date.today().isoformat(), "machine": found["vit"][0]["machine"], "variant": variant,
                                          "size": SIZE, "engine": name, "ms": result["ms"], "mib": result["mib"]}) + "\n")
            print(f"{variant}: round {number + 1} of {options.rounds}", file=sys.stderr)
        weights = (folder / "model.safetensors").stat().st_size >> 20
        print(f"Depth Anything V2 {variant}, {SIZE} x {SIZE}, batch 1, {options.threads} threads; weights {weights} MiB")
        print("| engine | ms | of vit's time, same dtype | MiB | share of the head |\n|---|---|---|---|---|")
        for name in engines:
            own = "".join(("vit", *name.partition(", ")[1:]))
            ms = statistics.median(r[name]["ms"] for r in rounds)
            ratio = statistics.median(r[name]["ms"] / r[own]["ms"] for r in rounds)
            mib = max(r[name]["mib"] for r in rounds)
            head = rounds[0][name].get("head")
            print(f"| {name} | {ms:.0f} | {ratio:.2f} | {mib} | {'' if head is None else f'{100 * head:.1f} %'} |", flush=True)


if __name__ == "__main__":
    main()
