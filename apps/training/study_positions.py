r"""What each position encoding costs and gives: trains one model per encoding, alike in everything else, and
measures them with `vit evaluate` away from the training resolution and on shifted images.

    python study_positions.py --train train.zip --validation validation.zip --teachers convolutions.pt deit.pt \
        --state /tmp/study --program build/dev/vit \
        --attention build/dev/apps/examples/example_attention_distance --out data/positions.json

Can be stopped and started again with the same --state folder. data/figures/make_positions.py draws the result.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import torch
from PIL import Image
from safetensors.torch import load_file, save_file

import cifar10
from train_cifar10 import POSITIONS, sinusoidal_table

SIZES = (16, 24, 32, 40, 48, 64, 96)
SHIFTS = tuple(range(16))
PATCH = 4
TEST_IMAGES = 2500
IMAGES_FOR_ATTENTION = 200
# Smaller and shorter than the model that ships, and without what only some of the encodings could have: heads
# that start with a direction, and small crops, for which a table would have to be resampled while training.
RECIPE = {"dim": 96, "depth": 6, "heads": 3, "local-depth": 0, "drop-patches": 0.5}
# Name of a model: its position encoding, and up to what factor its training images are enlarged. The last
# two show what that has to do with other sizes; one seed each.
MODELS = {position: (position, 1) for position in POSITIONS}
MODELS |= {"axial+zoom": ("axial", 2), "table+zoom": ("table", 2)}


def models_and_seeds(args):
    """Pairs of a name and a seed."""
    return [(name, seed) for seed in args.seeds for name, (_, zoom) in MODELS.items()
            if zoom == 1 or seed == args.seeds[0]]


def train_all(args, models, recipe=RECIPE):
    """A process of one thread for each (name, seed) of `models` that is not in args.state yet. In a recipe, None is an option
    without a value."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"}

    def train(name, seed):
        position, zoom = MODELS[name]
        out = args.state / f"{name}-{seed}"
        if not (out / "model.safetensors").exists():
            command = [sys.executable, str(Path(__file__).with_name("train_cifar10.py")), "--threads", "1"]
            options = recipe | {
                "train": args.train, "cache": args.state, "state": args.state / f"{name}-{seed}.state",
                "out": out, "position": position, "zoom": zoom, "seed": seed, "epochs": args.epochs
            }
            for option, value in options.items():
                command += [f"--{option}"] if value is None else [f"--{option}", str(value)]
            if args.teachers:
                command += ["--teachers", *args.teachers]
            with open(args.state / f"{name}-{seed}.log", "a", encoding="utf-8") as log:
                subprocess.run(command, check=True, env=environment, stdout=log, stderr=subprocess.STDOUT)
            print(f"trained {name}, seed {seed}", flush=True)

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        jobs = [pool.submit(train, name, seed) for name, seed in models]
        for job in jobs:
            job.result()


def shifted(pixels, distance):
    """(N, 3, 32, 32) moved by `distance` pixels, the first image to the right, then left, down, up and so
    on; what comes in at the edge mirrors what is there."""
    padded = torch.nn.functional.pad(pixels.float(), (distance,) * 4, mode="reflect").byte()
    moved = torch.empty_like(pixels)
    for turn, (x, y) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1))):
        top, left = distance * (1 + y), distance * (1 + x)
        moved[turn::4] = padded[turn::4, :, top:top + 32, left:left + 32]
    return moved


def write_images(folder, pixels, labels):
    """PNG files in class folders; a folder that is there is complete."""
    if folder.exists():
        return
    unfinished = folder.with_suffix(".new")
    shutil.rmtree(unfinished, ignore_errors=True)
    for name in cifar10.CLASSES:
        (unfinished / name).mkdir(parents=True)
    for index, (image, label) in enumerate(zip(pixels.permute(0, 2, 3, 1).numpy(), labels.tolist())):
        Image.fromarray(image).save(unfinished / cifar10.CLASSES[label] / f"{index:05}.png")
    unfinished.rename(folder)


def changed_copy(model, name, size, change):
    """A copy of a checkpoint folder with other tensors, for images of `size`."""
    copy = model.with_name(f"{model.name}.{name}-{size}")
    copy.mkdir(exist_ok=True)
    config = json.loads((model / "config.json").read_text())
    config["model_args"]["img_size"] = [size, size]
    (copy / "config.json").write_text(json.dumps(config))
    tensors = load_file(model / "model.safetensors")
    change(tensors)
    save_file(tensors, copy / "model.safetensors", metadata={"format": "pt"})
    return copy


