#!/usr/bin/env python3
"""Writes data/golden/deit_tiny_imagenet_sample.json: the five best classes of photographs by DeiT-Ti in float64.

    python make_deit_golden.py --model deit-tiny-patch16-224 --images imagenet-sample

For each of the processors of transformers ("torchvision", "pil"): file name -> classes and logits, best first. Model and
photographs are not part of the repository. Needs Pillow, torch, torchvision and transformers (made with 5.23).
"""

import argparse
import json
import pathlib

import torch
from PIL import Image
from transformers import AutoImageProcessor, AutoModelForImageClassification

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/golden/deit_tiny_imagenet_sample.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, required=True, help="folder as downloaded")
    parser.add_argument("--images", type=pathlib.Path, required=True, help="folder of photographs")
    args = parser.parse_args()
    model = AutoModelForImageClassification.from_pretrained(args.model).double().eval()
    lines = []
    for backend in ("torchvision", "pil"):
        processor = AutoImageProcessor.from_pretrained(args.model, backend=backend)
        rows = []
        for path in sorted(p for p in args.images.iterdir() if p.is_file()):
            pixels = processor(images=Image.open(path).convert("RGB"), return_tensors="pt")["pixel_values"]
            with torch.no_grad():
                top = model(pixels.double()).logits[0].topk(5)
            result = {"top5": top.indices.tolist(), "logits": [round(v, 6) for v in top.values.tolist()]}
            rows.append(f" {json.dumps(path.name)}: {json.dumps(result)}")
        lines.append(f"{json.dumps(backend)}: {{\n" + ",\n".join(rows) + "\n}")
    OUT.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
