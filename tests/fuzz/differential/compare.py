#!/usr/bin/env python3
"""Compares the readers of the library with those that they follow, on damaged files.

    tests/fuzz/differential/compare.py images|safetensors|pickle|json|tokenizers VIT_REPLAY [--rounds N] [--keep DIR]

Both must agree, or both refuse. What differs is counted by its cause and, with --keep, kept. Needs Pillow, safetensors,
torch, and tokenizers, each for its part.
"""

import argparse
import io
import json
import math
import pathlib
import re
import tempfile
import warnings
import zlib

from replay import ROOT, Replay, Tally, damaged, random_of

GOLDEN = ROOT / "data" / "golden"


def cause(message):
    """A message without names and numbers, so that like ones count together."""
    return re.sub(r"\d+", "N", re.sub(r"^\[[^]]*\] \S*: ", "", message))[:110]


def compare(name, arguments, kind, make, expected, same):
    """expected(data, path) gives what the other reader says, or raises; same(theirs, ours) whether that is it."""
    rng = random_of(arguments.seed)
    tally = Tally(name, arguments.keep)
    replay = Replay(arguments.program)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        path = pathlib.Path(folder) / "input"
        for _ in range(arguments.rounds):
            data = make(rng)
            path.write_bytes(data)
            ours = replay.ask(kind, path)
            try:
                theirs = expected(data, path)
            except Exception as error:  # whatever a reader refuses with
                if "error" in ours:
                    tally.add("both refuse")
                else:
                    tally.add("read only by us", data, f"{type(error).__name__}: {cause(str(error))}")
                continue
            if "error" in ours:
                tally.add("read only by them", data, cause(ours["error"]))
            elif same(theirs, ours):
                tally.add("equal")
            else:
                tally.add("different", data, kind)
    tally.report()
    return tally


def images(arguments):
    from PIL import Image, ImageFile

    ImageFile.LOAD_TRUNCATED_IMAGES = False
    warnings.simplefilter("ignore")
    groups = {}
    for path in sorted((GOLDEN / "preprocess" / "decode").iterdir()):
        if path.suffix not in (".avif", ".heic"):
            groups.setdefault(path.suffix, []).append(path.read_bytes())
    for extra in (pathlib.Path(__file__).resolve().parents[1] / "corpus").glob("*/*"):
        suffix = {"jpeg": ".jpg", "png": ".png", "tiff": ".tif", "webp": ".webp", "bmp": ".bmp", "pnm": ".ppm",
                  "gif": ".gif", "jpeg2000": ".jp2"}.get(extra.parent.name)
        if suffix:
            groups.setdefault(suffix, []).append(extra.read_bytes())

    def expected(data, path):
        del path
        with Image.open(io.BytesIO(data)) as image:
            if image.width * image.height > 1 << 20:
                raise ValueError("too many pixels")
            rgb = image.convert("RGB")
        return {"width": rgb.width, "height": rgb.height, "crc": zlib.crc32(rgb.tobytes())}

    for suffix, seeds in groups.items():
        if arguments.only and suffix not in arguments.only:
            continue
        print(f"--- {suffix}, {len(seeds)} seeds")
        compare("images" + suffix, arguments, "image", lambda rng, seeds=seeds: damaged(seeds, rng), expected,
                lambda theirs, ours: theirs == ours)


