"""The overview of measurements.md: `vit` next to every other engine, from the rounds that compare.py, depth.py and towers.py keep.

    python overview.py --work ~/compare                            print the table of what was measured
    python overview.py --work ~/compare --vit build/release/vit    measure first (half an hour on two cores)
    python overview.py --work ~/compare --write                    and put it into measurements.md

Needs what these scripts need; llama.cpp is left out without --llama-python and --llama-source. A row states machine and day; it
holds the rounds of its latest day.
"""

import argparse
import datetime
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "measurements.md"
BEGIN, END = "<!-- overview.py: begin -->\n", "<!-- overview.py: end -->\n"
COLUMNS = ("vit", "ONNX Runtime", "OpenVINO", "torch")
# Names of engines in the rounds, and the column each belongs to; a column shows its fastest.
COLUMN_OF = {"torch.compile": "torch", "OpenCV": "OpenCV 5", "llama.cpp, f16": "llama.cpp", "llama.cpp, bf16": "llama.cpp"}
ALL = ("float32", "bfloat16", "int8")
MODELS = [("axial RoPE tiny, 224", "compare", ("tiny", 224), ("float32", "int8")), ("axial RoPE small, 224", "compare", ("small", 224), ("float32",)),
          ("axial RoPE base, 224", "compare", ("base", 224), ALL), ("axial RoPE large, 224", "compare", ("large", 224), ALL),
          ("axial RoPE huge, 224", "compare", ("huge", 224), ("float32",)), ("axial RoPE base, 512", "compare", ("base", 512), ("float32",)),
          ("Depth Anything V2 Small, 518", "depth", ("small", 518), ALL),
          ("tower of Qwen2.5-VL-3B, 504", "towers", ("qwen2_5_vl_3b", 504), ALL)]


def rows_of(path):
    """The lines of a file of rounds; one of before lines had a day has that of the file."""
    if not path.exists():
        return []
    day = datetime.date.fromtimestamp(path.stat().st_mtime).isoformat()
    return [{"day": day, **json.loads(line)} for line in path.read_text().splitlines()]


def label_of(machine):
    """The processor; of AMD's, whose names in virtual machines are alike, the generation, after its instructions."""
    sets = machine["instruction_sets"]
    zen = ("Zen 5" if "avxvnni" in sets else "Zen 4") if "avx512f" in sets else "Zen 3"
    return zen if machine["cpu"].startswith("AMD EPYC") else machine["cpu"]


def samples(work):
    """Of each measured time: (script, case, type), day, machine, engine, milliseconds."""
    for row in rows_of(work / "rounds.jsonl"):
        if row["batch"] == 1:
            for engine, time in row["milliseconds"].items():
                if engine != "vit float32":
                    yield ("compare", (row["variant"], row["size"]), row.get("dtype", "float32")), row["day"], label_of(row["machine"]), engine, time
    for row in rows_of(work / "depth.jsonl"):
        engine, _, dtype = row["engine"].partition(", ")
        yield ("depth", (row["variant"], row["size"]), dtype or "float32"), row["day"], label_of(row["machine"]), engine, row["ms"]
    for row in rows_of(work / "towers.jsonl"):
        engine, _, dtype = row["engine"].partition(", ")
        if engine == "llama.cpp":  # f16 or bf16, of which the table shows the faster
            engine, dtype = row["engine"], "bfloat16"
        yield ("towers", (row["tower"], row["edge"]), dtype), row["day"], label_of(row["machine"]), engine, 1e3 * row["seconds"]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def table(work):
    cases = {}
    for case, day, cpu, engine, time in samples(work):
        cases.setdefault(case, {}).setdefault(day, {}).setdefault(cpu, {}).setdefault(engine, []).append(time)
    lines = ["| model | type | vit | ONNX Runtime | OpenVINO | torch | others | best other / vit | machine, day |", "|" + "---|" * 9]
    for label, script, case, dtypes in MODELS:
        for dtype in dtypes:
            days = cases.get((script, case, dtype))
            if days is None:
                continue
            day = max(days)
            cpu, engines = next(iter(days[day].items()))
            best = {}
            for engine, times in engines.items():
                column, median = COLUMN_OF.get(engine, engine), statistics.median(times)
                best[column] = min(median, best.get(column, median))
            if "vit" not in best:
                continue
            others = {column: time for column, time in best.items() if column != "vit"}
            ratio = f"{min(others.values()) / best['vit']:.2f}" if others else "-"
            rest = ", ".join(f"{column} {number(time)}" for column, time in others.items() if column not in COLUMNS)
            lines.append(f"| {label} | {dtype} | " + " | ".join(number(best[column]) if column in best else "-" for column in COLUMNS)
                         + f" | {rest or '-'} | {ratio} | {cpu}, {day} |")
    return "\n".join(lines) + "\n"


def measure(options):
    def run(script, *words):
        subprocess.run([sys.executable, HERE / script, "--vit", options.vit, "--work", options.work, "--rounds", str(options.rounds), *words],
                       check=True)
    run("compare.py", "--batches", "1", "--dtypes", *ALL)
    run("compare.py", "--batches", "1", "--variants", "base", "--sizes", "512")
    run("compare.py", "--batches", "1", "--variants", "large", "--dtypes", *ALL)
    run("compare.py", "--batches", "1", "--variants", "huge")
    run("depth.py", "--variants", "small")
    llama = ["--llama-python", options.llama_python, "--llama-source", options.llama_source] if options.llama_python else []
    run("towers.py", "--towers", "qwen2_5_vl_3b", "--sizes", "504", *llama)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True, help="folder of the rounds")
    parser.add_argument("--vit", help="the program, of the release preset: measure first")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--llama-python", help="as for towers.py")
    parser.add_argument("--llama-source", help="as for towers.py")
    parser.add_argument("--write", action="store_true", help="put the table into measurements.md; then run data/figures/make_speed.py")
    options = parser.parse_args()
    if options.vit:
        measure(options)
    made = table(options.work)
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        pattern = re.escape(BEGIN) + ".*?" + re.escape(END)
        PAGE.write_text(re.sub(pattern, lambda _: BEGIN + made + END, text, flags=re.DOTALL), encoding="utf-8")
    print(made, end="")


if __name__ == "__main__":
    main()
