"""Measures rules of rope scaling with the program, and draws data/figures/rope_scaling*.png and the tables of vit/position/scaling.md.

  python3 data/figures/make_rope_scaling.py --program build/release/vit --images FOLDER --models STATE    measures all, then draws
  python3 data/figures/make_rope_scaling.py --program build/release/vit --images FOLDER --parts content   measures one part
  python3 data/figures/make_rope_scaling.py                                                 draws data/rope_scaling.json

Parts: shipped (--model at other sizes), attention (of --model on data/images), content (--model on more content and on larger
content), study (the models of apps/training/study_scaling in STATE; what STATE already holds of their figures is kept).
FOLDER holds one folder of images for each class, of which the first PER_CLASS are used, half of them for content, and a fifth of them
for features. Needs numpy, pillow and matplotlib.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import tempfile

import matplotlib
import numpy as np
from PIL import Image

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
    "yarn,truncate=true": "#111111",
    "none,temperature=log": "#7b2d8b",
}
STUDY_RULES = [rule for rule in RULES if "truncate" not in rule]  # learned frequencies do not take it
PARTS = ("shipped", "attention", "content", "study")
TRAINED = 40
BLOCKS = 9
SHOWN = 4  # the block whose attention is drawn
QUERY = ("data/images/cat_tabby.jpg", "110,60")
STUDY_TRAINED = 32
# The models of the study: how they are called here.
STUDY = {
    "axial": "axial, one scale",
    "mixed": "mixed, one scale",
    "axial+zoom": "axial, scales 1 to 2",
}
CONTENT = {
    "enlarged": "the image at twice the size",
    "surrounded": "the image at the trained size, amid its reflection",
    "mosaic": "four images of a class, each at the trained size",
}


def sizes_of(trained):
    """From half to three times the trained size, then wide and tall."""
    smaller = round(0.7 * trained / 4) * 4
    squares = [trained // 2, smaller, trained, trained * 3 // 2, trained * 2, trained * 5 // 2, trained * 3]
    if trained == STUDY_TRAINED:  # many models
        squares.remove(trained * 5 // 2)
    return [*(str(size) for size in squares), f"{trained}x{2 * trained}", f"{2 * trained}x{trained}"]


def copy_first(images, count, folder):
    """The first `count` images of each class."""
    for label in sorted(path for path in images.iterdir() if path.is_dir()):
        (folder / label.name).mkdir(parents=True)
        for image in sorted(label.iterdir())[:count]:
            shutil.copy(image, folder / label.name)
    return folder


def evaluate(program, model, images, *arguments):
    command = [program, "evaluate", "--model", model, "--format", "json", "--quiet", *arguments, images]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def measure(program, model, trained, images, features, rules=tuple(RULES)):
    """Accuracy at every size and consistency of features at every square one."""
    sizes = sizes_of(trained)
    squares = ",".join(size for size in sizes if "x" not in size)
    rows = []
    for rule in rules:
        accuracy = {}
        for size in sizes:
            if size == str(trained) and rows:  # the same bits under every rule
                accuracy[size] = rows[0]["top1"][size]
                continue
            result = evaluate(program, model, images, "--rope-scaling", rule, "--size", size)
            accuracy[size] = result["top1"]
        scales = evaluate(program, model, features, "--rope-scaling", rule, "--scale-consistency", "--sizes", squares)
        rows.append({"rule": rule, "top1": accuracy,
                     "consistency": {str(row["size"]): row["cosine"] for row in scales["sizes"]},
                     "elsewhere": {str(row["size"]): row["elsewhere"] for row in scales["sizes"]}})
        print(rule, accuracy, rows[-1]["consistency"], flush=True)
    return {"images": result["images"], "trained": trained, "feature_images": scales["images"], "rules": rows}


def write_content(images, trained, folder):
    """The images of every class as CONTENT has them, PNG files of 2 trained x 2 trained pixels: FOLDER/KIND/CLASS/FILE.png."""
    margin = trained // 2
    for label in sorted(images.iterdir()):
        pixels = [np.asarray(Image.open(file).convert("RGB").resize((trained, trained), Image.Resampling.BICUBIC))
                  for file in sorted(label.iterdir())]
        for index, image in enumerate(pixels):
            larger = Image.open(sorted(label.iterdir())[index]).convert("RGB")
            four = [pixels[(index + other) % len(pixels)] for other in range(4)]
            made = {
                "enlarged": np.asarray(larger.resize((2 * trained, 2 * trained), Image.Resampling.BICUBIC)),
                "surrounded": np.pad(image, ((margin, margin), (margin, margin), (0, 0)), mode="symmetric"),
                "mosaic": np.block([[[four[0]], [four[1]]], [[four[2]], [four[3]]]]),
            }
            for kind, content in made.items():
                (folder / kind / label.name).mkdir(parents=True, exist_ok=True)
                Image.fromarray(content).save(folder / kind / label.name / f"{index:04}.png")
    return folder


def measure_content(program, model, trained, images, folder, rules=tuple(RULES)):
    """Accuracy on a grid of twice the trained sides for each kind of CONTENT."""
    content = write_content(images, trained, folder)
    out = {"trained": trained, "top1_trained": None, "top1": {kind: {} for kind in CONTENT}}
    result = evaluate(program, model, images, "--size", str(trained))
    out["images"], out["top1_trained"] = result["images"], result["top1"]
    for kind in CONTENT:
        for rule in rules:
            result = evaluate(program, model, content / kind, "--rope-scaling", rule, "--size", str(2 * trained))
            out["top1"][kind][rule] = result["top1"]
        print(kind, out["top1"][kind], flush=True)
    return out


def measure_study(program, state, images, scratch, per_class):
    """All models of apps/training/study_scaling that are in `state`."""
    few = copy_first(images, per_class, scratch / "study")
    features = copy_first(images, max(per_class // 5, 1), scratch / "study-features")
    half = copy_first(images, max(per_class // 2, 4), scratch / "study-content")
    models = []
    for name in STUDY:
        for model in sorted(state.glob(f"{name}-[0-9]*/model.safetensors")):
            model = model.parent
            kept = state / f"{model.name}.rope_scaling.json"
            if not kept.exists():
                print(model.name, flush=True)
                figures = {"model": name, "seed": int(model.name.rpartition("-")[2])}
                figures |= measure(program, model, STUDY_TRAINED, few, features, STUDY_RULES)
                figures["content"] = measure_content(program, model, STUDY_TRAINED, half, scratch / f"content-{model.name}",
                                                     STUDY_RULES)
                kept.write_text(json.dumps(figures) + "\n")
            models.append(json.loads(kept.read_text()))
    return models


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


def by_seed(figures, name, rule, key, size):
    """Values of every seed of a model of the study."""
    return [row[key][size] for model in figures["study"] if model["model"] == name
            for row in model["rules"] if row["rule"] == rule]


def draw_study(figures, file):
    """A column for each kind of model: means over seeds, and between the lowest and the highest seed shaded."""
    names = [name for name in STUDY if any(model["model"] == name for model in figures["study"])]
    panels = (("top1", "top-1 accuracy, %", 100), ("consistency", "cosine with the trained size", 1))
    figure, axes = plt.subplots(2, len(names), figsize=(4.2 * len(names), 7), layout="constrained", sharey="row", squeeze=False)
    squares = [size for size in sizes_of(STUDY_TRAINED) if "x" not in size]
    for row, (key, label, factor) in zip(axes, panels):
        for panel, name in zip(row, names):
            for rule in STUDY_RULES:
                values = np.array([by_seed(figures, name, rule, key, size) for size in squares]) * factor
                xs = [int(size) for size in squares]
                panel.plot(xs, values.mean(1), marker="o", markersize=3, linewidth=1.5, color=RULES[rule], label=rule,
                           linestyle="--" if "temperature" in rule else "-")
                panel.fill_between(xs, values.min(1), values.max(1), color=RULES[rule], alpha=0.15, linewidth=0)
            panel.axvline(STUDY_TRAINED, color="#999999", linewidth=0.8, linestyle=":")
            panel.grid(True, color="#dddddd", linewidth=0.6)
        row[0].set_ylabel(label)
    for panel, name in zip(axes[0], names):
        seeds = sum(model["model"] == name for model in figures["study"])
        panel.set_title(f"{STUDY[name]}, {seeds} seed{'s' if seeds > 1 else ''}", fontsize=10)
    for panel in axes[1]:
        panel.set_xlabel(f"input size, pixels (trained at {STUDY_TRAINED})")
    axes[0][-1].legend(fontsize=8, frameon=False)
    figure.savefig(file, dpi=100)
    plt.close(figure)


def header(first, sizes):
    return ["| " + first + " | " + " | ".join(size.replace("x", " x ") for size in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]


def table(rows, key, factor, digits, trained):
    sizes = list(rows[0][key])
    lines = header("rule", sizes)
    for row in rows:
        best = {size: max(other[key][size] for other in rows) for size in sizes}
        cells = [f"{factor * row[key][size]:.{digits}f}" for size in sizes]
        cells = [f"**{cell}**" if row[key][size] == best[size] and size != str(trained) else cell
                 for cell, size in zip(cells, sizes)]
        lines.append(f"| `{row['rule']}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def spread(values, factor, digits):
    mean = f"{factor * statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {factor * statistics.stdev(values):.{digits}f}"


def study_table(figures, key, factor, digits):
    """A block of rows for each kind of model: mean and standard deviation over seeds."""
    sizes = list(figures["study"][0]["rules"][0][key])
    lines = header("model, rule", sizes)
    for name, title in STUDY.items():
        seeds = sum(model["model"] == name for model in figures["study"])
        if seeds == 0:
            continue
        lines.append(f"| **{title}**, {seeds} seed{'s' if seeds > 1 else ''} |" + " |" * len(sizes))
        for rule in STUDY_RULES:
            cells = [spread(by_seed(figures, name, rule, key, size), factor, digits) for size in sizes]
            lines.append(f"| `{rule}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def content_table(figures):
    """A row for each model and kind of content."""
    models = [("shipped", [figures["content"]])]
    models += [(title, [model["content"] for model in figures["study"] if model["model"] == name])
               for name, title in STUDY.items()]
    lines = ["| model, grid of twice the trained sides | " + " | ".join(f"`{rule}`" for rule in RULES) + " |",
             "|---" * (len(RULES) + 1) + "|"]
    for title, measured in models:
        if not measured:
            continue
        for kind, what in CONTENT.items():
            cells = [spread([one["top1"][kind][rule] for one in measured], 100, 1) if rule in measured[0]["top1"][kind] else "-"
                     for rule in RULES]
            lines.append(f"| {title}: {what} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def measure_parts(args, figures):
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        if "shipped" in args.parts:
            images = copy_first(args.images, args.per_class, scratch / "images")
            features = copy_first(args.images, max(args.per_class // 5, 1), scratch / "features")
            figures |= measure(args.program, args.model, TRAINED, images, features)
        if "content" in args.parts:
            half = copy_first(args.images, max(args.per_class // 2, 4), scratch / "half")
            figures["content"] = measure_content(args.program, args.model, TRAINED, half, scratch / "content")
        if "study" in args.parts:
            figures["study"] = measure_study(args.program, args.models, args.images, scratch, args.per_class)
        if "attention" in args.parts:
            figures["attention"] = measure_attention(args.program, args.model)
            draw_attention(figures, args.program, args.model, ROOT / "data/figures/rope_attention.png")
    FIGURES.write_text(json.dumps(figures, indent=1) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--model", type=pathlib.Path, default=ROOT / "data/model")
    parser.add_argument("--images", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--per-class", type=int, default=100)
    args = parser.parse_args()
    figures = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    if args.program:
        if args.images is None and set(args.parts) != {"attention"}:
            parser.error("only attention is measured without --images")
        if args.models is None and "study" in args.parts:
            parser.error("study needs --models")
        measure_parts(args, figures)
    draw(figures, ROOT / "data/figures/rope_scaling.png")
    draw_study(figures, ROOT / "data/figures/rope_scaling_study.png")
    tables = {
        "accuracy": table(figures["rules"], "top1", 100, 1, TRAINED),
        "consistency": table(figures["rules"], "consistency", 1, 3, TRAINED),
        "study accuracy": study_table(figures, "top1", 100, 1),
        "study consistency": study_table(figures, "consistency", 1, 3),
        "content": content_table(figures),
    }
    text = PAGE.read_text()
    for name, lines in tables.items():
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        filled = f"{begin}\n{lines}\n{end}"
        text = re.sub(f"{begin}.*{end}", lambda _: filled, text, flags=re.S)
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