def safetensors(arguments):
    import safetensors as reference
    import struct
    import numpy

    header = (b'{"__metadata__":{"format":"pt"},"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},'
              b'"h":{"dtype":"F16","shape":[2],"data_offsets":[16,20]},'
              b'"e":{"dtype":"F64","shape":[0,3],"data_offsets":[20,20]},'
              b'"i":{"dtype":"I8","shape":[1,4],"data_offsets":[20,24]}}')
    seeds = [struct.pack("<Q", len(header)) + header + bytes(range(24)), struct.pack("<Q", 2) + b"{}"]

    def make(rng):
        # Half the time only the header is damaged, after a length that fits.
        if rng.random() < 0.5:
            return damaged(seeds, rng)
        changed = damaged([header], rng)
        return struct.pack("<Q", len(changed)) + changed + bytes(range(24))

    def expected(data, path):
        del path
        tensors = dict(reference.deserialize(data))
        return {name: (tensor["dtype"], list(tensor["shape"]), bytes(tensor["data"]))
                for name, tensor in tensors.items()}

    floats = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}

    def same(theirs, ours):
        ours = {name: (dtype, shape, crc) for name, dtype, shape, crc in ours["tensors"]}
        if set(ours) != set(theirs):
            return False
        for name, (dtype, shape, data) in theirs.items():
            if ours[name][:2] != (dtype, shape):
                return False
            if dtype in floats:
                numbers = numpy.frombuffer(data, floats[dtype]).astype("<f8")
                if zlib.crc32(numbers.tobytes()) != ours[name][2]:
                    return False
        return True

    compare("safetensors", arguments, "safetensors", make, expected, same)


def pickle(arguments):
    import torch

    warnings.simplefilter("ignore")
    seeds = [path.read_bytes() for path in sorted((GOLDEN / "pickle").glob("*.pth"))]
    seeds = [seed for seed in seeds if seed.startswith(b"PK") and len(seed) < 20000]

    def flat(value, out):
        if isinstance(value, torch.Tensor):
            out.append(value)
        elif isinstance(value, dict):
            for item in value.values():
                flat(item, out)
        return out

    def expected(data, path):
        del data
        tensors = flat(torch.load(path, map_location="cpu", weights_only=True), [])
        if not tensors:
            raise ValueError("no tensors")
        return tensors

    def same(theirs, ours):
        # We take one set of the tensors that a training run leaves: each of ours must be one of theirs.
        known = {(tuple(t.shape), zlib.crc32(t.detach().to(torch.float64).contiguous().numpy().tobytes()) if t.is_floating_point() else 0)
                 for t in theirs}
        return all((tuple(shape), crc) in known for _, _, shape, crc in ours["tensors"])

    compare("pickle", arguments, "pickle", lambda rng: damaged(seeds, rng), expected, same)


def json_texts(arguments):
    seeds = [b'{"a": [1, -2.5e-3, 1E400, "\\u00e9\\ud83d\\ude00\\n"], "b": {"c": null, "d": true, "e": false}, "": 0}',
             b'[18446744073709551615, -9223372036854775808, 0.1, 1e-320, [], {}, "\xc3\xa9\xf0\x9f\x98\x80", 123456789012345678901234567890]',
             b' [0, -0, 0.0, 1.5E+2, 9007199254740993, "\\/\\b\\f\\r\\t\\"\\\\"]\n']

    def unique(pairs):
        keys = [key for key, _ in pairs]
        if len(set(keys)) != len(keys):
            raise ValueError("duplicate key")
        return dict(pairs)

    def refuse(constant):
        raise ValueError(constant)

    def number(text):
        value = float(text)
        if math.isinf(value):
            raise ValueError("beyond a double")
        return value

    def whole(text):
        value = int(text)
        return value if -2**63 <= value < 2**63 else number(text)

    def expected(data, path):
        del path
        value = json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse, parse_float=number,
                           parse_int=whole)
        json.dumps(value, ensure_ascii=False).encode("utf-8")  # lone surrogates are no text
        return value

    def equal(a, b):
        if isinstance(a, dict):
            return isinstance(b, dict) and list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
        if isinstance(a, list):
            return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
        return a == b and isinstance(a, bool) == isinstance(b, bool)

    def value(rng, depth):
        kind = rng.randrange(9 if depth else 7)
        if kind == 0:
            return rng.choice(("null", "true", "false"))
        if kind < 3:
            return "".join(rng.choice("0123456789") for _ in range(rng.randint(1, 20)))
        if kind < 5:
            return repr(rng.choice((-1, 1)) * rng.random() * 10.0 ** rng.randint(-320, 308))
        if kind < 7:
            return json.dumps(any_text(rng, ["a"]), ensure_ascii=rng.random() < 0.5)
        space = rng.choice(("", " ", "\n\t", "\r"))
        items = [value(rng, depth - 1) for _ in range(rng.randrange(4))]
        if kind == 7:
            return "[" + space + ("," + space).join(items) + "]" + space
        return "{" + ("," + space).join(json.dumps(any_text(rng, ["a"])) + space + ":" + item for item in items) + "}"

    def make(rng):
        text = value(rng, 4).encode("utf-8")
        return text if rng.random() < 0.3 else damaged([text, rng.choice(seeds)], rng)

    compare("json", arguments, "json", make, expected,
            lambda theirs, ours: equal(theirs, ours["value"]))


