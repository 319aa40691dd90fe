"""Anomalies without training: what the search in a bank costs beside the forward pass, and images per second beside
anomalib's PatchCore, by turns.

    python apps/bench/compare/anomaly.py --vit build/release/vit --model dinov2_small/ [--rounds 5] [--patches 50000] [--memory]
    python apps/bench/compare/anomaly.py --vit build/release/vit --model dinov2_small/ --figures

--model is a DINOv2 ViT-S/14 as a folder of transformers. Images are seeded ones of data/images/make_defects.py, of 448 x 448 pixels,
the bank is of as many good ones as have --patches patches (49 images). Every round runs each
program on many images and on one: differences are without start and loading. The forward pass is `vit embed --features patches` (what
scoring needs); of `pooled` the last block computes the class token only. `search` is the processor time of `vit anomaly score`
over that of the forward pass of the same images. PatchCore (torch, pip install anomalib) has the same architecture from timm and a bank
of as many rows, weights and rows drawn: both change its figures, not its speed. --memory adds a bank of a million patches. --figures
prints image AUROC, pixel AUROC and PRO on seeded defects of four sample images instead (needs numpy and Pillow only).
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path = [folder for folder in sys.path if folder != str(Path(__file__).resolve().parent)]  # tokenizers.py is no package of PyPI
SIZE = 448
PATCHES_OF_IMAGE = (SIZE // 14) ** 2
SAMPLES = ("automobile_red.jpg", "cat_tabby.jpg", "ship_cruise.png", "frog_green.jpg")


def make_set(folder, sample, train, test, seed=1):
    subprocess.run([sys.executable, ROOT / "data/images/make_defects.py", ROOT / "data/images" / sample, folder,
                    "--train", str(train), "--test", str(test), "--seed", str(seed)], check=True)


class Vit:
    def __init__(self, options):
        self.program, self.model, self.threads = options.vit, options.model, options.threads

    def run(self, *arguments):
        command = [self.program, *map(str, arguments), "--quiet", "--threads", str(self.threads)]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, time.monotonic() - start, done.stdout)

    def fit(self, bank, folder, *arguments):
        return json.loads(self.run("anomaly", "fit", "--model", self.model, "--size", "native", folder, "--output", bank,
                                   "--format", "json", *arguments)[2])

    def per_image(self, command, images):
        """Processor and wall-clock seconds of one image: of all but the first."""
        many, one = self.run(*command, *images), self.run(*command, images[0])
        return [(a - b) / (len(images) - 1) for a, b in zip(many[:2], one[:2])]


class PatchCore:
    """anomalib's model, as its predict step computes an image: score and map."""

    def __init__(self, options):
        import timm
        import torch
        from anomalib.models.image.patchcore.torch_model import PatchcoreModel
        torch.set_num_threads(options.threads)
        self.torch = torch
        create = timm.create_model

        def sized(name, *arguments, **keywords):
            return create(name, *arguments, **keywords, img_size=SIZE)

        timm.create_model = sized
        try:
            self.model = PatchcoreModel(layers=["blocks.11"], backbone="vit_small_patch14_dinov2", pre_trained=False).eval()
        finally:
            timm.create_model = create
        rows = torch.randn(options.patches, 384, generator=torch.Generator().manual_seed(1))
        self.model.memory_bank = torch.nn.functional.normalize(rows)
        self.image = torch.randn(1, 3, SIZE, SIZE)
        self.seconds(1)

    def seconds(self, count=4):
        start = time.monotonic()
        with self.torch.inference_mode():
            for _ in range(count):
                self.model(self.image)
        return (time.monotonic() - start) / count


