#!/usr/bin/env python3
"""Ends runs of the program by SIGKILL at random moments and resumes them: nothing is lost, nothing doubled.

    kills.py VIT MODEL [--kills N] [--seed S]

For embed to .jsonl and to a folder of parts, for index and for fit: each is killed N times (50) at moments spread
over the time that an undisturbed run needs, started again each time as its user would, and in the end its files are
byte for byte those of the undisturbed run. After each kill whatever has the final name must be whole.
"""
import argparse
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time


def write_images(folder, count):
    for label in ("cat", "dog"):
        (folder / label).mkdir(parents=True)
    for i in range(count):
        width, height = 24 + i % 17, 30 + i % 5
        pixels = bytes((x * 7 + y * 5 * (1 + i % 2) + i * 31) & 255 for y in range(height) for x in range(3 * width))
        path = folder / ("cat" if i % 2 else "dog") / f"{i:04}.ppm"
        path.write_bytes(b"P6\n%d %d\n255\n" % (width, height) + pixels)


def contents(path):
    if path.is_file():
        return {path.name: path.read_bytes()}
    return {str(p.relative_to(path)): p.read_bytes() for p in sorted(path.rglob("*")) if p.is_file()}


def run(command, kill_after=None):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        _, err = process.communicate(timeout=kill_after)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return -signal.SIGKILL, ""
    return process.returncode, err.decode(errors="replace")


def clean(path):
    if path.is_dir():
        shutil.rmtree(path)
    for rest in path.parent.glob(path.name + "*"):
        rest.unlink()


def campaign(name, command, path, kills, chance, whole_at_once):
    clean(path)
    start = time.monotonic()
    code, err = run(command)
    needed = time.monotonic() - start
    if code != 0:
        sys.exit(f"{name}: undisturbed, it ends with {code}: {err}")
    expected = contents(path)
    clean(path)
    killed = finished = 0
    defects = []
    while killed < kills:
        code, err = run(command, chance.uniform(0.0, needed))
        if code == -signal.SIGKILL:
            killed += 1
            if whole_at_once and path.exists() and contents(path) != expected:
                defects.append(f"{name}: after kill {killed} the output is there and not whole")
        else:
            finished += 1
            if code != 0 or contents(path) != expected:
                defects.append(f"{name}: a run that went on ended with {code}, {err!r}")
            clean(path)
    code, err = run(command)
    if code != 0:
        defects.append(f"{name}: the last run ended with {code}: {err}")
    found = contents(path)
    for file in sorted(set(found) | set(expected)):
        if found.get(file) != expected.get(file):
            defects.append(f"{name}: {file} differs from that of the undisturbed run")
    left = sorted(p.name for p in path.parent.glob(path.name + ".*"))
    if left:
        defects.append(f"{name}: files left: {left}")
    print(f"{name}: {needed:.2f} s undisturbed, {killed} kills, {finished} runs finished between, {len(defects)} defects",
          flush=True)
    return defects


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vit")
    parser.add_argument("model")
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--images", type=int, default=120)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="vit-kills-") as name:
        folder = pathlib.Path(name)
        images = folder / "images"
        write_images(images, options.images)
        common = ["--model", options.model, "--threads", "1"]
        embed = [options.vit, "embed", *common, str(images), "--resume", "--batch", "1", "--output"]
        runs = [
            ("embed to .jsonl", [*embed, str(folder / "x.jsonl")], folder / "x.jsonl", True),
            ("embed to parts", [*embed, str(folder / "parts") + "/", "--part-size", "7"], folder / "parts", False),
            ("index", [options.vit, "index", *common, str(images), "--output", str(folder / "index")], folder / "index",
             False),
            ("fit", [options.vit, "fit", *common, str(images), "--method", "centroid", "--output",
                     str(folder / "head.safetensors")], folder / "head.safetensors", True),
        ]
        help_text = subprocess.run([options.vit, "index", "--help"], capture_output=True, text=True)
        defects = []
        for name, command, path, whole in runs:
            if name == "index" and help_text.returncode != 0:
                continue
            defects += campaign(name, command, path, options.kills, chance, whole)
    print("\n".join(defects))
    sys.exit(1 if defects else 0)


if __name__ == "__main__":
    main()
