"""The markdown table of measured rounds: medians, quartiles, and how far the best other engine is behind."""

import json

import numpy as np

from engines import ENGINES


def read_rounds(path):
    """The lines of a rounds file, all of one machine and the same versions."""
    rounds = [json.loads(line) for line in path.read_text().splitlines()]
    if not rounds:
        raise SystemExit(f"{path}: no rounds")
    for line in rounds:
        for key in ("machine", "threads"):
            if line[key] != rounds[0][key]:
                raise SystemExit(f"{path}: rounds of different {key}: {rounds[0][key]} and {line[key]}")
    return rounds


def merge_versions(rounds, path):
    merged = {}
    for line in rounds:
        for package, version in line["versions"].items():
            if merged.setdefault(package, version) != version:
                raise SystemExit(f"{path}: rounds of {package} {merged[package]} and {version}")
    return merged


def times(lines, name):
    return [line["milliseconds"][name] for line in lines if name in line["milliseconds"]]


def cell(values):
    if not values:
        return "-"
    low, median, high = np.percentile(values, (25, 50, 75))
    digits = 1 if median < 100 else 0
    return f"{median:.{digits}f} ({low:.{digits}f}-{high:.{digits}f})"


def quotient(lines, name):
    """How many times as long as vit `name` takes: median over rounds, in each of which both met the same clock
    rate."""
    found = [line["milliseconds"] for line in lines if name in line["milliseconds"]]
    return f"{np.median([t[name] / t['vit'] for t in found]):.2f}" if found else "-"


def best_other(lines, names):
    """The name of the fastest engine beside vit, None where there is none."""
    medians = {name: np.median(found) for name in names
               if ENGINES[name].package and (found := times(lines, name))}
    return min(medians, key=medians.get, default=None)


def table_row(case, lines, names):
    variant, size, batch, dtype = case
    peak = np.median([line["percent_of_peak"] for line in lines])
    label = f"{variant} {size}" if dtype == "float32" else f"{variant} {size} {dtype}"
    ratios = [quotient(lines, best_other(lines, names))]
    if "vit float32" in names:
        ratios.append(quotient(lines, "vit float32"))
    columns = [label, batch, *(cell(times(lines, name)) for name in names), *ratios, f"{peak:.0f} %", len(lines)]
    return "| " + " | ".join(str(column) for column in columns) + " |"


def machine_line(rounds, path):
    """Below a table: what its times are, the machine and the versions."""
    machine, packages = rounds[0]["machine"], merge_versions(rounds, path)
    return ("Milliseconds per image: median of rounds (quartiles). "
            f"{machine['cpu']}, {rounds[0]['threads']} threads, {', '.join(machine['instruction_sets'])}; "
            f"vit {machine['version']}, " + ", ".join(f"{name} {v}" for name, v in packages.items()) + ".\n")


def write_table(path):
    """Markdown: a row for every case, and below it the machine and the versions."""
    rounds = read_rounds(path)
    cases = {}
    for line in rounds:
        case = line["variant"], line["size"], line["batch"], line.get("dtype", "float32")
        cases.setdefault(case, []).append(line)
    names = [name for name in ENGINES if times(rounds, name)]
    saved = ["vit float32 / vit"] if "vit float32" in names else []
    header = ["ViT", "batch", *names, "best other / vit", *saved, "vit, of FMA peak", "rounds"]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += [table_row(case, found, names) for case, found in cases.items()]
    return "\n".join([*lines, "", machine_line(rounds, path)])