def quartiles(values, digits=3):
    low, middle, high = np.percentile(values, (25, 50, 75))
    return f"{middle:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def make_bank(vit, options, work):
    """A bank of as many good images as have options.patches, and images to score."""
    count = -(-options.patches // PATCHES_OF_IMAGE)
    make_set(work / "set", SAMPLES[0], count, options.images)
    vit.fit(work / "all.safetensors", work / "set/train/good", "--threshold", "1")
    return work / "all.safetensors", sorted((work / "set/test").rglob("*.png"))


def speed(vit, options, work):
    bank, images = make_bank(vit, options, work)
    score = ["anomaly", "score", bank]
    embed = ["embed", "--model", options.model, "--size", "native", "--output", work / "x.npz", "--features"]
    core = None if options.without_anomalib else PatchCore(options)
    found = {"search": [], "vit": [], "forward": [], "pooled": [], "ratio": [], "anomalib": []}
    for _ in range(options.rounds):
        scored, embedded, pooled = (vit.per_image(command, images) for command in (score, embed + ["patches"], embed + ["pooled"]))
        found["search"].append(scored[0] / embedded[0])
        found["vit"].append(1e3 * scored[1])
        found["forward"].append(1e3 * embedded[1])
        found["pooled"].append(1e3 * pooled[1])
        found["ratio"].append(scored[1] / embedded[1])
        if core:
            found["anomalib"].append(1e3 * core.seconds())
    print(f"bank of {options.patches:,} patches, {vit.threads} threads, {options.rounds} rounds, median (quartiles)")
    print(f"vit embed          {quartiles(found['forward'], 1)} ms an image, decoding included; pooled only {quartiles(found['pooled'], 1)}")
    print(f"vit anomaly score  {quartiles(found['vit'], 1)} ms an image, {quartiles(found['ratio'])} of vit embed; "
          f"processor time {quartiles(found['search'])}")
    if core:
        times = [a / b for a, b in zip(found["anomalib"], found["vit"])]
        print(f"anomalib PatchCore {quartiles(found['anomalib'], 1)} ms an image, pixels given; {quartiles(times, 2)} times as long")


def memory(work, options):
    """Peak memory of scoring one image with a bank of a million patches around 500 directions."""
    from safetensors.numpy import load_file, save_file
    small = work / "all.safetensors"
    with open(small, "rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    facts = json.loads(header["__metadata__"]["vit_anomaly"])
    patches = load_file(small)["patches"]
    rng, count = np.random.default_rng(1), 1_000_000
    rows = np.empty((count, patches.shape[1]), np.float32)
    for begin in range(0, count, 10_000):
        part = patches[rng.integers(0, len(patches), 10_000)] + rng.normal(0, 0.01, (10_000, patches.shape[1]))
        rows[begin:begin + 10_000] = part / np.linalg.norm(part, axis=1, keepdims=True)
    owners = np.sort(rng.integers(0, len(facts["images"]), count)).astype(np.int32)
    facts |= {"patches_seen": count, "foreground": False}
    save_file({"patches": rows, "images": owners}, work / "large.safetensors", {"vit_anomaly": json.dumps(facts)})
    del rows
    image = next((work / "set/test").rglob("*.png"))
    start = time.monotonic()
    process = subprocess.Popen([options.vit, "anomaly", "score", work / "large.safetensors", image, "--quiet"],
                               stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit("vit anomaly score failed")
    print(f"bank of 1,000,000 patches of {patches.shape[1]}: {(work / 'large.safetensors').stat().st_size / 2**20:.0f} MiB on disk, "
          f"{usage.ru_maxrss / 2**10:.0f} MiB at most, {time.monotonic() - start:.1f} s from start to the score of one image")


def figures(vit, options, work):
    print("| image | image AUROC | pixel AUROC | PRO |\n|---|---|---|---|")
    means = []
    for sample in SAMPLES:
        folder = work / Path(sample).stem
        make_set(folder, sample, 12, 8)
        bank = work / f"{Path(sample).stem}.safetensors"
        vit.fit(bank, folder / "train/good", *options.fit)
        found = json.loads(vit.run("evaluate", "--anomaly", bank, folder, "--format", "json")[2])
        means.append([found[key] for key in ("image_auroc", "pixel_auroc", "pro")])
        print(f"| {Path(sample).stem} | " + " | ".join(f"{value:.3f}" for value in means[-1]) + " |", flush=True)
    print("| mean | " + " | ".join(f"{value:.3f}" for value in np.mean(means, axis=0)) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, default=ROOT / "build/release/vit")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--patches", type=int, default=49 * PATCHES_OF_IMAGE)
    parser.add_argument("--images", type=int, default=10, help="of each of four kinds that are scored; few make differences noisy")
    parser.add_argument("--without-anomalib", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--figures", action="store_true")
    parser.add_argument("--fit", nargs=argparse.REMAINDER, default=[], help="with --figures: options of vit anomaly fit")
    options = parser.parse_args()
    vit = Vit(options)
    with tempfile.TemporaryDirectory() as folder:
        if options.figures:
            figures(vit, options, Path(folder))
        else:
            speed(vit, options, Path(folder))
            if options.memory:
                memory(Path(folder), options)


if __name__ == "__main__":
    main()
