#!/usr/bin/env python3
"""Which configurations of OpenCLIP the program runs, by trying: a small random instance of each is saved as OpenCLIP publishes its models, read by the program, and
its image tower computed by both.

    python3 tests/coverage/cover_open_clip.py VIT [--check] [--only PATTERN]

Needs torch, timm and open_clip, no downloads. What is no size of a configuration is kept; width, depth, heads and image are small. Towers of timm keep their architecture and are made
with three blocks. Texts of other libraries (hf_model_name) need the hub: their configurations are tried without them. Equal: within max(3e-6, twice the error of the library's own float32 run) of
its float64 run, relative to the largest value. Exit status 1 with --check if one is wrong.
"""

import argparse
import contextlib
import copy
import fnmatch
import json
import shutil
import sys
import tempfile
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import open_clip
import timm
import torch
from open_clip import model as parts
from safetensors.torch import save_file

from cover_timm import attempts
from cover_transformers import LIMIT, is_missing, refusal, vit_output

TEXT = {"width": 32, "heads": 2, "layers": 2, "vocab_size": 64, "context_length": 16}
LEFT_OUT = ("vit_", "eva", "naflexvit", "PE-")  # timm's towers that are ViTs


def small(config):
    """The configuration of a small model of the same kind, or the reason why there is none."""
    config = copy.deepcopy(config)
    vision, text = config["vision_cfg"], config["text_cfg"]
    if "timm_model_name" in vision:
        if not vision["timm_model_name"].startswith(LEFT_OUT):
            return None, "no ViT"
    elif not isinstance(vision.get("layers"), int):
        return None, "no ViT"
    else:
        patch = vision["patch_size"]
        vision.update(width=64, layers=3, head_width=16, image_size=4 * patch)
    config["embed_dim"] = 24
    if "hf_model_name" in text:
        for key in [key for key in text if key.startswith("hf_") or key in ("proj", "pooler_type", "proj_type")]:
            text.pop(key)
        text.pop("tokenizer_kwargs", None)
    text.update(TEXT)
    if "multimodal_cfg" in config:
        config["multimodal_cfg"].update({key: value for key, value in TEXT.items() if key in config["multimodal_cfg"]})
    return config, ""


def small_timm(create):
    """timm.create_model of few blocks."""
    def make(name, **kwargs):
        for sizes in attempts(name, "vision_transformer"):
            with contextlib.suppress(TypeError, ValueError, AssertionError, RuntimeError):
                return create(name, **{**kwargs, **{key: value for key, value in sizes.items() if key != "img_size"}})
        raise ValueError(f"timm makes no small {name}")
    return make


def make(config):
    kwargs = copy.deepcopy(config)
    custom = kwargs.pop("custom_text", False)
    cls = parts.CustomTextCLIP if custom or "timm_model_name" in kwargs["vision_cfg"] else parts.CLIP
    if "multimodal_cfg" in kwargs:
        from open_clip.coca_model import CoCa
        cls = CoCa
    return cls(**kwargs).eval()


def model_sizes(model):
    """What the name of a timm tower does not say: sizes of the small one."""
    trunk = getattr(model.visual, "trunk", None)
    if trunk is None:
        return {}
    return {"embed_dim": trunk.embed_dim, "depth": len(trunk.blocks), "num_heads": trunk.blocks[0].attn.num_heads}


def compare(vit, config, folder, seed):
    torch.manual_seed(seed)
    model = make(config)
    for tensor in model.parameters():
        if tensor.ndim <= 1 and tensor.numel() > 1:
            torch.nn.init.normal_(tensor, 0.5 if bool((tensor == 1).all()) else 0.0, 0.2)
    size = model.visual.image_size
    size = (size, size) if isinstance(size, int) else tuple(size)
    preprocess = {"mean": [0.5] * 3, "std": [0.5] * 3, "interpolation": "bicubic", "resize_mode": "squash"}
    (folder / "open_clip_config.json").write_text(json.dumps({"model_cfg": config, "preprocess_cfg": preprocess}))
    save_file({name: tensor.contiguous().clone() for name, tensor in model.state_dict().items()}, folder / "open_clip_model.safetensors")
    pixels = np.random.default_rng(seed).standard_normal((1, 3, *size)).astype(np.float32)
    with torch.no_grad():
        single = model.encode_image(torch.from_numpy(pixels), normalize=False).numpy()
        wanted = model.double().encode_image(torch.from_numpy(pixels).double(), normalize=False).numpy()
    changed = [word for key, value in model_sizes(model).items() for word in ("--set", f"{key}={value}")]
    found, error = vit_output(vit, folder, pixels, "projected", *changed)
    if found is None and is_missing(error):
        found, error = vit_output(vit, folder, pixels, "pooled", *changed)
    if found is None:
        return "refused" if "is known here" in error else refusal(error), error
    if found.size != wanted.size:
        return "wrong", f"{found.shape} instead of {wanted.shape}"
    largest = np.abs(wanted).max()
    error, own = (np.abs(values.reshape(-1) - wanted.reshape(-1)).max() / largest for values in (found, single))
    return ("equal" if error <= max(LIMIT, 2 * own) else "wrong"), f"{error:.1e} ({own:.1e})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vit", type=Path)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="*")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    timm.create_model = small_timm(timm.create_model)
    vit, counts, notes = options.vit.resolve(), Counter(), defaultdict(list)
    for seed, name in enumerate(fnmatch.filter(sorted(open_clip.list_models()), options.only)):
        config, state = small(open_clip.get_model_config(name))
        note = ""
        if config is not None:
            folder = Path(tempfile.mkdtemp(prefix="cover-"))
            try:
                state, note = compare(vit, config, folder, seed)
            except Exception as error:  # to be repaired in this script
                state, note = "not tried", f"{type(error).__name__}: {error}"
            finally:
                shutil.rmtree(folder)
        counts[state] += 1
        if state not in ("equal", "no ViT"):
            notes[state].append(f"{name}: {note[:300]}")
        elif options.only != "*":
            notes[state].append(f"{name}: {note}")
    for state, lines in sorted(notes.items()):
        print(f"{state}:\n  " + "\n  ".join(lines))
    print(f"open_clip {open_clip.__version__}: " + ", ".join(f"{count} {state}" for state, count in counts.most_common()))
    sys.exit(bool(options.check and (counts["wrong"] or counts["not tried"])))


if __name__ == "__main__":
    main()
