#!/usr/bin/env python3
"""Which published tags of timm's ViT-like modules the program runs, by trying: a small random instance of each architecture is saved by timm,
read by the program, and computed by both.

    python3 tests/coverage/cover_timm.py VIT                    write the table into tests/coverage/README.md
    python3 tests/coverage/cover_timm.py VIT --check            exit with 1 if the table is not current: a tag that ran no longer does, or one is new
    python3 tests/coverage/cover_timm.py VIT --only PATTERN     these architectures, with what was found

Needs torch and timm, no downloads. Everything of an architecture that is no size is kept; width, depth, heads and image are small. Its tags, which share the
code and differ in weights and preprocessing, are equal if every output that both have differs by at most max(3e-6, twice the error of timm's own float32 run), of
the largest value of timm's float64 run.
"""

import argparse
import fnmatch
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import timm
import torch
from timm.models import save_for_hf

import tiny_models
from cover_transformers import LIMIT, is_missing, refusal, update_readme, vit_output

BEGIN, END = "<!-- cover_timm.py: begin -->", "<!-- cover_timm.py: end -->"
MODULES = ("vision_transformer", "eva", "deit", "beit", "vision_transformer_relpos", "vision_transformer_sam", "naflexvit", "qwen3_vit", "deepseek_vit",
           "gemma4_vit")
# Modules whose models are neither plain encoders nor hierarchies of a known kind, or are built of convolutions: looked at, and left out.
LEFT_OUT = ("cait", "vision_transformer_hybrid", "volo", "xcit", "hiera", "swin_transformer", "swin_transformer_v2", "swin_transformer_v2_cr")
# Names in which a module's text says Transformer, which new ones would as well.
SOUNDS_LIKE = re.compile(r"vit|transformer|^eva|^beit|^deit")
SMALL = {"embed_dim": 48, "depth": 3, "num_heads": 3}
OF_MODULE = {"vision_transformer_sam": {"global_attn_indexes": (1,), "window_size": 3, "neck_chans": 24}}
# Edges of images that are possible, where names do not say the patch; 0: the model's own, which tables depend on.
EDGES = {"qwen3_vit": 64, "deepseek_vit": 56, "gemma4_vit": 96, "naflexvit": 0}


# Of names that need more, in place of those above.
OF_NAME = ((r"_sapiens2$", {"embed_dim": 64, "depth": 3, "num_heads": 4, "num_kv_heads": (4, 2, 4)}),)


def patch_of(name):
    found = re.search(r"patch(\d+)", name)
    return int(found[1]) if found else 16


def attempts(name, module):
    """Arguments that make a model small, the smallest first: what a constructor does not take is left out."""
    of_module = OF_MODULE.get(module, {}) | next((more for pattern, more in OF_NAME if re.search(pattern, name)), {})
    patch = patch_of(name)
    for size in (EDGES[module],) if module in EDGES else (4 * patch, 6 * patch, 0):
        image = {"img_size": size} if size else {}
        yield {**SMALL, **of_module, **image}
        yield {**SMALL, **image}
    yield {"depth": 2}
    yield {}


def small_model(name, module):
    """A random instance, and the arguments with which it is made."""
    problem = None
    for arguments in attempts(name, module):
        torch.manual_seed(0)
        try:
            model = timm.create_model(name, pretrained=False, **arguments)
        except Exception as error:  # arguments that this constructor does not take, or that do not fit each other
            problem = problem or error
            continue
        if sum(parameter.numel() for parameter in model.parameters()) > 60_000_000:
            problem = RuntimeError("it stays large")
            continue
        return tiny_models.randomize(model, 1).float(), arguments
    raise RuntimeError(f"{type(problem).__name__}: {problem}")


def outputs_of(model, pixels):
    """The outputs of timm by the program's names."""
    out = {}
    features = model.forward_features(pixels)
    if torch.is_tensor(features):
        # Or what the language model gets; a neck of convolutions gives channels first.
        out["tokens"] = features[0].permute(1, 2, 0) if type(model).__name__ == "VisionTransformerSAM" else features[0]
    try:
        out["pooled"] = model.forward_head(features, pre_logits=True)[0]
        if getattr(model, "num_classes", 0):
            out["logits"] = model.forward_head(features)[0]
    except NotImplementedError:  # a tower of a language model, whose output is that of the whole
        out["tokens"] = model(pixels)[0]
    return {name: value for name, value in out.items() if torch.is_tensor(value)}


