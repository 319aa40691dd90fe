"""Evaluates a timm checkpoint folder with PyTorch on FOLDER/<class>/<image>: the reference figures that `vit
evaluate` must reproduce.

    python evaluate_cifar10.py --model data/model FOLDER
    python evaluate_cifar10.py --model data/model FOLDER --predictions reference.jsonl
    python evaluate_cifar10.py --model data/model FOLDER --neighbours TRAINING_FOLDER

Preprocessing is timm's own for the checkpoint. With --predictions every image becomes one line in the form of
`vit classify --format json`, so the two files can be compared line by line. With --neighbours the pooled
embeddings vote too: each image by its 20 nearest training images.
"""

import argparse
import json
from pathlib import Path

import timm
import torch
from PIL import Image

NEIGHBOURS = 20
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


def paths_and_truth(folder, labels):
    images = list_images(folder, labels)
    if not images:
        raise SystemExit(f"{folder}: no images in class folders")
    return [path for path, _ in images], torch.tensor([label for _, label in images])


@torch.inference_mode()
def predict(model, transform, paths, batch):
    """Logits (len(paths), classes) and pooled embeddings (len(paths), C)."""
    logits, pooled = [], []
    for start in range(0, len(paths), batch):
        images = [transform(Image.open(path).convert("RGB")) for path in paths[start:start + batch]]
        tokens = model.forward_features(torch.stack(images))
        pooled.append(model.forward_head(tokens, pre_logits=True))
        logits.append(model.forward_head(tokens))
    return torch.cat(logits), torch.cat(pooled)


def calibration_error(logits, truth, bins=15):
    """Mean distance of confidence and accuracy over equal bins of confidence (Guo et al. 2017)."""
    confidence, predicted = logits.softmax(-1).max(1)
    right = (predicted == truth).float()
    bin_of = (confidence * bins).long().clamp(max=bins - 1)
    error = sum((right[bin_of == b].mean() - confidence[bin_of == b].mean()).abs() * (bin_of == b).sum()
                for b in range(bins) if (bin_of == b).any())
    return (error / len(truth)).item()


def vote_of_neighbours(pooled, known, known_truth, classes):
    """The class (N,) with the largest sum of cosines among the NEIGHBOURS nearest of `known`."""
    known = torch.nn.functional.normalize(known, dim=1)
    votes = []
    for rows in torch.nn.functional.normalize(pooled, dim=1).split(500):
        cosines, nearest = (rows @ known.T).topk(NEIGHBOURS, dim=1)
        votes.append(torch.zeros(len(rows), classes).scatter_add_(1, known_truth[nearest], cosines).argmax(1))
    return torch.cat(votes)


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
    parser.add_argument("--neighbours", type=Path, help="folder of training images for a vote of neighbours")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)

    model, transform, labels = load_checkpoint(args.model)
    paths, truth = paths_and_truth(args.folder, labels)
    logits, pooled = predict(model, transform, paths, args.batch)
    if args.predictions:
        write_predictions(args.predictions, paths, logits, labels)
    print_confusion(truth, logits.argmax(1), labels)
    ranked = logits.argsort(dim=1, descending=True, stable=True)
    hits = ranked == truth[:, None]
    figures = {
        "images": len(paths), "top1": hits[:, 0].float().mean().item(),
        "top5": hits[:, :5].any(1).float().mean().item(),
        "calibration_error": calibration_error(logits, truth)
    }
    if args.neighbours:
        known_paths, known_truth = paths_and_truth(args.neighbours, labels)
        _, known = predict(model, transform, known_paths, args.batch)
        votes = vote_of_neighbours(pooled, known, known_truth, len(labels))
        figures["nearest_neighbours_top1"] = (votes == truth).float().mean().item()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
