"""Compares the speed of `vit` with ONNX Runtime, OpenVINO and PyTorch: the same ViT with 2D axial RoPE, the same
weights, images in, logits out, float32, bfloat16 or int8. README.md beside this file says how to repeat it.

    python compare.py --vit build/release/vit --work ~/compare
    python compare.py --vit build/release/vit --work ~/compare --variants base --sizes 512 --batches 1 --rounds 3
    python compare.py --vit build/release/vit --work ~/compare --rounds 0    # the table of what was measured

First every engine must give the same logits. Then each round measures every engine on every case, in an order that
turns around from round to round; rounds are added to WORK/rounds.jsonl, over as many calls as it takes.
"""

import argparse
import datetime
import json
from pathlib import Path

import numpy as np

from engines import ENGINES, versions
from models import VARIANTS, Case, make_pixels, model_folder
from table import write_table

# Logits have deviation 1: sums of 3072 products in another order differ by some 1e-6, numbers of 8 bits by some 1e-3
# (bfloat16) or a few hundredths (int8) in each of twelve blocks.
TOLERANCE = {"float32": 1e-4, "bfloat16": 0.2, "int8": 1.0}


def prepare(case, options):
    """The engines of one case by name, after a check that they agree."""
    folder = model_folder(options.work, case.variant)
    pixels = make_pixels(case)
    engines = {name: ENGINES[name](case, folder, pixels, options) for name in options.engines
               if case.dtype in ENGINES[name].dtypes}
    logits = np.stack([engine.logits() for engine in engines.values()])
    apart, limit = np.ptp(logits, axis=0).max(), TOLERANCE[case.dtype]
    if not apart <= limit:
        raise SystemExit(f"{case}: logits of {', '.join(engines)} are {apart:.2g} apart, more than {limit}")
    print(f"{case}: logits at most {apart:.1e} apart", flush=True)
    return engines


def measure(case, engines, options, turned):
    """One round of one case: milliseconds per image of every engine, as a line for the file."""
    names = list(reversed(engines)) if turned else list(engines)
    milliseconds = {name: engines[name].milliseconds(options.seconds) for name in names}
    print(f"{case}: " + "  ".join(f"{name} {milliseconds[name]:.2f}" for name in engines), flush=True)
    return {"day": datetime.date.today().isoformat(), "machine": engines["vit"].machine, "versions": versions(engines), "threads": options.threads,
            "variant": case.variant, "size": case.size, "batch": case.batch, "dtype": case.dtype,
            "milliseconds": milliseconds, "percent_of_peak": engines["vit"].percent_of_peak}


def run_round(prepared, options, turned):
    for case, engines in prepared.items():
        line = measure(case, engines, options, turned)
        with open(options.work / "rounds.jsonl", "a", encoding="utf-8") as out:
            out.write(json.dumps(line) + "\n")


def engines_parser(description):
    """The options of every script that runs these engines by turns."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, required=True, help="the program, of the release preset")
    parser.add_argument("--work", type=Path, required=True, help="folder for weights, exports and rounds")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["tiny", "small", "base"])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), help="beside vit")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="spent on each engine, case and round")
    return parser


def parse(parser):
    """What engines_parser() and the script's own options say; vit is always among the engines."""
    options = parser.parse_args()
    options.vit = options.vit.resolve()
    options.engines = list(dict.fromkeys(["vit", *options.engines]))
    return options


def parse_options():
    parser = engines_parser(__doc__)
    parser.add_argument("--sizes", nargs="+", type=int, default=[224])
    parser.add_argument("--dtypes", nargs="+", choices=TOLERANCE, default=["float32"])
    return parse(parser)


def main():
    options = parse_options()
    if options.rounds > 0:
        cases = [Case(variant, size, batch, dtype) for variant in options.variants for size in options.sizes
                 for batch in options.batches for dtype in options.dtypes]
        prepared = {case: prepare(case, options) for case in cases}
    for index in range(options.rounds):
        run_round(prepared, options, turned=index % 2 == 1)
    print(write_table(options.work / "rounds.jsonl"), end="")


if __name__ == "__main__":
    main()
