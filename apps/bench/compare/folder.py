"""From a folder of JPEG files to embeddings: `vit embed`, the wheel, transformers, timm and ONNX Runtime, in one run.

    python apps/bench/compare/folder.py --vit build/release/vit --work ~/compare-folder --images FOLDER --model FOLDER
    python apps/bench/compare/folder.py --vit build/release/vit --work ~/compare-folder --images FOLDER --random base

The model is a ViT of transformers as downloaded, or one with drawn weights of DeiT-Ti (tiny) or ViT-B/16 (base) size; all engines get its
weights. `pipeline` is transformers' image-feature-extraction pipeline on paths, `timm` a DataLoader with as many workers as threads,
`onnx` what timm exports, fed by Pillow and numpy in batches. Every engine runs in a process of its own, by turns, and its vectors are
compared with those of vit. Seconds count from the first path to the last vector, imports and weights loaded before; vit's are those of the
whole program less those of a run on one image. Memory is the peak of the engine's process, without the workers of the DataLoader.
Measurements are added to WORK/folder.jsonl; --rounds 0 prints their table.
"""

import argparse
import functools
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ENGINES = ("vit", "wheel", "pipeline", "timm", "onnx")
BATCH = 32
# tokenizers.py next to this file has the name of a package that transformers needs.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]


def paths_of(options):
    return sorted(str(path) for path in Path(options.images).iterdir() if path.suffix.lower() in (".jpg", ".jpeg"))[:options.limit]


