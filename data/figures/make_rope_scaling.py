"""Measures rules of rope scaling with the program, and draws data/figures/rope_scaling.png and the tables of vit/position/scaling.md.

  python3 data/figures/make_rope_scaling.py --program build/release/vit --images FOLDER    measures, then draws
  python3 data/figures/make_rope_scaling.py                                                 draws data/rope_scaling.json

FOLDER holds one folder of images for each class, of which the first PER_CLASS are used, and a fifth of them for features. Needs matplotlib.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIGURES = ROOT / "data/rope_scaling.json"
PAGE = ROOT / "vit/position/scaling.md"
RULES = {
    "none": "#7a7a7a",
    "linear": "#1d6fb8",
    "ntk": "#c1121f",
    "yarn": "#f4a300",
    "yarn,beta_fast=2,beta_slow=0.25": "#3a8f4d",
    "none,temperature=log": "#7b2d8b",
}
SIZES = ["20", "28", "40", "60", "80", "100", "120", "40x80", "80x40"]
TRAINED = 40


def copy_first(images, count, folder):
    """The first `count` images of each class."""
    for label in sorted(path for path in images.iterdir() if path.is_dir()):
        (folder / label.name).mkdir(parents=True)
        for image in sorted(label.iterdir())[:count]:
            shutil.copy(image, folder / label.name)
    return folder


def measure(program, model, images, features):
    def vit(images, *arguments):
        command = [program, "evaluate", "--model", model, "--format", "json", "--quiet", *arguments, str(images)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    squares = [size for size in SIZES if "x" not in size]
    rows = []
    for rule in RULES:
        accuracy = {}
        for size in SIZES:
            if size == str(TRAINED) and rows:  # the same bits under every rule
                accuracy[size] = rows[0]["top1"][size]
                continue
            result = vit(images, "--rope-scaling", rule, "--size", size)
            accuracy[size] = result["top1"]
        scales = vit(features, "--rope-scaling", rule, "--scale-consistency", "--sizes", ",".join(squares))
        rows.append({"rule": rule, "top1": accuracy,
                     "consistency": {str(row["size"]): row["cosine"] for row in scales["sizes"]},
                     "elsewhere": {str(row["size"]): row["elsewhere"] for row in scales["sizes"]}})
        print(rule, accuracy, rows[-1]["consistency"], flush=True)
    return {"images": result["images"], "trained": TRAINED, "feature_images": scales["images"], "rules": rows}


def draw(figures, file):
    panels = (("top1", "top-1 accuracy, %", 100), ("consistency", "cosine with the patches at the trained size", 1))
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    for panel, (key, label, factor) in zip(axes, panels):
        for row in figures["rules"]:
            points = {int(size): factor * value for size, value in row[key].items() if "x" not in size}
            panel.plot(list(points), list(points.values()), marker="o", markersize=3.5, linewidth=1.6,
                       color=RULES[row["rule"]], label=row["rule"],
                       linestyle="--" if "temperature" in row["rule"] else "-")
        panel.axvline(TRAINED, color="#999999", linewidth=0.8, linestyle=":")
        panel.set_xlabel(f"input size, pixels (trained at {TRAINED})")
        panel.set_ylabel(label)
        panel.grid(True, color="#dddddd", linewidth=0.6)
    axes[0].legend(fontsize=8, frameon=False)
    figure.savefig(file, dpi=100)
    plt.close(figure)


def table(figures, key, factor, digits):
    sizes = list(figures["rules"][0][key])
    lines = ["| rule | " + " | ".join(size.replace("x", " x ") for size in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
    for row in figures["rules"]:
        best = {size: max(other[key][size] for other in figures["rules"]) for size in sizes}
        cells = [f"{factor * row[key][size]:.{digits}f}" for size in sizes]
        cells = [f"**{cell}**" if row[key][size] == best[size] and size != str(TRAINED) else cell
                 for cell, size in zip(cells, sizes)]
        lines.append(f"| `{row['rule']}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "data/model")
    parser.add_argument("--images", type=pathlib.Path)
    parser.add_argument("--per-class", type=int, default=100)
    args = parser.parse_args()
    if (args.program is None) != (args.images is None):
        parser.error("--program and --images go together")
    if args.program:
        with tempfile.TemporaryDirectory() as folder:
            images = copy_first(args.images, args.per_class, pathlib.Path(folder) / "images")
            features = copy_first(args.images, max(args.per_class // 5, 1), pathlib.Path(folder) / "features")
            figures = measure(args.program, args.model, images, features)
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    figures = json.loads(FIGURES.read_text())
    draw(figures, ROOT / "data/figures/rope_scaling.png")
    text = PAGE.read_text()
    for name, key, factor, digits in (("accuracy", "top1", 100, 1), ("consistency", "consistency", 1, 3)):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        filled = f"{begin}\n{table(figures, key, factor, digits)}\n{end}"
        text = re.sub(f"{begin}.*{end}", lambda _: filled, text, flags=re.S)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