def any_text(rng, words):
    """Unicode of all kinds: words of the vocabulary, letters of one script, any character, marks, spaces."""
    out = []
    for _ in range(rng.randint(1, 12)):
        kind = rng.randrange(9)
        if kind < 3:
            out.append(rng.choice(words))
        elif kind == 3:
            out.append(rng.choice("  \t\n\u00a0\u3000\u200b\u2028.,!?'\"-_#<>&;"))
        elif kind == 4:
            base = rng.choice((0x41, 0x61, 0x30, 0xC0, 0x370, 0x400, 0x590, 0x600, 0x900, 0xE00, 0x1100, 0x3040, 0x4E00,
                               0xAC00, 0xFF00, 0x1F600, 0x1D400))
            out.append("".join(chr(base + rng.randrange(64)) for _ in range(rng.randint(1, 5))))
        elif kind == 5:
            out.append(chr(rng.randrange(0x300, 0x370)))
        elif kind == 6:
            character = rng.randrange(0x110000)
            out.append("" if 0xD800 <= character < 0xE000 else chr(character))
        elif kind == 7:
            out.append(rng.choice(("'s", "'LL", "don't", "</w>", "<|endoftext|>", "<s>", "</s>", "\u2581", "\u0130", "\u1e9e",
                                   "\ufb01", "e\u0301", "&amp;", "\U0001F468\u200d\U0001F469")))
        else:
            out.append(chr(rng.randrange(0x20, 0x7F)) * rng.randint(1, 4))
        if rng.random() < 0.4:
            out.append(" ")
    return "".join(out)


def tokenizers(arguments):
    from transformers import AutoTokenizer

    for folder in sorted((GOLDEN / "tokenizers").iterdir()):
        if arguments.only and folder.name not in arguments.only:
            continue
        try:
            reference = AutoTokenizer.from_pretrained(folder)
        except Exception as error:
            print(f"--- {folder.name}: not read by transformers: {cause(str(error))}")
            continue
        replay = Replay(arguments.program)
        if "error" in (loaded := replay.ask("tokenizer", folder)):
            print(f"--- {folder.name}: {loaded['error']}")
            continue
        words = [word for word in reference.get_vocab() if word] or ["a"]
        rng = random_of(arguments.seed)
        tally = Tally("tokenizer " + folder.name, arguments.keep)
        with tempfile.TemporaryDirectory(dir="/dev/shm") as temporary:
            path = pathlib.Path(temporary) / "text"
            for _ in range(arguments.rounds):
                text = any_text(rng, words)
                path.write_bytes(text.encode("utf-8"))
                ours = replay.ask("text", path)
                theirs = reference(text)["input_ids"]
                if ours.get("ids") == theirs:
                    tally.add("equal")
                else:
                    tally.add("different", text.encode("utf-8"), ours.get("error", "")[:80] or "ids")
                    if tally.counts["different"] <= 3:
                        print(f"  {text!r}\n    ours   {ours}\n    theirs {theirs}")
        tally.report()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("images", "safetensors", "pickle", "json", "tokenizers"))
    parser.add_argument("program", help="build/.../vit_replay")
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--only", nargs="*", help="suffixes of images, names of tokenizers")
    arguments = parser.parse_args()
    {"images": images, "safetensors": safetensors, "pickle": pickle, "json": json_texts,
     "tokenizers": tokenizers}[arguments.kind](arguments)


if __name__ == "__main__":
    main()
