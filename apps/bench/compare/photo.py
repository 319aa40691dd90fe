"""CPU time and memory from photographs of 12 megapixels to the pixels of a model, beside Pillow, torchvision and OpenCV.

    python apps/bench/compare/photo.py --vit build/release/vit [--old another/vit] SAMPLE.jpg [--model FOLDER]

SAMPLE is enlarged to 4000 x 3000 pixels, with noise, and written as JPEG (4:2:0, 4:4:4, progressive), PNG and TIFF. vit's
time is the CPU time of `vit preprocess` with one thread on many copies of it, less that on one, for each further copy; its
memory is the peak of the process on the file, less that on a file of one pixel. The other libraries shorten the edge to
256 with a bicubic filter and crop 224 of it, in this process. All take turns; medians count. With --model the time of
`vit embed` of a folder with all cores is compared with what preprocessing and the forward pass cost one.
"""

import argparse
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
from PIL import Image

RESIZE, CROP = 256, 224


def photograph(sample):
    enlarged = Image.open(sample).convert("RGB").resize((4000, 3000), Image.Resampling.BICUBIC)
    noise = np.random.default_rng(0).normal(0, 4, (3000, 4000, 1))
    return Image.fromarray(np.clip(np.asarray(enlarged) + noise, 0, 255).astype(np.uint8))


def write_files(sample, folder):
    image = photograph(sample)
    forms = {
        "jpeg.jpg": dict(quality=85),
        "jpeg444.jpg": dict(quality=90, subsampling=0),
        "progressive.jpg": dict(quality=85, progressive=True),
        "png.png": dict(compress_level=3),
        "tiff.tif": dict(compression="tiff_lzw"),
    }
    for name, options in forms.items():
        image.save(folder / name, **options)
    Image.new("RGB", (1, 1)).save(folder / "pixel.png")
    rules = dict(input_size=[3, CROP, CROP], crop_pct=CROP / RESIZE, crop_mode="center", interpolation="bicubic")
    (folder / "config.json").write_text(json.dumps(dict(architecture="vit_tiny_patch16_224", pretrained_cfg=rules)))
    return list(forms)


def run(command):
    """Seconds and CPU seconds of a command."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        raise SystemExit(f"failed: {' '.join(map(str, command))}")
    return time.perf_counter() - start, usage.ru_utime + usage.ru_stime


# A process begins with the peak of the one that started it: this one has no libraries.
PEAK = "import os, sys; pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); print(os.wait4(pid, 0)[2].ru_maxrss)"


def peak_megabytes(command):
    lines = subprocess.run([sys.executable, "-I", "-S", "-c", PEAK, *command], check=True, capture_output=True, text=True)
    return int(lines.stdout.split()[-1]) / 1024


def preprocess(vit, files, folder, measure=run):
    out = folder / "pixels.npy"
    options = ["--quiet", "--threads", "1", "--model", folder, "--output", out]
    result = measure([vit, "preprocess", *options, *files])
    out.unlink()
    return result


def vit_engine(vit, folder, copies):
    def measure(file):
        many = preprocess(vit, [file] * (1 + copies), folder)
        one = preprocess(vit, [file], folder)
        return (many[1] - one[1]) / copies
    return measure


def library_engine(prepare):
    def measure(file):
        start = time.process_time()
        prepare(file)
        return time.process_time() - start
    return measure


def pillow(file):
    image = Image.open(file).convert("RGB")
    scale = RESIZE / min(image.size)
    width, height = (int(edge * scale) for edge in image.size)
    left, top = (width - CROP) // 2, (height - CROP) // 2
    return image.resize((width, height), Image.Resampling.BICUBIC).crop((left, top, left + CROP, top + CROP))


def opencv(file):
    cv2 = importlib.import_module("cv2")
    cv2.setNumThreads(1)
    image = cv2.imread(str(file))
    scale = RESIZE / min(image.shape[:2])
    height, width = (int(edge * scale) for edge in image.shape[:2])
    resized = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA)  # its bicubic does not antialias
    left, top = (width - CROP) // 2, (height - CROP) // 2
    return resized[top : top + CROP, left : left + CROP]


def torchvision(file):
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)
    io = importlib.import_module("torchvision.io")
    functional = importlib.import_module("torchvision.transforms.v2.functional")
    resized = functional.resize(io.decode_image(str(file), io.ImageReadMode.RGB), RESIZE, 3, antialias=True)
    return functional.center_crop(resized, CROP)


def engines(options, folder):
    table = {"vit": vit_engine(options.vit, folder, options.copies)}
    if options.old:
        table["old"] = vit_engine(options.old, folder, options.copies)
    table["Pillow"] = library_engine(pillow)
    for name, prepare, module in (("torchvision", torchvision, "torchvision"), ("OpenCV", opencv, "cv2")):
        if importlib.util.find_spec(module):
            table[name] = library_engine(prepare)
    return table


def measure_files(options, folder, names):
    table = engines(options, folder)
    print("CPU ms per image" + "".join(f"{name:>13}" for name in table) + "  vit's memory, MB")
    for name in names:
        times = {engine: [] for engine in table}
        for _ in range(options.rounds):
            for engine, measure in table.items():
                try:
                    times[engine].append(measure(folder / name))
                except RuntimeError:  # a format that the library does not read
                    times[engine].append(float("nan"))
        peaks = []
        for vit in filter(None, (options.vit, options.old)):
            idle = preprocess(vit, [folder / "pixel.png"], folder, peak_megabytes)
            peaks.append(preprocess(vit, [folder / name], folder, peak_megabytes) - idle)
        row = "".join(f"{1000 * statistics.median(times[engine]):13.1f}" for engine in table)
        print(f"{name:16}{row}  " + ", ".join(f"{peak:.1f}" for peak in peaks), flush=True)


def measure_folder(options, folder, name):
    many = [folder / name] * (1 + options.copies)
    for vit in filter(None, (options.vit, options.old)):
        ratios, rates = [], []
        for _ in range(options.rounds):
            out = folder / "features.npy"
            embed = [vit, "embed", "--quiet", "--model", options.model, "--output", out]
            wall = run([*embed, *many])[0] - run([*embed, many[0]])[0]
            one = run([*embed, "--threads", "1", *many])[1] - run([*embed, "--threads", "1", many[0]])[1]
            ratios.append(wall / (one / os.cpu_count()))
            rates.append(options.copies / wall)
        print(f"embed {name} with {vit}: {statistics.median(rates):.1f} images a second, "
              f"{statistics.median(ratios):.2f} x (CPU time of one thread) / {os.cpu_count()} cores")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", required=True)
    parser.add_argument("--old", help="another vit, to compare with")
    parser.add_argument("--model", help="a checkpoint folder: measures vit embed as well")
    parser.add_argument("--copies", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", help="some of jpeg.jpg,jpeg444.jpg,progressive.jpg,png.png,tiff.tif")
    parser.add_argument("--folder", type=pathlib.Path, help="where the files are kept for another call")
    parser.add_argument("sample")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.folder or pathlib.Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        known = ["jpeg.jpg", "jpeg444.jpg", "progressive.jpg", "png.png", "tiff.tif"]
        is_written = all((folder / name).exists() for name in [*known, "config.json"])
        names = known if is_written else write_files(options.sample, folder)
        if options.files:
            names = options.files.split(",")
        measure_files(options, folder, names)
        if options.model:
            measure_folder(options, folder, names[0])


if __name__ == "__main__":
    main()
