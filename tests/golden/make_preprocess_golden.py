#!/usr/bin/env python3
"""Writes data/golden/preprocess: the results of Pillow, timm and transformers for pictures that the tests can compute themselves.

decode/      one picture in containers of many kinds, and decode.json: size and SHA-256 of Pillow's convert("RGB").
<name>/      config.json or preprocessor_config.json, and expected*.json: for every size of the synthetic picture the SHA-256 of
             the 8-bit stage (H, W, RGB) and of the float32 tensor (3, H, W).
Made with the versions that versions.json names. Needs Pillow, pillow-heif, torch, torchvision, timm, transformers.
"""

import hashlib
import io
import json
import pathlib
import struct

import numpy as np
import PIL
import pillow_heif
import timm
import torch
import torchvision
import transformers
from PIL import Image
from timm.data import create_transform, resolve_data_config

ROOT = pathlib.Path(__file__).resolve().parents[2] / "data/golden/preprocess"
SIZES = [(97, 61), (60, 200), (233, 300), (7, 40)]  # height, width


def synthetic(height, width):
    """The picture that tests/image/golden_tests.cpp computes by the same formula."""
    y, x, c = np.meshgrid(np.arange(height), np.arange(width), np.arange(3), indexing="ij")
    return ((((3 * x * x + 5 * y * y + 7 * (c + 1) * x * y) >> 4) + 31 * c) & 255).astype(np.uint8)


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def tiff(data, entries, num_strips=1):
    """A little-endian TIFF of strips alike, for what Pillow does not write; `entries` are {tag: (type, values)}."""
    length = len(data) // num_strips
    entries = {**entries, 273: (4, [8 + length * i for i in range(num_strips)]), 279: (4, [length] * num_strips)}
    directory = 8 + len(data) + len(data) % 2
    after = directory + 2 + 12 * len(entries) + 4
    lines, values = struct.pack("<H", len(entries)), b""
    for tag, (kind, numbers) in sorted(entries.items()):
        packed = struct.pack(f"<{len(numbers)}{'HI'[kind - 3]}", *numbers)
        if len(packed) > 4:
            packed, values = struct.pack("<I", after + len(values)), values + packed
        lines += struct.pack("<HHI", tag, kind, len(numbers)) + packed.ljust(4, b"\0")
    return struct.pack("<2sHI", b"II", 42, directory) + data.ljust(directory - 8, b"\0") + lines + bytes(4) + values


def tiff_of_12_bits(levels):
    """Rows of an even number of levels (H, W), two in three bytes."""
    even, odd = levels[:, ::2].astype(int), levels[:, 1::2].astype(int)
    packed = np.stack([even >> 4, (even & 15) << 4 | odd >> 8, odd & 255], axis=-1).astype(np.uint8)
    height, width = levels.shape
    return tiff(packed.tobytes(), {256: (3, [width]), 257: (3, [height]), 258: (3, [12]), 259: (3, [1]), 262: (3, [1]),
                                   277: (3, [1]), 278: (3, [height])})


def tiff_of_old_jpeg(image):
    """A whole JPEG file with halved chroma inside of a TIFF, as before the sixth revision's supplement."""
    stream = io.BytesIO()
    image.save(stream, "jpeg", quality=90, subsampling="4:2:0")
    data = stream.getvalue()
    return tiff(data, {256: (3, [image.width]), 257: (3, [image.height]), 258: (3, [8, 8, 8]), 259: (3, [6]),
                       262: (3, [6]), 277: (3, [3]), 278: (3, [image.height]), 513: (4, [8]), 514: (4, [len(data)]),
                       530: (3, [2, 2])})


def tiff_of_planes(image, photometric):
    """Three planes of 8 bits, one after another."""
    bands = [band.tobytes() for band in image.split()]
    return tiff(b"".join(bands), {256: (3, [image.width]), 257: (3, [image.height]), 258: (3, [8, 8, 8]), 259: (3, [1]),
                                  262: (3, [photometric]), 277: (3, [3]), 278: (3, [image.height]), 284: (3, [2])},
                len(bands))


