"""Detectors whose blocks attend in windows (RF-DETR, LW-DETR), from the photograph to its boxes, and the image encoder of SAM (ViT-B), from pixels to its map: `vit` and transformers by turns. Published shapes, drawn weights.

    python apps/bench/compare/windows.py --vit build/release/vit --work ~/compare --rounds 5

Needs torch, torchvision, transformers, Pillow and vitcpp. Prints the milliseconds of an image for both, float32, medians of the rounds, and the ratio within rounds. Boxes of drawn weights mean nothing: their
number is that of the queries, whatever the image.
"""

import argparse
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

# tokenizers.py next to this file has the name of a package that transformers needs.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
import vitcpp  # noqa: E402
from PIL import Image  # noqa: E402


def median_ms(call, seconds):
    call()
    times, begin = [], time.perf_counter()
    while len(times) < 3 or time.perf_counter() - begin < seconds:
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def folder_of(work, name, model, processor=None):
    folder = work / name
    model.save_pretrained(folder)
    if processor is not None:
        processor.save_pretrained(folder)
    return folder


def detector(work, name, model, processor, options):
    """Two functions that give the median of one image, of vit and of the library."""
    folder = folder_of(work, name, model, processor)
    ours = vitcpp.load(str(folder), threads=options.threads)
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 256, (480, 640, 3), np.uint8))

    def theirs():
        inputs = processor(images=photo, return_tensors="pt")
        processor.post_process_object_detection(model(**inputs), threshold=0.0, target_sizes=[(480, 640)])
    return (lambda: median_ms(lambda: ours.detect(photo, threshold=0.0), options.seconds)), (lambda: median_ms(theirs, options.seconds))


def encoder(work, name, model, options):
    folder = folder_of(work, name, model)
    pixels = torch.randn(1, 3, model.config.image_size, model.config.image_size)

    def ours():
        run = subprocess.run([options.vit, "bench", "--model", folder, "--threads", str(options.threads), "--seconds", str(options.seconds)],
                             capture_output=True, text=True, check=True)
        return float(re.search(r"([\d.]+) ms", run.stdout)[1])
    return ours, (lambda: median_ms(lambda: model(pixels), options.seconds))


def cases(options):
    torch.manual_seed(0)
    size = {"height": 560, "width": 560}
    yield "RF-DETR base, 560", lambda: detector(options.work, "rf-detr", transformers.RfDetrForObjectDetection(transformers.RfDetrConfig()).eval(),
                                                transformers.RfDetrImageProcessor(size=size), options)
    size = {"height": 640, "width": 640}
    yield "LW-DETR tiny, 640", lambda: detector(options.work, "lw-detr", transformers.LwDetrForObjectDetection(transformers.LwDetrConfig(projector_scale_factors=[1.0])).eval(),
                                                transformers.DeformableDetrImageProcessor(size=size), options)
    yield "SAM ViT-B, 1024", lambda: encoder(options.work, "sam", transformers.SamVisionModel(transformers.SamVisionConfig()).eval(), options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3, help="of each round and engine")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.set_grad_enabled(False)
    print(f"| model | vit, ms | torch {torch.__version__}, ms | torch / vit |\n|---|---|---|---|")
    for name, make in cases(options):
        functions = make()
        rounds = [[function() for function in functions] for _ in range(options.rounds)]
        ours, theirs = (statistics.median(values) for values in zip(*rounds))
        print(f"| {name} | {ours:.0f} | {theirs:.0f} | {statistics.median(b / a for a, b in rounds):.2f} |", flush=True)


if __name__ == "__main__":
    main()
