#!/usr/bin/env python3
"""Random arguments for the text towers of transformers: what a checkpoint may say is computed as the library does, from the characters of awkward texts to their vectors.

    python3 tests/coverage/draw_texts.py VIT [--only TYPE ...] [--draws 40] [--first 0]

Needs torch and transformers, no downloads; tokenizers are those of data/golden/tokenizers. A draw changes widths, heads, depth, activations, epsilons and what else the configuration of the text tower
has. Vectors (not normalized) may differ from the library's float64 run by max(3e-6, twice the error of its own float32 run). Prints each draw that is wrong, by which it can be repeated
(--first SEED --draws 1), and each refusal once. Exit status 1 if one is wrong.
"""

import json
import random
import shutil
import subprocess
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file

import tiny_models
from draw_transformers import draw_value, read_options, run_draws

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
    options = read_options("types")
    cases = [(f"{case[1]} {case[3]}", case) for case in CASES if not options.only or case[0] in options.only]
    run_draws(options, cases, lambda case, folder, seed, changed: compare(options.vit, case, seed, changed, folder), ValueError, ("refused", "impossible"))


if __name__ == "__main__":
    main()
