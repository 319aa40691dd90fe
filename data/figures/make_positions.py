"""Draws data/figures/positions.png and attention_distance.png and writes the table in data/README.md, all from
data/positions.json (apps/training/study_positions.py).  Run: python3 data/figures/make_positions.py

Needs matplotlib.
"""
import collections
import json
import pathlib
import re
import statistics

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1]
NAMES = {
    "axial": "2D axial RoPE",
    "mixed": "2D mixed RoPE",
    "axial+table": "axial RoPE + learned table",
    "table": "learned table",
    "sinusoidal": "2D sinusoidal",
    "none": "no position",
    "axial+zoom": "2D axial RoPE, zoomed",
    "table+zoom": "learned table, zoomed",
}
COLOURS = {
    "axial": "#c1121f",
    "mixed": "#f4a300",
    "axial+table": "#7b2d8b",
    "table": "#1d6fb8",
    "sinusoidal": "#3a8f4d",
    "none": "#7a7a7a",
    "axial+zoom": "#c1121f",
    "table+zoom": "#1d6fb8",
}
TRAINED_AT = 32


def by_position(models, key):
    """{position: {x: [accuracy in percent of every seed]}}"""
    collected = collections.defaultdict(lambda: collections.defaultdict(list))
    for model in models:
        for x, share in model.get(key, {}).items():
            collected[model["position"]][int(x)].append(100 * share)
    return collected


def draw_lines(axes, curves):
    for position, points in curves.items():
        xs = sorted(points)
        axes.plot(xs, [statistics.mean(points[x]) for x in xs], marker="o", markersize=3.5, linewidth=1.6,
                  color=COLOURS[position], label=NAMES[position],
                  linestyle="--" if position.endswith("+zoom") else "-")
        axes.fill_between(xs, [min(points[x]) for x in xs], [max(points[x]) for x in xs], alpha=0.15,
                          color=COLOURS[position], linewidth=0)
    axes.grid(True, color="#dddddd", linewidth=0.6)


def draw_accuracy(models, file):
    figure, panels = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained", sharey=True)
    for axes, key, words in zip(panels, ("extrapolated", "interpolated", "shifted"), (
            "positions extrapolated", "positions interpolated", "image translated, edges mirrored")):
        curves = by_position(models, key)
        if key == "interpolated":  # the same in both, and a measure of what the pixels alone cost
            curves["none"] = by_position(models, "extrapolated")["none"]
        draw_lines(axes, {p: curves[p] for p in NAMES if p in curves})
        axes.set_title(words, fontsize=10)
        sizes = sorted(next(iter(curves.values())))
        if key == "shifted":
            axes.set_xlabel("shift, pixels (patches of 4)")
            axes.set_xticks(range(0, 16, 4))
        else:
            axes.axvline(TRAINED_AT, color="#999999", linewidth=0.8, linestyle=":")
            axes.set_xlabel(f"input size, pixels (trained at {TRAINED_AT})")
            axes.set_xticks(sizes)
    panels[0].set_ylabel("top-1 accuracy, %")
    lines = {line.get_label(): line for axes in panels for line in axes.get_lines()}
    panels[2].legend([lines[name] for name in NAMES.values()], NAMES.values(), fontsize=8, frameon=False,
                     loc="lower left")
    figure.savefig(file, dpi=100)
    plt.close(figure)


def draw_attention(models, file):
    figure, axes = plt.subplots(figsize=(7, 3.4), layout="constrained")
    models = [model for model in models if "attention" in model]
    positions = list(dict.fromkeys(model["position"] for model in models))
    for model in models:
        row = len(positions) - 1 - positions.index(model["position"])
        for block, offset, marker in (("first", 0.14, "o"), ("last", -0.14, "s")):
            distances = model["attention"][block]
            axes.scatter(distances, [row + offset] * len(distances), marker=marker, s=34,
                         facecolor=COLOURS[model["position"]] if block == "first" else "white",
                         edgecolor=COLOURS[model["position"]])
    axes.scatter([], [], marker="o", color="#444444", label="first block")
    axes.scatter([], [], marker="s", facecolor="white", edgecolor="#444444", label="last block")
    axes.set_yticks(range(len(positions)), [NAMES[p] for p in reversed(positions)])
    axes.set_xlabel("mean attention distance of a head, pixels")
    axes.set_xlim(left=0)
    axes.grid(True, axis="x", color="#dddddd", linewidth=0.6)
    axes.legend(fontsize=8, frameon=False)
    figure.savefig(file, dpi=110)
    plt.close(figure)


def figure_of(values):
    spread = f" ± {statistics.stdev(values):.1f}" if len(values) > 1 else ""
    return f"{statistics.mean(values):.1f}{spread}"


def table(models):
    shifts = by_position(models, "shifted")
    sizes = sorted(int(x) for x in models[0]["extrapolated"])
    lines = ["| position encoding | positions | " + " | ".join(f"{x} px" for x in sizes) + " | shift 8 px | 15 px |",
             "|---" * (len(sizes) + 4) + "|"]
    for position, name in NAMES.items():
        for key in ("extrapolated", "interpolated"):
            row = by_position(models, key).get(position)
            if row:
                cells = [figure_of(row[x]) for x in sizes]
                cells += [figure_of(shifts[position][x]) if position in shifts else "-" for x in (8, 15)]
                words = key if position != "none" else "-"
                lines.append(f"| {name} | {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    models = json.loads((DATA / "positions.json").read_text())["models"]
    draw_accuracy(models, DATA / "figures/positions.png")
    draw_attention(models, DATA / "figures/attention_distance.png")
    page = DATA / "README.md"
    begin, end = "<!-- table: begin -->", "<!-- table: end -->"
    text = re.sub(f"{begin}.*{end}", lambda _: f"{begin}\n{table(models)}\n{end}", page.read_text(), flags=re.S)
    page.write_text(text)


if __name__ == "__main__":
    main()
