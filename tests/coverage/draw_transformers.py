#!/usr/bin/env python3
"""Random arguments for every class that cover_transformers.py tries: what a checkpoint may say besides the defaults is computed as the library does, or refused by name.

    python3 tests/coverage/draw_transformers.py VIT [--only TYPE_OR_CLASS ...] [--draws 40] [--first 0]

Needs torch, torchvision and transformers, no downloads. A draw changes some arguments of the configuration of the tower and of what reads it: activations, epsilons, biases,
switches, widths, heads, depth. Draws that the library cannot make or run do not count. Prints each draw that is wrong with its arguments, by which it can be repeated
(--first SEED --draws 1), and each refusal once. Exit status 1 if one is wrong.
"""

import argparse
import random
import re
import shutil
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import torch
import transformers

import tiny_models
from cover_transformers import compare
from model_classes import CLASSES, Heads

ACTIVATIONS = ("gelu", "quick_gelu", "gelu_pytorch_tanh", "relu", "silu")
EPSILONS = (1e-6, 1e-5, 1e-12, 1e-4)
# Switches of training, generation and reports, of which no output depends, and those that choose other classes of outputs.
NO_SWITCH = re.compile(r"output_|return_|use_cache|is_decoder|is_encoder|add_cross|tie_|gradient|chunk|torchscript|problem|dropout|initializer|_attn|prun|use_mask|mask_token|"
                       r"remove_invalid|vocab|reshape|apply_layernorm|is_composition|do_|auxiliary|loss|backbone|stage|feature")


def draw_value(pick, key, value):
    """Another value of an argument, or the same."""
    if isinstance(value, bool):
        return value if NO_SWITCH.search(key) else pick.random() < 0.5
    if isinstance(value, str):
        return pick.choice(ACTIVATIONS) if re.search(r"act$|activation|act_fn", key) and value in ACTIVATIONS else value
    if isinstance(value, float) and re.search(r"norm_?eps|layer_norm_epsilon|_eps$", key):
        return pick.choice(EPSILONS)
    if isinstance(value, float) and key == "rope_theta":
        return pick.choice((100.0, 10000.0, 5000.0))
    if isinstance(value, float) and key == "layerscale_value":
        return pick.choice((0.1, 1.0, 1e-5))
    if not isinstance(value, int):
        return value
    if key in ("num_hidden_layers", "depth", "num_layers"):
        return pick.randint(max(1, value - 1), value)
    if key in ("intermediate_size", "mlp_dim"):
        return pick.choice((value, 20, 56, 72))
    if key in ("num_attention_heads", "num_heads", "attention_heads") and value == 4:
        return pick.choice((1, 2, 4))
    if key == "num_register_tokens":
        return pick.randint(0, 5)
    if key in ("mlp_ratio",):
        return pick.choice((1, 2, 4))
    return value


def draw_config(config, pick, changed):
    """Draws arguments in place; those of the parts as well, but of language models."""
    is_language = hasattr(config, "vocab_size") and not hasattr(config, "vision_config")
    for key, value in sorted(vars(config).items()):
        if hasattr(value, "to_dict"):
            if "text" not in key and "llm" not in key:
                draw_config(value, pick, changed)
        elif not is_language and not key.startswith("_") and pick.random() < 0.4:
            if key == "num_hidden_layers" and getattr(config, "_out_indices", None):
                continue  # the stages that are handed out would not exist
            other = draw_value(pick, key, value)
            if other != value:
                setattr(config, key, other)
                changed[key] = other
    return config


def make_drawn(seed, changed):
    """tiny_models.make with drawn arguments."""
    def make(name, _, image, patch, changes):
        pick = random.Random(f"{name} {seed}")
        cls = tiny_models.find_class(name)
        torch.manual_seed(seed)
        config = draw_config(tiny_models.reduce_config(cls.config_class(), image, patch, changes), pick, changed)
        config._attn_implementation = "eager"
        return tiny_models.randomize(cls(config), seed).float()
    return make


def read_options(what):
    parser = argparse.ArgumentParser()
    parser.add_argument("vit", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help=what)
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    options.vit = options.vit.resolve()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    return options


def run_draws(options, cases, try_one, impossible, shown):
    """Tries the draws of each (name, case) by try_one(case, folder, seed, changed), which notes what it changed and returns a state and a note; exceptions of the type `impossible` are those of arguments
    that do not fit each other in the library. Prints what is wrong, and each note of the states `shown` once. Ends with exit status 1 if a draw is wrong."""
    states, said = Counter(), set()
    for name, case in cases:
        for seed in range(options.first, options.first + options.draws):
            changed = {}
            folder = Path(tempfile.mkdtemp(prefix="draw-"))
            try:
                state, note = try_one(case, folder, seed, changed)
            except impossible as error:
                state, note = "impossible", f"{type(error).__name__}: {error}"
            finally:
                shutil.rmtree(folder)
            states[state] += 1
            message = f"{name} {re.sub(r'/tmp/[^ :]*', '', note)[:150]}"
            if state == "wrong" or (state in shown and message not in said):
                said.add(message)
                print(f"{name} {seed} {state} {changed} {note[:220]}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in states.most_common()))
    sys.exit(states["wrong"] != 0)


def main():
    options = read_options("types or classes")
    plain = tiny_models.make

    def try_one(case, folder, seed, changed):
        tiny_models.make = make_drawn(seed, changed)
        try:
            return compare(options.vit, case, folder, seed)
        finally:
            tiny_models.make = plain

    cases = [(case.name, case) for case in CLASSES
             if not isinstance(case, Heads) and (not options.only or case.type in options.only or case.name in options.only)]
    run_draws(options, cases, try_one, Exception, ("refused", "misleading"))


if __name__ == "__main__":
    main()
