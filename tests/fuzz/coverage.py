#!/usr/bin/env python3
"""Counts which lines of the readers the seeds and the corpora of all targets reach.

    cmake --preset coverage && cmake --build --preset coverage
    tests/fuzz/coverage.py build/coverage [--work WORK] [--missing]

WORK is the folder of a campaign, whose corpus counts as well. --missing names the lines that are not reached.
"""

import argparse
import collections
import json
import pathlib
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
READERS = ("vit/io/*.cpp", "vit/weights/checkpoint/*.cpp", "vit/weights/families/*.cpp", "vit/api/classifier_head.cpp",
           "vit/position/rope_scaling_text.cpp", "vit/image/decode*.cpp", "vit/image/tiff_*.cpp", "vit/image/exif.cpp",
           "vit/image/jpeg2000_codestream.cpp", "vit/text/*.cpp", "apps/vit/inputs/npy.cpp", "apps/vit/classes/labels.cpp",
           "apps/vit/inputs/texts.cpp", "apps/vit/inputs/inputs.cpp", "apps/vit/outputs/run_facts.cpp", "apps/vit/outputs/jsonl_writer.cpp",
           "apps/vit/inputs/tar_*.cpp", "apps/vit/rings/index/index_f*.cpp")
# In the same folders, but they read nothing.
OTHERS = ("vit/io/atomic_file.cpp", "vit/weights/checkpoint/architecture_preprocess.cpp",
          "vit/weights/checkpoint/fingerprint.cpp", "vit/weights/checkpoint/loader.cpp")


def run_targets(program, work):
    usage = subprocess.run([program], capture_output=True, text=True, check=False).stdout
    for target in usage.partition("targets:")[2].split():
        for corpus in (HERE / "corpus" / target, *([work / "corpus" / target] if work else [])):
            subprocess.run([program, target, "0", corpus], stdout=subprocess.DEVNULL, check=False)


def count_lines(build):
    """How often each line of each source was run: {path: {line: count}}."""
    counts = collections.defaultdict(collections.Counter)
    for notes in sorted(build.rglob("*.gcno")):
        result = subprocess.run(["gcov", "--json-format", "--stdout", notes], cwd=build, capture_output=True, text=True,
                                check=True)
        for document in result.stdout.splitlines():
            for source in json.loads(document)["files"]:
                path = (build / source["file"]).resolve()
                if path.suffix == ".cpp" and path.is_relative_to(ROOT):
                    for line in source["lines"]:
                        counts[str(path.relative_to(ROOT))][line["line_number"]] += line["count"]
    return counts


def ranges(numbers):
    """[3, 4, 5, 9] -> "3-5 9"."""
    spans = []
    for number in numbers:
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--work", type=pathlib.Path)
    parser.add_argument("--missing", action="store_true")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    for data in build.rglob("*.gcda"):
        data.unlink()
    run_targets(build / "tests" / "vit_fuzz_smoke", arguments.work and arguments.work.resolve())
    counts = count_lines(build)
    readers = sorted({str(path.relative_to(ROOT)) for pattern in READERS for path in ROOT.glob(pattern)} - {*OTHERS})
    total = reached = 0
    for path in readers:
        lines = counts.get(path)
        if not lines:  # not in this build
            continue
        missing = sorted(line for line, count in lines.items() if count == 0)
        total += len(lines)
        reached += len(lines) - len(missing)
        print(f"{100 * (1 - len(missing) / len(lines)):5.1f} {path}" +
              (f": {ranges(missing)}" if arguments.missing and missing else ""))
    print(f"{100 * reached / max(total, 1):5.1f} of {total} lines")


if __name__ == "__main__":
    main()
