#!/usr/bin/env python3
"""Makes every call of a kind fail once in runs of the program, and looks at how each run ends.

    sweep.py VIT SHIM KIND [--every K] [--jobs J] [--later] -- ARGUMENTS...

VIT is the program, SHIM the library that faults.c makes, KIND one of the kinds that it counts. {out} in the
arguments is replaced by an empty folder. A run has to end in one of three ways: exit code 1 with one line on stderr
for each failure; exit code 0 with the output of an undisturbed run (the call did not matter); nothing else. What
lies in {out} is what an undisturbed run leaves, or is absent or an unfinished file that says so in its name.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import tempfile


def files_of(folder):
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(pathlib.Path(folder).rglob("*")) if p.is_file()}


def run(options, fault, count_path=None):
    with tempfile.TemporaryDirectory(prefix="vit-sweep-") as folder:
        out = os.path.join(folder, "out")
        os.mkdir(out)
        environment = dict(os.environ, LD_PRELOAD=options.shim, VIT_FAULT=fault)
        if count_path:
            environment["VIT_FAULT_COUNT"] = count_path
        arguments = [a.replace("{out}", out) for a in options.arguments]
        done = subprocess.run([options.vit, *arguments], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, timeout=900)
        return done.returncode, done.stdout, done.stderr.decode(errors="replace"), files_of(out)


def is_unfinished(name):
    return ".partial" in name or ".part-" in name or name.startswith(".") or "/." in name


def defect(options, call, plain):
    fault = f"{options.kind}:{call}{'+' if options.later else ''}"
    try:
        code, out, err, files = run(options, fault)
    except subprocess.TimeoutExpired:
        return fault, "no end within 15 minutes"
    lines = err.splitlines()
    whole = {name: data for name, data in files.items() if not is_unfinished(name)}
    wrong = [name for name, data in whole.items() if plain[3].get(name) not in (data, None)]
    if code == 0:
        if out != plain[1] or whole != plain[3]:
            return fault, f"exit 0 with another result; stderr {err!r}"
        return None
    if code != 1:
        return fault, f"exit {code}; stderr {err[-300:]!r}"
    if not lines or not all(line.startswith("vit: ") for line in lines) or len(lines) > options.lines:
        return fault, f"stderr {err!r}"
    if wrong and not options.differs:
        return fault, f"another file than undisturbed: {wrong}; stderr {err!r}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("vit")
    parser.add_argument("shim")
    parser.add_argument("kind")
    parser.add_argument("--every", type=int, default=1, help="try each K-th call only")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--lines", type=int, default=1, help="lines on stderr at most")
    parser.add_argument("--later", action="store_true", help="later calls fail as well")
    parser.add_argument("--differs", action="store_true", help="files may lack the input that failed")
    parser.add_argument("arguments", nargs="+")
    options = parser.parse_args()
    with tempfile.NamedTemporaryFile() as count:
        plain = run(options, options.kind + ":0", count.name)
        total = int(pathlib.Path(count.name).read_text())
    if plain[0] != 0:
        sys.exit(f"undisturbed, the run ends with {plain[0]}: {plain[2]}")
    calls = range(options.first, total + 1, options.every)
    found = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for result in pool.map(lambda call: defect(options, call, plain), calls):
            if result:
                found[result[1]] += 1
                if found[result[1]] == 1:
                    print(f"{result[0]}: {result[1]}", flush=True)
    print(f"{options.kind}: {len(calls)} of {total} calls, {sum(found.values())} runs ended badly")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