def compare(vit, name, module, folder):
    """(state, note) of one architecture."""
    model, arguments = small_model(name, module)
    config = model.pretrained_cfg
    size = arguments.get("img_size")
    edge = size if size is not None else config["input_size"][-1]
    save_for_hf(model, folder, model_args={key: value for key, value in arguments.items() if key != "img_size"} | ({"img_size": size} if size else {}),
                safe_serialization=True)
    pixels = tiny_models.pixels_of(edge, edge, 1, config["input_size"][0])
    with torch.no_grad():
        single = outputs_of(model, torch.from_numpy(pixels))
        double = outputs_of(model.double(), torch.from_numpy(pixels).double())
    compared, notes, first_error = 0, [], ""
    for feature, wanted in double.items():
        wanted = wanted.contiguous().numpy()
        found, error = vit_output(vit, folder, pixels, feature)
        if feature == "tokens" and (found is None or found.size != wanted.size):
            found, error = vit_output(vit, folder, pixels, "merged")
        if found is None:
            first_error = first_error or error
            if not is_missing(error):
                return "refused" if "unknown architecture" in error else refusal(error), error
            continue
        if found.size != wanted.size:
            return "wrong", f"{feature}: {found.shape} instead of {wanted.shape}"
        largest = np.abs(wanted).max()
        off = np.abs(found.reshape(-1) - wanted.reshape(-1)).max() / largest
        own = np.abs(single[feature].numpy().reshape(-1) - wanted.reshape(-1)).max() / largest
        notes.append(f"{feature} {off:.1e} ({own:.1e})")
        if not off <= max(LIMIT, 2 * own):
            return "wrong", "; ".join(notes)
        compared += 1
    return ("equal", "; ".join(notes)) if compared else ("another output", first_error)


def try_architecture(vit, name, module):
    folder = Path(tempfile.mkdtemp(prefix="cover-"))
    try:
        return compare(vit, name, module, folder)
    except Exception as error:  # timm cannot make or run it so: to be repaired in this script
        return "not tried", f"{type(error).__name__}: {str(error)[:200]}"
    finally:
        shutil.rmtree(folder)


def new_modules():
    """Modules of the installed release that sound like transformers of images and are in neither list."""
    known = set(MODULES) | set(LEFT_OUT) | {
        "coat", "convit", "crossvit", "davit", "efficientvit_mit", "efficientvit_msra", "efficientvim", "fastvit", "gcvit", "levit", "maxxvit", "mobilevit",
        "mvitv2", "nextvit", "pit", "repvit", "shvit", "swiftformer", "tiny_vit", "twins", "hieradet_sam2", "csatv2", "vitamin"}
    return sorted(module for module in timm.list_modules() if SOUNDS_LIKE.search(module) and module not in known)


def table_of(results, tags):
    lines, total, equal = [], 0, 0
    for module in MODULES:
        mine = [(name, state) for name, (of, state, _) in results.items() if of == module]
        count = sum(tags[name] for name, _ in mine)
        good = sum(tags[name] for name, state in mine if state == "equal")
        total, equal = total + count, equal + good
        bad = ", ".join(f"{name} ({state}, {tags[name]})" for name, state in mine if state != "equal" and tags[name])
        architectures = sum(state == "equal" for _, state in mine)
        lines.append(f"| {module} | {count} | {good} | {architectures} of {len(mine)} | {bad} |")
    return "\n".join([f"timm {timm.__version__}: {equal} of {total} published tags of ViT-like modules are equal.", "",
                      "| module | tags | equal | architectures | not, and their tags |", "|---|---|---|---|---|", *lines])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vit", type=Path)
    parser.add_argument("--only", help="architectures of this pattern")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    vit = options.vit.resolve()
    tags = Counter(tag.split(".")[0] for tag in timm.list_pretrained())
    results = {}
    for module in MODULES:
        for name in timm.list_models(module=module):
            if options.only and not fnmatch.fnmatch(name, options.only):
                continue
            state, note = try_architecture(vit, name, module)
            results[name] = (module, state, note)
            if options.only or state != "equal":
                print(f"{name:44} {tags[name]:3} {state:12} {note}", flush=True)
    if options.only:
        sys.exit(any(state != "equal" for _, state, _ in results.values()))
    fresh = new_modules()
    if fresh:
        print("modules that no list has:", ", ".join(fresh))
    update_readme(BEGIN, table_of(results, tags), END, options.check, fresh)


if __name__ == "__main__":
    main()