def decode_files():
    folder = ROOT / "decode"
    folder.mkdir(parents=True, exist_ok=True)
    pillow_heif.register_heif_opener()
    picture = Image.fromarray(synthetic(14, 22))
    alpha = Image.fromarray(synthetic(14, 22)[:, :, 1])
    rgba = picture.copy()
    rgba.putalpha(alpha)
    exif = Image.Exif()
    exif[0x112] = 6
    wide = synthetic(14, 22)[:, :, 0].astype(np.uint16) * 2
    grey16 = Image.fromarray(wide)
    grey_alpha = Image.merge("LA", (picture.convert("L"), alpha))
    lab = Image.frombytes("LAB", (22, 14), synthetic(14, 22).tobytes())
    bitmap_icon = {"bitmap_format": "bmp", "sizes": [(11, 7), (22, 14)]}
    files = {
        "baseline.jpg": (picture, {"quality": 80}),
        "progressive.jpg": (picture, {"quality": 60, "progressive": True}),
        "grey.jpg": (picture.convert("L"), {"quality": 80}),
        "cmyk.jpg": (picture.convert("CMYK"), {"quality": 80}),
        "orientation_6.jpg": (picture, {"quality": 80, "exif": exif}),
        "rgb.png": (picture, {}),
        "rgba.png": (rgba, {}),
        "palette.png": (picture.quantize(20), {}),
        "bilevel.png": (picture.convert("1"), {}),
        "grey16.png": (grey16, {}),
        "orientation_6.png": (picture, {"exif": exif}),
        "lzw.tif": (picture, {"compression": "tiff_lzw"}),
        "rgba.tif": (rgba, {}),
        "grey16.tif": (grey16, {}),
        "cmyk.tif": (picture.convert("CMYK"), {}),
        "lossless.webp": (picture, {"lossless": True}),
        "alpha.webp": (rgba, {"lossless": True, "exact": True}),
        "rgb.bmp": (picture, {}),
        "palette.bmp": (picture.quantize(20), {}),
        "lossless.jp2": (picture, {}),
        "rgb.ppm": (picture, {}),
        "palette.gif": (picture.quantize(20), {"interlace": 0}),
        "transparent.gif": (picture.quantize(12), {"interlace": 1, "transparency": 3}),
        "animated.gif": (picture.quantize(20), {"save_all": True, "append_images": [alpha]}),
        "full.avif": (picture, {"subsampling": "4:4:4"}),
        "halved.avif": (picture, {"subsampling": "4:2:0", "range": "limited"}),
        "alpha.avif": (rgba, {}),
        "grey.avif": (alpha, {"subsampling": "4:0:0"}),
        "full.heic": (picture, {"chroma": 444}),
        "alpha.heic": (rgba, {"chroma": 444}),
        "png.ico": (rgba, {"sizes": [(11, 7), (22, 14)]}),
        "bitmap.ico": (picture, bitmap_icon),
        "palette.ico": (picture.quantize(20), bitmap_icon),
        "rgba.ico": (rgba, bitmap_icon),
        "headless.dib": (picture, {}),
        "float.pfm": (picture.convert("F").point(lambda level: level * 2 - 100), {}),
        "grey16.jp2": (grey16, {}),
        "grey_alpha.jp2": (grey_alpha, {}),
        "rgba.j2k": (rgba, {}),
        "signed.j2k": (picture, {"signed": True}),
        "ycbcr.tif": (picture.convert("YCbCr"), {"compression": "tiff_lzw"}),
        "grey12.tif": tiff_of_12_bits(wide),
        "old_jpeg.tif": tiff_of_old_jpeg(picture),
        "lab.tif": (lab, {"compression": "tiff_lzw"}),
        "lab_planes.tif": tiff_of_planes(lab, 8),
    }
    results = {}
    for name, content in files.items():
        if isinstance(content, bytes):
            (folder / name).write_bytes(content)
        else:
            content[0].save(folder / name, **content[1])
        opened = Image.open(folder / name)
        entry = {"sha256": sha256(np.asarray(opened.convert("RGB"))), "size": list(opened.size)}
        if (opened.mode != "LAB" and "A" in opened.getbands()) or opened.info.get("transparency") is not None:
            white = Image.new("RGBA", opened.size, (255, 255, 255, 255))
            flat = Image.alpha_composite(white, Image.open(folder / name).convert("RGBA")).convert("RGB")
            entry["sha256_on_white"] = sha256(np.asarray(flat))
        results[name] = entry
    write_json(ROOT / "decode.json", results)


