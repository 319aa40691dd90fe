#!/usr/bin/env python3
"""Whether published sizes are within the limits of the program: every class of transformers that cover_transformers.py tries, in
its default configuration, from a file that has the shapes of its weights only, and every architecture of timm's ViT-like modules by name.

    python3 tests/coverage/check_sizes.py VIT [--only PATTERN] [--verbose]

Needs timm, torch and transformers, no downloads. A class that is refused for another reason is cover_transformers.py's to list; here only limits count: an error that
says what a number must be. Exit status 1 if there is one.
"""

import argparse
import fnmatch
import json
import re
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import timm
import torch
import transformers

import tiny_models
from cover_timm import MODULES
from model_classes import CLASSES, Heads

LIMIT = re.compile(r"must be .* to .*, got|more than .* are possible|are possible|too (many|large)|beyond the limit", re.I)


BLOCKS = ("num_hidden_layers", "num_layers", "depth", "layers", "encoder_layers", "decoder_layers", "vision_layers")


def with_few_blocks(config):
    """Language models, which are not read, with at most two blocks, in place; towers as they are."""
    is_language = hasattr(config, "vocab_size")
    for key, value in list(vars(config).items()):
        if hasattr(value, "to_dict"):
            with_few_blocks(value)
        elif not is_language:
            continue
        elif key in BLOCKS and isinstance(value, int) and value > 2:
            setattr(config, key, 2)
        elif key == "layer_types" and isinstance(value, (list, tuple)):
            setattr(config, key, list(value)[:2])
        elif key in ("num_experts", "num_local_experts", "n_routed_experts") and isinstance(value, int):
            setattr(config, key, min(value, 2))
    return config


def write_shapes(model, path):
    """A file of weights in which only names and shapes are: the numbers are a hole."""
    header, end = {}, 0
    for name, tensor in model.state_dict().items():
        size = 2 * tensor.numel()
        header[name] = {"dtype": "BF16", "shape": list(tensor.shape), "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


def info(vit, *arguments):
    run = subprocess.run([vit, "info", *map(str, arguments)], capture_output=True, text=True)
    return run.returncode, run.stderr.strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vit", type=Path)
    parser.add_argument("--only", default="*")
    parser.add_argument("--verbose", action="store_true", help="print what is refused for other reasons, too")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    vit = options.vit.resolve()
    read, beyond, others = 0, [], []
    for name in sorted({case.name for case in CLASSES if not isinstance(case, Heads)}):
        if not fnmatch.fnmatch(name, options.only):
            continue
        try:
            cls = tiny_models.find_class(name)
            config = with_few_blocks(cls.config_class())
            config.architectures = [name]
            with torch.device("meta"):
                model = cls(config)
        except Exception as error:  # a configuration without defaults
            others.append(f"{name}: {type(error).__name__}: {error}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            config.save_pretrained(folder)
            write_shapes(model, Path(folder) / "model.safetensors")
            code, error = info(vit, "--model", folder)
        if code == 0:
            read += 1
        else:
            (beyond if LIMIT.search(error) else others).append(f"{name}: {error}")
    for module in MODULES:
        for name in timm.list_models(module=module):
            if not fnmatch.fnmatch(name, options.only):
                continue
            code, error = info(vit, "--architecture", name)
            if code == 0:
                read += 1
            else:
                (beyond if LIMIT.search(error) else others).append(f"{name}: {error}")
    print("\n".join(beyond))
    if options.verbose:
        print("\n".join(others))
    print(f"{read} published sizes are read, {len(beyond)} are beyond a limit, {len(others)} are refused for other reasons")
    sys.exit(bool(beyond))


if __name__ == "__main__":
    main()
