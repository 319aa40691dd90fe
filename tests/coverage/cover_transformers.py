#!/usr/bin/env python3
"""Which classes of transformers the program runs, by trying: a tiny random instance of each is saved by the library, read by the
program, and computed by both.

    python3 tests/coverage/cover_transformers.py VIT                      write the table into tests/coverage/README.md
    python3 tests/coverage/cover_transformers.py VIT --check              exit with 1 if a class that ran no longer does, or one is new
    python3 tests/coverage/cover_transformers.py VIT --only llava clip    these types, with what was found

Needs torch, torchvision, scipy and transformers, no downloads. A class is equal if every output that both have differs by at most max(3e-6, twice the error
of the library's own float32 run), of the largest value of the library's float64 run.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
import torch
import transformers

import tiny_models
from model_classes import CLASSES, CONSIDERED_NOT, Heads

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "rings" / "dense"))

README = Path(__file__).resolve().parent / "README.md"
BEGIN, END = "<!-- cover_transformers.py: begin -->", "<!-- cover_transformers.py: end -->"
LIMIT = 3e-6
UNKNOWN = ("which no supported family", "is not implemented", "are not implemented")


def vit_output(vit, folder, pixels, feature, *arguments):
    """A feature as the program computes it, and the error that it prints instead."""
    np.save(folder / "pixels.npy", pixels)
    out = folder / "out.npy"
    out.unlink(missing_ok=True)
    run = subprocess.run([vit, "embed", "--model", folder, folder / "pixels.npy", "--features", feature, "--output", out, "--progress", "never", *arguments],
                         capture_output=True, text=True)
    return (np.load(out), "") if run.returncode == 0 else (None, run.stderr.strip())


def is_missing(error):
    """Whether the program says that a model has no such output."""
    return "has no" in error or "no such" in error or "does not have" in error


def compare_heads(vit, case, folder, seed):
    """(state, note) of a class with a dense head."""
    import compare_heads as heads
    make, processor, check = heads.CASES[case.case]
    tried = heads.Case(argparse.Namespace(vit=vit, work=folder), case.case, make(seed + 1), processor, 100 * seed)
    check(tried)
    return ("wrong", "; ".join(tried.problems)) if tried.problems else ("equal", f"heads {tried.worst:.1e}")


def compare(vit, case, folder, seed):
    """(state, note) of one class."""
    if isinstance(case, Heads):
        return compare_heads(vit, case, folder, seed)
    model = tiny_models.make(case.name, seed, case.image, case.patch, case.changes)
    model.save_pretrained(folder)
    pixels = case.pixels(model, seed)
    try:
        with torch.no_grad():
            single = case.outputs(model, torch.from_numpy(pixels))
            double = case.outputs(model.double(), torch.from_numpy(pixels).double())
    except Exception:  # how it is called is not known here, and matters only if the program reads it
        run = subprocess.run([vit, "info", "--model", folder], capture_output=True, text=True)
        if run.returncode == 0:
            raise
        return refusal(run.stderr), run.stderr.strip()
    compared, notes, first_error = 0, [], ""
    for feature, wanted in double.items():
        wanted = wanted.numpy()
        found, error = vit_output(vit, folder, pixels, feature)
        if found is None:
            first_error = first_error or error
            if not is_missing(error):
                return refusal(error), error
            notes.append(f"{feature}: {error}")
            continue
        if found.size != wanted.size:
            return "wrong", f"{feature}: {found.shape} instead of {wanted.shape}"
        largest = np.abs(wanted).max()
        error = np.abs(found.reshape(-1) - wanted.reshape(-1)).max() / largest
        own = np.abs(single[feature].numpy().reshape(-1) - wanted.reshape(-1)).max() / largest
        notes.append(f"{feature} {error:.1e} ({own:.1e})")
        if not error <= max(LIMIT, 2 * own):
            return "wrong", "; ".join(notes)
        compared += 1
    if compared == 0:
        return "another output", first_error  # it is read, but what the library gives of it is not there
    return "equal", "; ".join(notes)


def refusal(error):
    return "refused" if any(words in error for words in UNKNOWN) else "misleading"


def try_class(vit, case, seed):
    folder = Path(tempfile.mkdtemp(prefix="cover-"))
    try:
        return compare(vit, case, folder, seed)
    except Exception as error:  # the library cannot make or run it: to be repaired in this script
        where = traceback.extract_tb(error.__traceback__)[-1]
        return "not tried", f"{type(error).__name__}: {str(error)[:200]} ({Path(where.filename).name}:{where.lineno})"
    finally:
        shutil.rmtree(folder)


def new_types():
    """Types of the installed release with an image tower that are in neither list."""
    known = {case.type for case in CLASSES} | set(CONSIDERED_NOT)
    found = set()
    for file in (Path(transformers.__file__).parent / "models").glob("*/modeling_*.py"):
        text = file.read_text(encoding="utf-8")
        if re.search(r"^class \w*(Vision|Image)\w*(Model|Transformer|Encoder|Backbone)\(", text, re.M) or "ForImageClassification(" in text:
            found.add(file.parent.name)
    return sorted(found - known)


def table_of(results):
    types = {}
    for case, (state, _) in results:
        types.setdefault(case.type, {}).setdefault(state, []).append(case.name)
    def best(states):
        return next(state for state in ("equal", "wrong", "another output", "refused", "misleading", "not tried") if state in states)
    equal = [name for name in types if best(types[name]) == "equal"]
    num_equal = sum(state == "equal" for _, (state, _) in results)
    lines = [f"transformers {transformers.__version__}: {len(equal)} of {len(types)} model types, {num_equal} of {len(results)} classes are equal.", "",
             "| type | equal | not |", "|---|---|---|"]
    for name in sorted(types):
        good = ", ".join(types[name].get("equal", []))
        bad = ", ".join(f"{cls} ({state})" for state, classes in types[name].items() if state != "equal" for cls in classes)
        lines.append(f"| {name} | {good} | {bad} |")
    return "\n".join(lines)


def update_readme(begin, table, end, check, fresh):
    """Puts a table between the two marks; with `check`, exits with 1 if another one is there, or something is new."""
    made = f"{begin}\n{table}\n{end}"
    text = README.read_text(encoding="utf-8")
    first, last = text.index(begin), text.index(end) + len(end)
    print(made.split("\n")[1])
    if check:
        sys.exit(0 if made == text[first:last] and not fresh else f"{README} is not current: run without --check")
    README.write_text(text[:first] + made + text[last:], encoding="utf-8")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("vit", type=Path)
    parser.add_argument("--only", nargs="+", default=[], help="types or classes")
    parser.add_argument("--seeds", type=int, default=1, help="random draws of each class")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    vit = options.vit.resolve()
    cases = [case for case in CLASSES if not options.only or case.type in options.only or case.name in options.only]
    results = []
    for case in cases:
        for seed in range(options.seeds):
            state, note = try_class(vit, case, seed)
            if state != "equal":
                break
        results.append((case, (state, note)))
        if options.only or state in ("wrong", "not tried"):
            print(f"{case.type:24} {case.name:44} {state:10} {note}", flush=True)
    if options.only:
        raise SystemExit(any(state != "equal" for _, (state, _) in results))
    fresh = new_types()
    if fresh:
        print("types that neither list has:", ", ".join(fresh))
    update_readme(BEGIN, table_of(results), END, options.check, fresh)


if __name__ == "__main__":
    main()
