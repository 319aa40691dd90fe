"""Tokens per second of `vit tokenize` and of Hugging Face tokenizers, one thread each, in one run.

    python apps/bench/compare/tokenizers.py --vit build/release/vit FOLDER... [--library transformers|open_clip]

Ids are compared first. Rounds alternate; the median counts. vit's time is that of the whole program, reading and
writing JSON included, less that of a run on one text; Hugging Face's is that of the call on a list of strings.
"""

import argparse
import importlib
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
# This file has the name of the package that it measures.
sys.path = [p for p in sys.path if pathlib.Path(p or ".").resolve() != pathlib.Path(__file__).resolve().parent]

WORDS = "a photo of the small old cat dog red blue house with trees near beach at night café München running 3 12".split()


def captions(count):
    """Made up, all different, 4 to 24 words."""
    state = 1
    for i in range(count):
        words = []
        for _ in range(4 + i % 21):
            state = (1103515245 * state + 12345) % 2**31
            words.append(WORDS[state // 65536 % len(WORDS)])
        yield f"{' '.join(words)} {i}."


def reference(folder, library):
    """What encodes a list of texts, as the library does it."""
    transformers = importlib.import_module("transformers")
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    if library == "transformers":
        return lambda texts: tokenizer(texts).input_ids
    open_clip = importlib.import_module("open_clip.tokenizer")
    if type(tokenizer).__name__.startswith("CLIP"):
        simple = open_clip.SimpleTokenizer()
        return lambda texts: [[simple.sot_token_id, *simple.encode(t), simple.eot_token_id] for t in texts]
    rule = "whitespace" if type(tokenizer).__name__.startswith("XLM") else "canonicalize"
    clean = open_clip.get_clean_fn(rule)
    return lambda texts: tokenizer([clean(t) for t in texts]).input_ids


def run_vit(options, folder, file):
    start = time.perf_counter()
    command = [options.vit, "tokenize", "--tokenizer", folder, "--library", options.library, "--text-file", str(file)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, lines


def measure(options, folder, scratch):
    texts = list(captions(options.texts))
    many, one = scratch / "many.jsonl", scratch / "one.jsonl"
    many.write_text("".join(json.dumps({"text": t}) + "\n" for t in texts))
    one.write_text(json.dumps({"text": texts[0]}) + "\n")
    encode = reference(folder, options.library)
    expected = encode(texts)
    found = [json.loads(line)["ids"] for line in run_vit(options, folder, many)[1].splitlines()]
    if found != expected:
        raise SystemExit(f"{folder}: ids differ")
    tokens = sum(map(len, expected))
    ours, theirs = [], []
    for _ in range(options.rounds):
        ours.append(run_vit(options, folder, many)[0] - run_vit(options, folder, one)[0])
        start = time.perf_counter()
        encode(texts)
        theirs.append(time.perf_counter() - start)
    rate = [tokens / statistics.median(times) / 1e6 for times in (ours, theirs)]
    print(f"{pathlib.Path(folder).name:20} {rate[0]:8.2f} {rate[1]:8.2f} {rate[0] / rate[1]:6.1f}x", flush=True)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("folders", nargs="+")
parser.add_argument("--vit", required=True)
parser.add_argument("--library", default="transformers", choices=["transformers", "open_clip"])
parser.add_argument("--texts", type=int, default=20_000)
parser.add_argument("--rounds", type=int, default=5)
arguments = parser.parse_args()
print(f"{arguments.library}: million tokens per second\n{'':20} {'vit':>8} {'library':>8}")
with tempfile.TemporaryDirectory() as folder_name:
    for path in arguments.folders:
        measure(arguments, path, pathlib.Path(folder_name))