def for_size(model, position, size, interpolated):
    """Arguments of vit for the positions of patches in an image of another size: extrapolated, as RoPE and
    sinusoids are defined, or interpolated, as a learned table is resampled."""
    grid, trained_grid = size // PATCH, 32 // PATCH
    if position == "sinusoidal" and not interpolated:
        def compute(tensors):
            table = tensors["pos_embed"]
            tensors["pos_embed"] = sinusoidal_table(grid, table.shape[-1]).to(table.dtype)
        return ["--model", changed_copy(model, "extrapolated", size, compute)]
    if position == "mixed" and interpolated:
        def scale(tensors):
            tensors["rope.freqs"] = tensors["rope.freqs"].float() * (trained_grid / grid)
        return ["--model", changed_copy(model, "interpolated", size, scale)]
    if position in ("axial", "axial+table") and interpolated:
        return ["--model", model, "--set", f"ref_feat_shape={trained_grid}x{trained_grid}"]
    return ["--model", model]


def accuracy(args, model, folder, size):
    command = [args.program, "evaluate", *model, "--size", str(size), "--format", "json", folder]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["top1"]


def attention_distances(args, model, images):
    """Mean distance in pixels of every head, of the first and of the last block."""
    text = subprocess.run([args.attention, model, *images], check=True, stdout=subprocess.PIPE, text=True).stdout
    blocks = [[PATCH * float(number) for number in line.split()[2:]] for line in text.splitlines()]
    return {"first": blocks[0], "last": blocks[-1]}


def measure(args, name, seed, folders):
    position, zoom = MODELS[name]
    model = args.state / f"{name}-{seed}"
    kept = args.state / f"{name}-{seed}.json"
    figures = json.loads(kept.read_text()) if kept.exists() else {"position": name, "seed": seed}

    def note(key, measured):
        if key not in figures:
            figures[key] = measured()
            kept.write_text(json.dumps(figures))

    def by_size(interpolated):
        return {str(size): accuracy(args, for_size(model, position, size, interpolated), folders[0], size)
                for size in SIZES}

    if position != "table":
        note("extrapolated", lambda: by_size(interpolated=False))
    if position != "none":
        note("interpolated", lambda: by_size(interpolated=True))
    if zoom > 1:
        return figures
    note("shifted", lambda: {str(shift): accuracy(args, ["--model", model], folders[shift], 32)
                             for shift in SHIFTS})
    images = sorted(folders[0].rglob("*.png"))
    step = len(images) // IMAGES_FOR_ATTENTION
    note("attention", lambda: attention_distances(args, model, images[::step]))
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--validation", type=Path, required=True, help="zip of class folders, to measure on")
    parser.add_argument("--teachers", type=Path, nargs="+", required=True,
                        help="logits written by teach_*.py")
    parser.add_argument("--state", type=Path, required=True, help="folder for models, images and restarts")
    parser.add_argument("--program", type=Path, required=True, help="the program vit")
    parser.add_argument("--attention", type=Path, required=True, help="the example attention_distance")
    parser.add_argument("--out", type=Path, required=True, help="file for the figures")
    parser.add_argument("--epochs", type=float, default=5)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--jobs", type=int, default=2, help="models trained side by side")
    args = parser.parse_args()

    args.state.mkdir(parents=True, exist_ok=True)
    cifar10.read_archive(args.train, args.state)  # decoded once, for all of them
    train_all(args, models_and_seeds(args))

    pixels, labels = cifar10.read_archive(args.validation, args.state)
    chosen = slice(None, None, max(1, len(labels) // TEST_IMAGES))  # sorted by class: evenly from all
    pixels, labels = pixels[chosen], labels[chosen]
    folders = [args.state / f"shift-{shift}" for shift in SHIFTS]
    for shift, folder in enumerate(folders):
        write_images(folder, shifted(pixels, shift), labels)
    models = [measure(args, name, seed, folders) for name, seed in models_and_seeds(args)]
    recipe = RECIPE | {"epochs": args.epochs, "images": len(labels)}
    args.out.write_text(json.dumps({"recipe": recipe, "models": models}, indent=1) + "\n")


if __name__ == "__main__":
    main()
