"""Evaluates a timm checkpoint folder with PyTorch on FOLDER/<class>/<image>: the reference figures that `vit
evaluate` must reproduce.

    python evaluate_cifar10.py --model data/model FOLDER
    python evaluate_cifar10.py --model data/model FOLDER --predictions reference.jsonl

Preprocessing is timm's own for the checkpoint. With --predictions every image becomes one line in the form of
`vit classify --format json`, so the two files can be compared line by line.
"""

import argparse
import json
from pathlib import Path

import timm
import torch
from PIL import Image

EXTENSIONS = {".jpg", ".jpeg", ".png", ".bmp", ".webp", ".tif", ".tiff", ".ppm"}


def load_checkpoint(folder):
    """The model in evaluation mode, its preprocessing, and its label names."""
    model = timm.create_model(f"local-dir:{Path(folder).resolve()}", pretrained=True).eval()
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    config = json.loads((Path(folder) / "config.json").read_text())
    return model, transform, config["label_names"]


def list_images(folder, labels):
    """(path, class index) of every image below folder/<class>/, sorted by path."""
    found = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() in EXTENSIONS):
        name = path.relative_to(folder).parts[0]
        if name not in labels:
            raise SystemExit(f"{path}: folder '{name}' is none of the model's classes ({', '.join(labels)})")
        found.append((path, labels.index(name)))
    return found


@torch.inference_mode()
def predict(model, transform, paths, batch):
    """Logits (len(paths), classes)."""
    logits = []
    for start in range(0, len(paths), batch):
        images = [transform(Image.open(path).convert("RGB")) for path in paths[start:start + batch]]
        logits.append(model(torch.stack(images)))
    return torch.cat(logits)


def write_predictions(file, paths, logits, labels):
    probabilities = logits.softmax(-1)
    with open(file, "w", encoding="utf-8") as out:
        for path, row, share in zip(paths, logits, probabilities):
            top = [{"index": i, "label": labels[i], "probability": share[i].item(), "logit": row[i].item()}
                   for i in row.argsort(descending=True, stable=True)[:5].tolist()]
            out.write(json.dumps({"file": str(path), "top": top}) + "\n")


def print_confusion(truth, predicted, labels):
    """One row per true class: share that is right, then what it was taken for."""
    counts = torch.bincount(truth * len(labels) + predicted, minlength=len(labels)**2).view(len(labels), -1)
    print(f"{'true class':12} {'right':>7}   predicted as " + " ".join(f"{name[:5]:>5}" for name in labels))
    for name, row, index in zip(labels, counts, range(len(labels))):
        if row.sum() > 0:
            share = 100 * row[index].item() / row.sum().item()
            print(f"{name:12} {share:6.1f}%                " + " ".join(f"{n:5d}" for n in row.tolist()))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model",
                        type=Path,
                        required=True,
                        help="folder with config.json and model.safetensors in timm's layout")
    parser.add_argument("--predictions", type=Path, help="write top-5 of every image, one JSON object a line")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    model, transform, labels = load_checkpoint(args.model)
    images = list_images(args.folder, labels)
    if not images:
        raise SystemExit(f"{args.folder}: no images in class folders")
    paths, truth = [path for path, _ in images], torch.tensor([label for _, label in images])
    logits = predict(model, transform, paths, args.batch)
    if args.predictions:
        write_predictions(args.predictions, paths, logits, labels)
    print_confusion(truth, logits.argmax(1), labels)
    ranked = logits.argsort(dim=1, descending=True, stable=True)
    hits = ranked == truth[:, None]
    print(
        json.dumps({
            "images": len(paths), "top1": hits[:, 0].float().mean().item(),
            "top5": hits[:, :5].any(1).float().mean().item()
        }))


if __name__ == "__main__":
    main()
