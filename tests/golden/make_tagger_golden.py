"""Writes data/golden/tagger: a tiny random tagger in the layout in which taggers are published for timm, with
images and what timm makes of them.

    python tests/golden/make_tagger_golden.py        a few seconds; needs torch, timm, safetensors, Pillow

The folder holds config.json and model.safetensors as timm writes them, selected_tags.csv with the columns
tag_id, name, category and count, three images, and expected.safetensors. For each image I

    I.pixels         (3, H, W)   padded with white to a square, preprocessed by timm, then B, G, R
    I.logits         (classes)
    I.probabilities  (classes)   sigmoid of each
    I.logits.f64                 from a double precision run of the same weights
"""

import csv
import json
from pathlib import Path

import timm
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from timm.data import create_transform, resolve_data_config

from make_golden import randomise

ROOT = Path(__file__).resolve().parents[2] / "data" / "golden" / "tagger"
ARCHITECTURE = "eva02_large_patch14_448"
MODEL_ARGS = dict(img_size=24, patch_size=8, embed_dim=32, depth=2, num_heads=2, mlp_ratio=1.5, ref_feat_shape=[3, 3])
# name, category: 9 ratings, 0 general tags, 4 characters. Names that a careless reader of CSV cuts.
TAGS = (("general", 9), ("explicit", 9), ("1girl", 0), ("red hair, long", 0), (";)", 0), ('"quoted" sign', 0),
        ("two\nlines", 0), ("\u00e9toile", 4), ("o'neill_(series)", 4))
SIZES = {"wide": (45, 26), "tall": (19, 40), "square": (30, 30)}  # width, height


def picture(width, height):
    image = Image.new("RGB", (width, height))
    image.putdata([((5 * x * x + 3 * x * y) % 256, (7 * y + 4 * x) % 256, (3 * y * y + 11 * x) % 256)
                   for y in range(height) for x in range(width)])
    return image


def padded(image):
    """As the published taggers prepare their images."""
    width, height = image.size
    edge = max(image.size)
    canvas = Image.new("RGB", (edge, edge), (255, 255, 255))
    canvas.paste(image, ((edge - width) // 2, (edge - height) // 2))
    return canvas


def write_checkpoint():
    model = timm.create_model(ARCHITECTURE, num_classes=len(TAGS), **MODEL_ARGS)
    randomise(model, seed=11)
    cfg = dict(custom_load=False,
               input_size=[3, 24, 24],
               fixed_input_size=False,
               interpolation="bicubic",
               crop_pct=1.0,
               crop_mode="center",
               mean=[0.5, 0.45, 0.4],
               std=[0.5, 0.4, 0.3],
               num_classes=len(TAGS),
               pool_size=None,
               first_conv="patch_embed.proj",
               classifier="head",
               license="mit")
    config = dict(architecture=ARCHITECTURE,
                  num_classes=len(TAGS),
                  num_features=model.num_features,
                  global_pool="avg",
                  model_args=MODEL_ARGS,
                  pretrained_cfg=cfg)
    (ROOT / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, ROOT / "model.safetensors")
    with open(ROOT / "selected_tags.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("tag_id", "name", "category", "count"))
        for i, (name, category) in enumerate(TAGS):
            writer.writerow((9999000 + i, name, category, 1000 * (i + 1)))
    return config


@torch.no_grad()
def main():
    ROOT.mkdir(parents=True, exist_ok=True)
    config = write_checkpoint()
    model = timm.create_model(config["architecture"], num_classes=config["num_classes"], **config["model_args"])
    model.load_state_dict(load_file(ROOT / "model.safetensors"))
    model.eval()
    transform = create_transform(**resolve_data_config(config["pretrained_cfg"], model=model))
    expected = {}
    for name, size in SIZES.items():
        picture(*size).save(ROOT / f"{name}.png")
        image = Image.open(ROOT / f"{name}.png").convert("RGB")
        pixels = transform(padded(image))[[2, 1, 0]]
        logits = model(pixels[None])[0]
        expected[f"{name}.pixels"] = pixels.contiguous()
        expected[f"{name}.logits"] = logits
        expected[f"{name}.probabilities"] = torch.sigmoid(logits)
    model.double()
    for name in SIZES:
        expected[f"{name}.logits.f64"] = model(expected[f"{name}.pixels"][None].double())[0]
    save_file(expected, ROOT / "expected.safetensors")
    for name in SIZES:
        print(name, [round(value, 3) for value in expected[f"{name}.probabilities"].tolist()])


if __name__ == "__main__":
    main()