def random_folder(size, folder):
    import torch
    import transformers
    torch.manual_seed(0)
    width = {"tiny": 192, "base": 768}[size]
    config = transformers.ViTConfig(hidden_size=width, intermediate_size=4 * width, num_attention_heads=width // 64)
    transformers.ViTModel(config, add_pooling_layer=False).save_pretrained(folder)
    transformers.ViTImageProcessor().save_pretrained(folder)


def timm_model(folder):
    """The checkpoint of transformers as a model of timm, without its classifier."""
    import timm
    import torch
    import transformers
    source = transformers.ViTModel.from_pretrained(folder, add_pooling_layer=False)
    config, values = source.config, source.state_dict()
    model = timm.models.VisionTransformer(
        embed_dim=config.hidden_size, depth=config.num_hidden_layers, num_heads=config.num_attention_heads, num_classes=0,
        norm_layer=functools.partial(torch.nn.LayerNorm, eps=config.layer_norm_eps)).eval()
    state = {"cls_token": values["embeddings.cls_token"], "pos_embed": values["embeddings.position_embeddings"]}
    for kind in ("weight", "bias"):
        state[f"norm.{kind}"] = values[f"layernorm.{kind}"]
        state[f"patch_embed.proj.{kind}"] = values[f"embeddings.patch_embeddings.projection.{kind}"]
        for block in range(config.num_hidden_layers):
            own, theirs = f"blocks.{block}", f"layers.{block}"
            names = {"norm1": "layernorm_before", "norm2": "layernorm_after", "attn.proj": "attention.o_proj", "mlp.fc1": "mlp.fc1",
                     "mlp.fc2": "mlp.fc2"}
            state.update({f"{own}.{name}.{kind}": values[f"{theirs}.{other}.{kind}"] for name, other in names.items()})
            state[f"{own}.attn.qkv.{kind}"] = torch.cat([values[f"{theirs}.attention.{part}_proj.{kind}"] for part in "qkv"])
    model.load_state_dict(state)
    return model


class Preprocessing:
    """What preprocessor_config.json says, with Pillow alone: resize, center crop, mean and standard deviation."""

    def __init__(self, folder):
        rules = json.loads((folder / "preprocessor_config.json").read_text())
        self.size, self.crop, self.filter = rules["size"], rules.get("crop_size"), rules["resample"]
        self.mean, self.std = (np.array(rules[name], np.float32) for name in ("image_mean", "image_std"))
        if not rules.get("do_center_crop"):
            self.crop = None

    def image(self, path):
        """RGB, as the model sees it."""
        from PIL import Image
        image = Image.open(path).convert("RGB")
        if "shortest_edge" in self.size:
            edge, short = self.size["shortest_edge"], min(image.size)
            image = image.resize(tuple(side * edge // short for side in image.size), self.filter)
        else:
            image = image.resize((self.size["width"], self.size["height"]), self.filter)
        if self.crop:
            width, height = self.crop["width"], self.crop["height"]
            left, top = (image.width - width) // 2, (image.height - height) // 2
            image = image.crop((left, top, left + width, top + height))
        return image

    def pixels(self, path):
        """float32 (3, H, W)"""
        return ((np.asarray(self.image(path), np.float32) / 255 - self.mean) / self.std).transpose(2, 0, 1)


# Each returns a function from paths to vectors (n, C), ready to be timed.


def wheel_engine(options):
    import vitcpp
    model = vitcpp.load(options.model, threads=options.threads)
    return model.embed


def pipeline_engine(options):
    import torch
    import transformers
    torch.set_num_threads(options.threads)
    pipeline = transformers.pipeline("image-feature-extraction", model=str(options.model), device="cpu")

    def run(paths):
        return np.concatenate([tokens[:, 0].numpy() for tokens in pipeline(paths, batch_size=BATCH, return_tensors=True)])
    return run


def timm_engine(options):
    import torch
    import torchvision.transforms as transforms
    torch.set_num_threads(options.threads)
    model, rules = timm_model(options.model), Preprocessing(options.model)
    to_tensor = transforms.Compose([transforms.ToTensor(), transforms.Normalize(rules.mean.tolist(), rules.std.tolist())])

    class Files(torch.utils.data.Dataset):
        def __init__(self, paths):
            self.paths = paths

        def __len__(self):
            return len(self.paths)

        def __getitem__(self, index):
            return to_tensor(rules.image(self.paths[index]))

    @torch.inference_mode()
    def run(paths):
        loader = torch.utils.data.DataLoader(Files(paths), batch_size=BATCH, num_workers=options.threads)
        return np.concatenate([model(batch).numpy() for batch in loader])
    return run


def onnx_engine(options):
    import onnxruntime
    path = options.work / f"{options.model.name}.onnx"
    if not path.exists():
        import torch
        torch.onnx.export(timm_model(options.model), (torch.zeros(2, 3, 224, 224),), path, dynamo=True, verbose=False,
                          dynamic_shapes=({0: torch.export.Dim("batch")},))
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = options.threads
    session = onnxruntime.InferenceSession(path, settings, providers=["CPUExecutionProvider"])
    name, rules = session.get_inputs()[0].name, Preprocessing(options.model)

    def run(paths):
        batches = [paths[first:first + BATCH] for first in range(0, len(paths), BATCH)]
        return np.concatenate([session.run(None, {name: np.stack([rules.pixels(path) for path in batch])})[0] for batch in batches])
    return run


def run_program(options, paths, output):
    """Seconds and peak KiB of the program."""
    command = [str(options.vit), "embed", "-", "--quiet", "--model", str(options.model), "--threads", str(options.threads),
               "--output", str(output)]
    start = time.perf_counter()
    process = subprocess.Popen(command, stdin=subprocess.PIPE, text=True)
    process.stdin.write("".join(f"{path}\n" for path in paths))
    process.stdin.close()
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit("vit failed")
    return time.perf_counter() - start, usage.ru_maxrss


def peak_kib():
    """Of this process; getrusage() would count what its parent held when it started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def measure(options):
    """In a process of its own: one engine, its line of the file of measurements."""
    paths, output = paths_of(options), options.work / f"{options.engine}.npy"
    if options.engine == "vit":
        seconds, memory = run_program(options, paths, output)
        seconds -= run_program(options, paths[:1], options.work / "one.npy")[0]
    else:
        run = {"wheel": wheel_engine, "pipeline": pipeline_engine, "timm": timm_engine, "onnx": onnx_engine}[options.engine](options)
        run(paths[:BATCH])
        start = time.perf_counter()
        vectors = run(paths)
        seconds = time.perf_counter() - start
        memory = peak_kib()
        np.save(output, vectors)
    found, expected = np.load(output).astype(np.float64), np.load(options.work / "vit.npy").astype(np.float64)
    length = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
    return {"model": options.model.name, "engine": options.engine, "images": len(paths), "threads": options.threads,
            "images_per_second": len(paths) / seconds, "peak_mib": memory / 1024,
            "least_cosine": float(((found * expected).sum(1) / length).min())}


def print_table(file):
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    print("| model | engine | images/s | vit / engine | peak memory, MiB | least cosine with vit | rounds of images |\n|---|---|---|---|---|---|---|")
    for model in dict.fromkeys(line["model"] for line in lines):
        medians = {}
        for engine in ENGINES:
            mine = [line for line in lines if line["model"] == model and line["engine"] == engine]
            if not mine:
                continue
            medians[engine] = statistics.median(line["images_per_second"] for line in mine)
            print(f"| {model} | {engine} | {medians[engine]:.1f} | {medians['vit'] / medians[engine]:.2f} | "
                  f"{max(line['peak_mib'] for line in mine):.0f} | {min(line['least_cosine'] for line in mine):.5f} | "
                  f"{len(mine)} of {mine[0]['images']} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--images", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--random", choices=["tiny", "base"])
    parser.add_argument("--limit", type=int, default=1000, help="images of a run")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=ENGINES, help="vit goes first")
    parser.add_argument("--engine", choices=ENGINES, help=argparse.SUPPRESS)  # of the process that measures one
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    if options.random:
        options.model = options.work / f"vit-{options.random}"
        if not options.model.exists():
            random_folder(options.random, options.model)
    file = options.work / "folder.jsonl"
    if options.engine:
        with file.open("a") as out:
            print(json.dumps(measure(options)), file=out)
        return
    for _ in range(options.rounds):
        for engine in options.engines:
            subprocess.run([sys.executable, *sys.argv, "--engine", engine], check=True)
            print(file.read_text().splitlines()[-1], flush=True)
    print_table(file)


if __name__ == "__main__":
    main()
