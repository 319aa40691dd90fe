#!/usr/bin/env python3
"""Random arguments for the text towers of transformers: what a checkpoint may say is computed as the library does, from the characters of awkward texts to their vectors.

    python3 tests/coverage/draw_texts.py VIT [--only TYPE ...] [--draws 40] [--first 0]

Needs torch and transformers, no downloads; tokenizers are those of data/golden/tokenizers. A draw changes widths, heads, depth, activations, epsilons and what else the configuration of the text tower
has. Vectors (not normalized) may differ from the library's float64 run by max(3e-6, twice the error of its own float32 run). Prints each draw that is wrong, by which it can be repeated
(--first SEED --draws 1), and each refusal once. Exit status 1 if one is wrong.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file

import tiny_models
from draw_transformers import draw_value

TOKENIZERS = Path(__file__).resolve().parents[2] / "data/golden/tokenizers"
# Type, class, its tokenizer and the folder of one, whether padding is masked.
CASES = [("clip", "CLIPModel", "CLIPTokenizer", "clip", True), ("siglip", "SiglipModel", "SiglipTokenizer", "siglip", False),
         ("metaclip_2", "MetaClip2Model", "XLMRobertaTokenizer", "xlm-roberta", True), ("chinese_clip", "ChineseCLIPModel", "BertTokenizer", "bert", True),
         ("chinese_clip", "ChineseCLIPModel", "BertTokenizer", "bert-list", True), ("altclip", "AltCLIPModel", "XLMRobertaTokenizer", "xlm-roberta", True)]
TEXTS = ["a photo of a cat", "", "A Photo of TWO Dogs, 12 km!", "\u4e00\u53ea\u732b\u7684\u7167\u7247\u3002", "caf\u00e9 in Stra\u00dfburg", "\U0001f600 \U0001f468\u200d\U0001f469\u200d\U0001f467", "it's <pad> [PAD] </s> here",
         " ".join(["model"] * 90), "\u041f\u0440\u0438\u0432\u0435\u0442"]


def make(case, seed, changed, folder):
    """A model of drawn arguments with its tokenizer in `folder`."""
    kind, name, tokenizer, files, _ = case
    pick = random.Random(f"{name} {files} {seed}")
    for file in (TOKENIZERS / files).iterdir():
        if file.name not in ("strings.jsonl", "config.json"):
            shutil.copy(file, folder)
    tokens = getattr(transformers, tokenizer).from_pretrained(folder)
    cls = tiny_models.find_class(name)
    config = tiny_models.reduce_config(cls.config_class())
    text = config.text_config
    for key, value in sorted(vars(text).items()):
        other = draw_value(pick, key, value) if pick.random() < 0.5 and not key.startswith("_") else value
        if other != value:
            setattr(text, key, other)
            changed[key] = other
    text.vocab_size = len(tokens)
    context = pick.choice((20, 24))
    text.max_position_embeddings = context + (text.pad_token_id + 1 if kind == "altclip" else 0)
    for key, values in (("project_dim", (24, 44, 80)), ("type_vocab_size", (1, 2))):
        if hasattr(text, key):
            setattr(text, key, pick.choice(values))
    if kind in ("clip", "metaclip_2"):
        text.eos_token_id = tokens.eos_token_id
    torch.manual_seed(seed)
    config._attn_implementation = "eager"
    model = tiny_models.randomize(cls(config), seed).float().eval()
    model.save_pretrained(folder)
    return model, tokens, context


def compare(vit, case, seed, changed, folder):
    model, tokens, context = make(case, seed, changed, folder)
    rows = tokens(TEXTS, padding="max_length", truncation=True, max_length=context, return_tensors="pt")
    given = {"input_ids": rows["input_ids"]}
    if case[4]:
        given["attention_mask"] = rows["attention_mask"]
    with torch.no_grad():
        single = model.get_text_features(**given).pooler_output.double()
        exact = model.double().get_text_features(**given).pooler_output
    (folder / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    out = folder / "out.safetensors"
    done = subprocess.run([vit, "embed", "--model", folder, "--text-file", folder / "texts.jsonl", "--output", out], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return "refused", done.stderr.strip().splitlines()[-1]
    found = load_file(out)["text"].double()
    scale = max(exact.abs().max().item(), 1e-30)
    error, own = ((other - exact).abs().max().item() / scale for other in (found, single))
    return ("equal" if error <= max(3e-6, 2 * own) else "wrong"), f"{error:.1e}, its own {own:.1e}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vit", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help="types")
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    states, said = Counter(), set()
    for case in CASES:
        if options.only and case[0] not in options.only:
            continue
        for seed in range(options.first, options.first + options.draws):
            changed = {}
            folder = Path(tempfile.mkdtemp(prefix="draw-"))
            try:
                state, note = compare(options.vit.resolve(), case, seed, changed, folder)
            except ValueError as error:  # arguments that do not fit each other in the library
                state, note = "impossible", str(error)
            finally:
                shutil.rmtree(folder)
            states[state] += 1
            message = f"{case[1]} {note[-100:]}"
            if state == "wrong" or (state != "equal" and message not in said):
                said.add(message)
                print(f"{case[1]} {case[3]} {seed} {state} {changed} {note[:220]}", flush=True)
    print(", ".join(f"{count} {state}" for state, count in states.most_common()))
    sys.exit(states["wrong"] != 0)


if __name__ == "__main__":
    main()
