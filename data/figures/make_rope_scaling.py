"""Measures rules of rope scaling with the program, and draws data/figures/rope_scaling.png and the tables of vit/position/scaling.md.

  python3 data/figures/make_rope_scaling.py --program build/release/vit --images FOLDER    measures all, then draws
  python3 data/figures/make_rope_scaling.py --program build/release/vit                    measures attention alone
  python3 data/figures/make_rope_scaling.py                                                 draws data/rope_scaling.json

FOLDER holds one folder of images for each class, of which the first PER_CLASS are used, and a fifth of them for features.
Attention is that of data/images. Needs numpy and matplotlib.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import tempfile

import matplotlib
import numpy as np

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
BLOCKS = 9
SHOWN = 4  # the block whose attention is drawn
QUERY = ("data/images/cat_tabby.jpg", "110,60")


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


def distance_of(attention):
    """Mean distance of what patches attend to, in sides of the image; attention (n, heads, T, T), a class token first."""
    patches = attention[:, :, 1:, 1:]
    side = round(patches.shape[-1] ** 0.5)
    places = (np.stack(np.meshgrid(range(side), range(side), indexing="ij"), -1).reshape(-1, 2) + 0.5) / side
    distances = np.sqrt(((places[:, None] - places[None]) ** 2).sum(-1))
    return float(((patches * distances).sum(-1) / patches.sum(-1)).mean())


def measure_attention(program, model):
    """Mean attention distance of every block: {"40": [...], "80 RULE": [...]}."""
    images = [str(path) for path in sorted((ROOT / "data/images").glob("*.jpg"))]
    out = {}
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "attention.npz"
        for size, rule in [(TRAINED, "none")] + [(2 * TRAINED, rule) for rule in RULES]:
            name = str(size) if size == TRAINED else f"{size} {rule}"
            out[name] = []
            for block in range(BLOCKS):
                subprocess.run([program, "embed", "--model", model, "--size", str(size), "--rope-scaling", rule, "--quiet",
                                "--features", f"attention.{block}", "--output", file, *images], check=True)
                out[name].append(distance_of(np.load(file)[f"attention.{block}"].astype(np.float64)))
            print(name, out[name], flush=True)
    return out


def draw_attention(figures, program, model, file):
    """Square roots of what one patch attends to in block SHOWN: trained, and at twice the size under two rules."""
    shown = ((TRAINED, "none"), (2 * TRAINED, "none"), (2 * TRAINED, "linear"))
    figure, axes = plt.subplots(1, 4, figsize=(13, 3.4), layout="constrained", width_ratios=(1, 1, 1, 1.3))
    with tempfile.TemporaryDirectory() as folder:
        for panel, (size, rule) in zip(axes, shown):
            picture = pathlib.Path(folder) / f"{size}{rule}.npz"
            subprocess.run([program, "show", ROOT / QUERY[0], "--model", model, "--what", "attention", "--query", QUERY[1],
                            "--layer", str(SHOWN), "--size", str(size), "--rope-scaling", rule, "--data", picture,
                            "--output", f"{picture}.png", "--quiet"], check=True)
            panel.imshow(np.sqrt(np.load(picture)["attention.0"][0]), cmap="viridis")
            panel.set_title(f"{size} x {size} pixels" + ("" if size == TRAINED else f", {rule}"), fontsize=10)
            panel.set_xticks([])
            panel.set_yticks([])
    for name, distances in figures["attention"].items():
        rule = name.partition(" ")[2]
        axes[3].plot(range(len(distances)), distances, marker="o", markersize=3, linewidth=1.6,
                     color=RULES.get(rule, "black"), label=rule or "trained size", linestyle="-" if rule else ":")
    axes[3].set_xlabel("block")
    axes[3].set_ylabel("mean attention distance, image sides", fontsize=9)
    axes[3].legend(fontsize=7, frameon=False)
    axes[3].grid(True, color="#dddddd", linewidth=0.6)
    figure.savefig(file, dpi=100)
    plt.close(figure)


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
    if args.images and not args.program:
        parser.error("--images needs --program")
    if args.images:
        with tempfile.TemporaryDirectory() as folder:
            images = copy_first(args.images, args.per_class, pathlib.Path(folder) / "images")
            features = copy_first(args.images, max(args.per_class // 5, 1), pathlib.Path(folder) / "features")
            figures = measure(args.program, args.model, images, features)
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
    figures = json.loads(FIGURES.read_text())
    if args.program:
        figures["attention"] = measure_attention(args.program, args.model)
        FIGURES.write_text(json.dumps(figures, indent=1) + "\n")
        draw_attention(figures, args.program, args.model, ROOT / "data/figures/rope_attention.png")
    draw(figures, ROOT / "data/figures/rope_scaling.png")
    text = PAGE.read_text()
    for name, key, factor, digits in (("accuracy", "top1", 100, 1), ("consistency", "consistency", 1, 3)):
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        filled = f"{begin}\n{table(figures, key, factor, digits)}\n{end}"
        text = re.sub(f"{begin}.*{end}", lambda _: filled, text, flags=re.S)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
