#!/usr/bin/env python3
"""Compares the pixels that `vit preprocess` makes of photographs with those of transformers' processors of
vision-language models: sizes, and every bit of every value. Needs torch, torchvision, transformers and safetensors;
no weights.

  python3 tests/towers/compare_pixels.py build/release/vit FOLDER_OF_PHOTOGRAPHS [--count 60] [--rule NAME]

The photographs are also cut to odd shapes, so that every branch of the rules of sizes is reached.
"""
import argparse
import hashlib
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps
from safetensors.numpy import load_file

# name: (class of the processor, config.json, what the processor is made with)
RULES = {
    "qwen2_vl": ("Qwen2VLImageProcessor", {"model_type": "qwen2_vl"}, {}),
    "qwen2_5_vl_published": ("Qwen2VLImageProcessor", {"model_type": "qwen2_5_vl"},
                             {"min_pixels": 3136, "max_pixels": 12845056}),
    "qwen3_vl": ("Qwen2VLImageProcessor", {"model_type": "qwen3_vl"},
                 {"patch_size": 16, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
                  "size": {"shortest_edge": 65536, "longest_edge": 16777216}}),
    "small_limits": ("Qwen2VLImageProcessor", {"model_type": "qwen2_vl"},
                     {"size": {"shortest_edge": 40000, "longest_edge": 60000}}),
    "glm4v": ("Glm4vImageProcessor", {"model_type": "glm4v"}, {}),
    "glm4v_small": ("Glm4vImageProcessor", {"model_type": "glm4v"},
                    {"size": {"shortest_edge": 12544, "longest_edge": 200000}}),
    "glm_ocr": ("Glm46VImageProcessor", {"model_type": "glm_ocr"}, {}),
    "paddleocr_vl": ("PaddleOCRVLImageProcessor", {"model_type": "paddleocr_vl"}, {}),
    "video_llama_3": ("VideoLlama3ImageProcessor", {"model_type": "video_llama_3"}, {}),
    "ernie4_5_vl": ("Ernie4_5_VLMoeImageProcessor", {"model_type": "ernie4_5_vl_moe"}, {}),
    "pixtral": ("PixtralImageProcessor", {"model_type": "pixtral"}, {}),
    "mistral3": ("PixtralImageProcessor", {"model_type": "mistral3"},
                 {"patch_size": 28, "size": {"longest_edge": 1540}}),
    "pixtral_small": ("PixtralImageProcessor", {"model_type": "pixtral"}, {"size": {"longest_edge": 200}}),
    "kimi_k2_5": ("Kimi_K25ImageProcessor", {"model_type": "kimi_k25"}, {}),
    "kimi_k2_5_small": ("Kimi_K25ImageProcessor", {"model_type": "kimi_k25"}, {"max_patches": 300}),
    "gemma4": ("Gemma4ImageProcessor", {"model_type": "gemma4"}, {}),
    "gemma4_70": ("Gemma4ImageProcessor", {"model_type": "gemma4"}, {"max_soft_tokens": 70}),
    "gemma4_1120": ("Gemma4ImageProcessor", {"model_type": "gemma4"}, {"max_soft_tokens": 1120}),
    "llama4": ("Llama4ImageProcessor", {"model_type": "llama4"}, {}),
    "sam3": ("Sam3ImageProcessor", {"model_type": "sam3"}, {}),
    "sapiens2": ("Sapiens2ImageProcessor", {"model_type": "sapiens2"}, {}),
    "llama4_canvas": ("Llama4ImageProcessor", {"model_type": "llama4"}, {"resize_to_max_canvas": True}),
    "blip": ("BlipImageProcessor", {"model_type": "blip"}, {}),
    "chinese_clip": ("ChineseCLIPImageProcessor", {"model_type": "chinese_clip"}, {}),
    "flava": ("FlavaImageProcessor", {"model_type": "flava"}, {}),
    "gemma3": ("Gemma3ImageProcessor", {"model_type": "gemma3"}, {"size": {"height": 896, "width": 896}}),
    # the processors of InternVL and Aya Vision ask for tiles
    "internvl": ("GotOcr2ImageProcessor", {"model_type": "internvl"}, {"size": {"height": 448, "width": 448}, "crop_to_patches": True}),
    "aya_vision": ("GotOcr2ImageProcessor", {"model_type": "aya_vision"}, {"size": {"height": 364, "width": 364}, "crop_to_patches": True}),
    "got_ocr2": ("GotOcr2ImageProcessor", {"model_type": "got_ocr2"}, {"size": {"height": 256, "width": 256}}),
    "got_ocr2_tiles": ("GotOcr2ImageProcessor", {"model_type": "got_ocr2"},
                       {"size": {"height": 256, "width": 256}, "crop_to_patches": True, "min_patches": 2, "max_patches": 7}),
    "cohere2_vision": ("Cohere2VisionImageProcessor", {"model_type": "cohere2_vision"}, {}),
    "cohere2_vision_small": ("Cohere2VisionImageProcessor", {"model_type": "cohere2_vision"}, {"size": {"height": 100, "width": 100}}),
    "llava_next": ("LlavaNextImageProcessor", {"model_type": "llava_next"}, {"size": {"shortest_edge": 336}, "crop_size": {"height": 336, "width": 336}}),
    "llava_onevision": ("LlavaOnevisionImageProcessor", {"model_type": "llava_onevision"}, {}),
    "idefics3": ("Idefics3ImageProcessor", {"model_type": "idefics3"}, {}),
    "smolvlm": ("SmolVLMImageProcessor", {"model_type": "smolvlm"},
                {"size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}}),
    "llava": ("LlavaImageProcessor", {"model_type": "llava"}, {"size": {"shortest_edge": 336}, "crop_size": 336}),
    "rf_detr": ("RfDetrImageProcessor", {"model_type": "rf_detr"}, {"size": {"height": 560, "width": 560}, "do_pad": False}),
    "lw_detr": ("DeformableDetrImageProcessor", {"model_type": "lw_detr"}, {"size": {"height": 640, "width": 640}, "do_pad": False}),
    "prompt_depth_anything": ("PromptDepthAnythingImageProcessor", {"model_type": "prompt_depth_anything"},
                              {"size": {"height": 756, "width": 756}, "keep_aspect_ratio": True, "ensure_multiple_of": 14}),
    "llama4_5_tiles": ("Llama4ImageProcessor", {"model_type": "llama4"},
                       {"max_patches": 5, "size": {"height": 112, "width": 112}}),
}

# The same of clips: frames, and which of them a processor takes.
CLIPS = {
    "videomae_clip": ("VideoMAEVideoProcessor", {"model_type": "videomae"}, {}),
    "vjepa2_clip": ("VJEPA2VideoProcessor", {"model_type": "vjepa2"}, {"crop_size": 256}),
    "qwen2_5_vl_clip": ("Qwen2VLVideoProcessor", {"model_type": "qwen2_5_vl"}, {}),
    "qwen3_vl_clip": ("Qwen3VLVideoProcessor", {"model_type": "qwen3_vl"}, {}),
    "qwen3_vl_clip_small": ("Qwen3VLVideoProcessor", {"model_type": "qwen3_vl"},
                            {"size": {"shortest_edge": 4096, "longest_edge": 150000}}),
    "glm4v_clip": ("Glm4vVideoProcessor", {"model_type": "glm4v"},
                   {"size": {"shortest_edge": 12544, "longest_edge": 400000}}),
}


def processor_of(name, kwargs):
    import transformers
    module = getattr(transformers, name, None)
    if module is None:  # lazily imported names of models that are not exported at the top
        raise SystemExit(f"transformers has no {name}")
    return module(**kwargs)


def planes_of(found, processor):
    """What a processor gives, as planes (channels, H, W), or (tiles * channels, H, W)."""
    pixels = found["pixel_values"].float().numpy()
    patch = getattr(processor, "patch_size", None)
    patch = patch if isinstance(patch, int) else None
    if "image_position_ids" in found:  # (1, patches, y x channel), (column, row), padded with -1
        at = np.asarray(found["image_position_ids"])[0]
        pixels, at = pixels[0][at[:, 0] >= 0], at[at[:, 0] >= 0]
        out = np.zeros((3, (at[:, 1].max() + 1) * patch, (at[:, 0].max() + 1) * patch), np.float32)
        for values, (column, row) in zip(pixels.reshape(-1, patch, patch, 3).transpose(0, 3, 1, 2), at):
            out[:, row * patch:(row + 1) * patch, column * patch:(column + 1) * patch] = values
        return out
    grid = next((found[key] for key in ("image_grid_thw", "image_grid_hws") if key in found), None)
    if grid is None:
        if pixels.ndim == 5:
            pixels = pixels[0]
        return pixels.reshape(-1, *pixels.shape[-2:])
    _, rows, columns = ([1, *np.asarray(grid)[0]])[-3:]
    merge = getattr(processor, "merge_size", 1)
    if type(processor).__name__.startswith(("PaddleOCR", "Kimi")):
        merge = 1
    if pixels.ndim == 2:
        pixels = pixels.reshape(len(pixels), 3, -1, patch, patch)[:, :, 0]
    pixels = pixels.reshape(len(pixels), 3, patch, patch)
    order = pixels.reshape(rows // merge, columns // merge, merge, merge, 3, patch, patch)
    return order.transpose(4, 0, 2, 5, 1, 3, 6).reshape(3, rows * patch, columns * patch)


def write_pictures(folder, photographs, count):
    """Photographs as they are, and cut to shapes that are narrow, small and large."""
    shapes = [None, (640, 40), (37, 500), (20, 25), (1400, 900), None, (333, 333), (13, 200), (700, 701), (56, 56)]
    paths = []
    for i, photograph in enumerate(photographs[:count]):
        image = ImageOps.exif_transpose(Image.open(photograph)).convert("RGB")
        shape = shapes[i % len(shapes)]
        if shape is not None:
            image = image.resize(shape, Image.Resampling.BICUBIC)
        paths.append(folder / f"{i:03}.png")
        image.save(paths[-1])
    return paths


def clip_planes(found, processor):
    """pixel_values_videos as (frames * channels, H, W)."""
    pixels = (found["pixel_values_videos"] if "pixel_values_videos" in found else found["pixel_values"]).float().numpy()
    if "video_grid_thw" not in found:
        return pixels.reshape(-1, *pixels.shape[-2:])
    steps, rows, columns = np.asarray(found["video_grid_thw"])[0]
    patch, merge, frames = processor.patch_size, processor.merge_size, processor.temporal_patch_size
    order = pixels.reshape(steps, rows // merge, columns // merge, merge, merge, 3, frames, patch, patch)
    return order.transpose(0, 6, 5, 1, 3, 7, 2, 4, 8).reshape(-1, rows * patch, columns * patch)


def indices_of(processor, total, count):
    """Which of `total` frames the processor takes for `count` frames; not all processors take that number."""
    from transformers.video_utils import VideoMetadata
    if type(processor).__name__.startswith("Glm"):
        return np.arange(count) * total // count  # by time only; here evenly
    metadata = VideoMetadata(total_num_frames=total, fps=24)
    return np.asarray(processor.sample_frames(metadata=metadata, num_frames=count))


def compare_clips(vit, rule, photographs, folder):
    name, config, kwargs = CLIPS[rule]
    processor = processor_of(name, kwargs)
    folder.mkdir()
    processor.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    num_equal, bad = 0, []
    cases = [(2, 2), (4, 4), (7, 4), (9, 6), (5, 3), (16, 8)]
    for i, (total, count) in enumerate(cases):
        image = Image.open(photographs[i]).convert("RGB")
        image = image.resize(((311, 200), (120, 333), (640, 480), (64, 50), (90, 24), (222, 222))[i])
        frames = [np.roll(np.asarray(image), 5 * k, 1) for k in range(total)]
        clip = folder / f"clip{i}"
        clip.mkdir()
        for k, frame in enumerate(frames):
            Image.fromarray(frame).save(clip / f"{k:03}.png")
        taken = np.stack([frames[k] for k in indices_of(processor, total, count)])
        wanted = clip_planes(processor(videos=[taken], do_sample_frames=False, return_tensors="pt"), processor)
        output = folder / "out.safetensors"
        output.unlink(missing_ok=True)
        run = subprocess.run([vit, "preprocess", "--model", folder, "--frames", str(count), clip, "--output", output,
                              "--progress", "never"], capture_output=True, text=True)
        found = load_file(output)["pixels"][0] if run.returncode == 0 else np.zeros(0)
        if found.shape == wanted.shape and found.tobytes() == np.ascontiguousarray(wanted).tobytes():
            num_equal += 1
        else:
            bad.append(f"{count} of {total} frames {image.size}: {found.shape} instead of {wanted.shape} "
                       f"{run.stderr.strip()}")
    print(f"{rule:22} {num_equal} of {len(cases)} clips equal")
    for line in bad:
        print("   ", line)
    return len(bad)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vit")
    parser.add_argument("photographs", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--rule", action="append", choices=sorted([*RULES, *CLIPS]))
    args = parser.parse_args()
    photographs = sorted(p for p in args.photographs.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if len(photographs) < args.count:
        raise SystemExit(f"{args.photographs}: {len(photographs)} photographs, {args.count} wanted")
    num_bad = 0
    with tempfile.TemporaryDirectory() as work:
        pictures = write_pictures(Path(work), photographs, args.count)
        for rule in args.rule or [*RULES, *CLIPS]:
            if rule in RULES:
                num_bad += compare(args.vit, rule, pictures, Path(work) / rule)
            else:
                num_bad += compare_clips(args.vit, rule, photographs, Path(work) / rule)
    raise SystemExit(1 if num_bad else 0)


def compare(vit, rule, pictures, folder):
    name, config, kwargs = RULES[rule]
    processor = processor_of(name, kwargs)
    folder.mkdir()
    processor.save_pretrained(folder)
    (folder / "config.json").write_text(json.dumps(config))
    digest, num_equal, refused, bad = hashlib.sha256(), 0, 0, []
    for picture in pictures:
        try:
            wanted = planes_of(processor(images=Image.open(picture), return_tensors="pt"), processor)
        except ValueError as error:
            wanted = str(error)
        output = folder / "out.safetensors"
        output.unlink(missing_ok=True)
        run = subprocess.run([vit, "preprocess", "--model", folder, picture, "--output", output, "--progress", "never"],
                             capture_output=True, text=True)
        if isinstance(wanted, str) or run.returncode:
            refused += 1
            if not (isinstance(wanted, str) and run.returncode):
                bad.append(f"{picture.name}: transformers: {wanted if isinstance(wanted, str) else wanted.shape}; "
                           f"vit: {run.stderr.strip()}")
            continue
        found = load_file(output)["pixels"][0]
        if found.shape == wanted.shape and found.tobytes() == np.ascontiguousarray(wanted).tobytes():
            num_equal += 1
            digest.update(found.tobytes())
        else:
            same = found.shape == wanted.shape
            how = f"{(found != wanted).mean():.2%} differ, by {abs(found - wanted).max():.3g}" if same else \
                f"{found.shape} instead of {wanted.shape}"
            bad.append(f"{picture.name} {Image.open(picture).size}: {how}")
    print(f"{rule:22} {num_equal} of {len(pictures)} equal, {refused - sum('transformers:' in b for b in bad)} "
          f"refused by both, sha256 {digest.hexdigest()[:16]}")
    for line in bad[:5]:
        print("   ", line)
    return len(bad)


if __name__ == "__main__":
    main()