def expected_line(stage, tensor):
    return {
        "shape": list(tensor.shape),
        "sha256": sha256(stage),
        "tensor_sha256": sha256(tensor.astype("<f4")),
    }


def timm_case(name, pretrained_cfg):
    write_json(ROOT / name / "config.json", {"architecture": "vit_small_patch16_224", "pretrained_cfg": pretrained_cfg})
    config = resolve_data_config(pretrained_cfg=pretrained_cfg)
    full = create_transform(**config)
    eight_bit = torchvision.transforms.Compose(
        [step for step in full.transforms if type(step).__name__ not in ("MaybeToTensor", "Normalize")])
    results = {}
    for height, width in SIZES:
        image = Image.fromarray(synthetic(height, width))
        results[f"{height}x{width}"] = expected_line(np.asarray(eight_bit(image)), full(image).numpy())
    write_json(ROOT / name / "expected.json", results)


def unpatched(found, patch):
    """The image (3, H, W) that a NaFlex processor has cut into patches (rows, P P 3) and padded with rows."""
    rows, columns = (int(n) for n in found["spatial_shapes"][0])
    patches = np.asarray(found["pixel_values"][0])[:rows * columns]
    image = patches.reshape(rows, columns, patch, patch, 3).transpose(4, 0, 2, 1, 3)
    return image.reshape(3, rows * patch, columns * patch)


def hf_case(name, processor_name, values):
    write_json(ROOT / name / "preprocessor_config.json", {"image_processor_type": processor_name, **values})
    for backend, suffix in (("torchvision", ""), ("pil", "Pil")):
        make = getattr(transformers, processor_name + suffix)
        full = make(**values)
        raw = make(**{**values, "do_rescale": False, "do_normalize": False})
        results = {}
        for height, width in SIZES:
            image = Image.fromarray(synthetic(height, width))
            pixels_of = lambda found: (unpatched(found, values["patch_size"]) if "spatial_shapes" in found else
                                       np.asarray(found["pixel_values"][0]))
            stage = pixels_of(raw(image, return_tensors="np")).transpose(1, 2, 0)
            tensor = pixels_of(full(image, return_tensors="np")).astype(np.float32)
            results[f"{height}x{width}"] = expected_line(stage.astype(np.uint8), tensor)
        write_json(ROOT / name / f"expected.{backend}.json", results)


def main():
    ROOT.mkdir(parents=True, exist_ok=True)
    decode_files()
    imagenet = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
    half = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
    timm_case("timm-center", {"input_size": [3, 64, 64], "crop_pct": 0.9, "interpolation": "bicubic", **imagenet})
    timm_case("timm-wide", {"input_size": [3, 48, 80], "crop_pct": 0.95, "interpolation": "bilinear", **half})
    timm_case("timm-squash", {"input_size": [3, 56, 56], "crop_pct": 1.0, "crop_mode": "squash", "interpolation": "bicubic", **half})
    timm_case("timm-border", {"input_size": [3, 64, 64], "crop_pct": 0.9, "crop_mode": "border", "interpolation": "bicubic", **imagenet})
    names = {"image_mean": imagenet["mean"], "image_std": imagenet["std"]}
    hf_case("hf-bit", "BitImageProcessor", {"size": {"shortest_edge": 72}, "crop_size": {"height": 63, "width": 81}, **names})
    hf_case("hf-vit", "ViTImageProcessor", {"size": {"height": 48, "width": 48}})
    hf_case("hf-naflex", "Siglip2ImageProcessor", {"patch_size": 8, "max_num_patches": 40})
    write_json(ROOT / "versions.json", {
        "Pillow": PIL.__version__, "torch": torch.__version__, "torchvision": torchvision.__version__,
        "timm": timm.__version__, "transformers": transformers.__version__,
    })


if __name__ == "__main__":
    main()
