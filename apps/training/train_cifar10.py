"""Trains a small vision transformer with 2D axial rotary positions on CIFAR-10 within a given time on a CPU,
and exports it in timm's layout.

The schedule follows the processor time that the run has had, not a number of steps: learning rate and crop
size are functions of its share of --minutes, so the run ends by itself on any machine. It can be stopped and
started again with the same --state folder.

    python train_cifar10.py --train train.zip --state /tmp/state --out data/model --minutes 85

With --teacher (logits written by teach_cifar10.py) the targets are mostly the teacher's; --start begins with
the averaged weights of an earlier state.
"""

import argparse
import json
import math
import os
import time
from pathlib import Path

import timm
import torch
from safetensors.torch import save_file

import cifar10
from local_start import point_heads, whiten_patches
from muon import Muon
from replicas import Replicas

ARCHITECTURE = "vit_small_patch16_rope_224"
THETA = 100.0
SEED = 1
# (share of the time until which it is used, crop edge, padding). Small crops first: 36 patches instead of 64
# cost about half, and rotary positions continue to the full grid without change.
CROPS = ((0.72, 24, 0), (1.0, 32, 4))
WARM_UP = 0.02
LABEL_SMOOTHING = 0.1
TEMPERATURE = 2.0
TEACHER_SHARE = 0.6
PIECES = 4
EMA_EVERY = 4
EMA_KEEP = 0.98


def build_model(args):
    model_args = {
        "img_size": [32, 32],
        "patch_size": 4,
        "embed_dim": args.dim,
        "depth": args.depth,
        "num_heads": args.heads,
        "mlp_ratio": args.mlp_ratio,
        "init_values": 0.5,
        "rope_temperature": THETA,
        "num_classes": len(cifar10.CLASSES),
        "global_pool": "avg",
        "dynamic_img_size": True,
    }
    return timm.create_model(ARCHITECTURE, **model_args), model_args


def start_values(model, pixels, local_depth):
    whiten_patches(model.patch_embed.proj, pixels)
    for depth, block in enumerate(model.blocks):
        if depth < local_depth:
            point_heads(block.attn, THETA, sharpness=2.0)


def build_optimisers(model, args):
    matrices = [(n, p) for n, p in model.named_parameters() if n.startswith("blocks.") and p.ndim == 2]
    chosen = {n for n, _ in matrices}
    rest = [p for n, p in model.named_parameters() if n not in chosen]
    return [
        Muon(matrices, lr=args.muon_lr, weight_decay=args.weight_decay),
        torch.optim.AdamW(rest, lr=args.adam_lr, betas=(0.9, 0.98), weight_decay=0.0)
    ]


def rate(progress):
    """Share of the full learning rate: linear warm-up, level until 30 %, then a straight line to zero."""
    if progress < WARM_UP:
        return (progress + 0.1 * WARM_UP) / (1.1 * WARM_UP)
    return 1.0 if progress < 0.3 else max(0.0, (1.0 - progress) / 0.7)


def crop_at(progress):
    return next((size, padding) for until, size, padding in CROPS if progress < until or until == 1.0)


@torch.no_grad()
def accuracy(model, pixels, labels):
    model.eval()
    right = sum((model(cifar10.normalise(pixels[i:i + 250])).argmax(1) == labels[i:i + 250]).sum().item()
                for i in range(0, len(labels), 250))
    model.train()
    return right / len(labels)


def export(weights, model_args, folder):
    """Writes config.json and model.safetensors (float16) so that timm.create_model(architecture,
    **model_args) loads them strictly."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {
        "architecture": ARCHITECTURE,
        "num_classes": len(cifar10.CLASSES),
        "num_features": model_args["embed_dim"],
        "global_pool": model_args["global_pool"],
        "model_args": model_args,
        "label_names": list(cifar10.CLASSES),
        "pretrained_cfg": {
            "tag": "cifar10",
            "custom_load": False,
            "input_size": [3, 32, 32],
            "fixed_input_size": False,
            "interpolation": "bicubic",
            "crop_pct": 1.0,
            "crop_mode": "center",
            "mean": list(cifar10.MEAN),
            "std": list(cifar10.STD),
            "num_classes": len(cifar10.CLASSES),
            "pool_size": None,
            "first_conv": "patch_embed.proj",
            "classifier": "head",
            "license": "mit",
        },
    }
    (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    tensors = {name: value.half().contiguous() for name, value in weights.items()}
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "model.safetensors").chmod(0o644)


def save_state(path, state):
    torch.save(state, path.with_suffix(".new"))
    os.replace(path.with_suffix(".new"), path)


class Run:
    """Everything that a restart needs: model, averaged weights, optimisers, random numbers, elapsed seconds
    and steps."""

    def __init__(self, args, pixels):
        torch.manual_seed(SEED)
        self.generator = torch.Generator().manual_seed(SEED)
        self.model, self.model_args = build_model(args)
        start_values(self.model,
                     cifar10.normalise(pixels[torch.randperm(len(pixels), generator=self.generator)[:2000]]),
                     args.local_depth)
        self.optimisers = build_optimisers(self.model, args)
        self.average = {n: v.detach().clone() for n, v in self.model.state_dict().items()}
        self.seconds, self.steps, self.images = 0.0, 0, 0
        self.path = args.state / "state.pt"
        if self.path.exists():
            self.load(torch.load(self.path, weights_only=True))
        elif args.start:
            self.average = torch.load(args.start, weights_only=True)["average"]
            self.model.load_state_dict(self.average)
            self.average = {n: v.clone() for n, v in self.average.items()}

    def load(self, state):
        self.model.load_state_dict(state["model"])
        self.average = state["average"]
        for optimiser, stored in zip(self.optimisers, state["optimisers"]):
            optimiser.load_state_dict(stored)
        self.generator.set_state(state["generator"])
        self.seconds, self.steps, self.images = state["seconds"], state["steps"], state["images"]

    def save(self):
        save_state(
            self.path, {
                "model": self.model.state_dict(),
                "average": self.average,
                "optimisers": [o.state_dict() for o in self.optimisers],
                "generator": self.generator.get_state(),
                "seconds": self.seconds,
                "steps": self.steps,
                "images": self.images,
            })

    def update_average(self):
        keep = min(EMA_KEEP, 1 - 1 / (1 + self.steps / EMA_EVERY / 4))
        for name, value in self.model.state_dict().items():
            self.average[name].lerp_(value, 1 - keep)


def loss_without_teacher(logits, labels):
    return torch.nn.functional.cross_entropy(logits, labels, label_smoothing=LABEL_SMOOTHING)


def loss_with_teacher(logits, targets):
    """Hinton et al. 2015. targets (B, 2C): probabilities of the teacher at TEMPERATURE, then the labels as
    ones and zeros."""
    soft, hard = targets.chunk(2, dim=1)
    distance = torch.nn.functional.kl_div((logits / TEMPERATURE).log_softmax(1), soft, reduction="batchmean")
    return (TEACHER_SHARE * TEMPERATURE**2 * distance
            + (1 - TEACHER_SHARE) * torch.nn.functional.cross_entropy(logits, hard))


class Targets:
    """What the loss compares with: labels, or the teacher's view of the same image beside them."""

    def __init__(self, labels, teacher):
        self.labels, self.soft = labels, None
        if teacher:
            stored = torch.load(teacher, weights_only=True)["logits"]  # (2, N, C): as it is, mirrored
            self.soft = (stored / TEMPERATURE).softmax(-1)
        self.loss = loss_with_teacher if teacher else loss_without_teacher

    def of(self, batch, mirrored):
        if self.soft is None:
            return self.labels[batch]
        hard = torch.nn.functional.one_hot(self.labels[batch], len(cifar10.CLASSES)).float()
        return torch.cat([self.soft[mirrored.long(), batch], hard], dim=1)


def take_step(run, replicas, inputs, targets, rates):
    """One update of the weights; returns the loss before it."""
    loss = replicas.gradients(inputs, targets)
    if not math.isfinite(loss):
        raise SystemExit(f"loss {loss} in step {run.steps}")
    torch.nn.utils.clip_grad_norm_(run.model.parameters(), 5.0)
    for optimiser, lr in zip(run.optimisers, rates):
        optimiser.param_groups[0]["lr"] = lr
        optimiser.step()
    run.steps, run.images = run.steps + 1, run.images + len(targets)
    if run.steps % EMA_EVERY == 0:
        run.update_average()
    return loss


def train(args):
    pixels, labels = cifar10.read_archive(args.train, args.state)
    train_index, held_out = cifar10.split_held_out(labels)
    run = Run(args, pixels[train_index])
    watched = build_model(args)[0]
    targets = Targets(labels, args.teacher)
    replicas = Replicas(run.model, args.threads, PIECES, targets.loss)
    parameters = sum(p.numel() for p in run.model.parameters())
    print(f"{parameters} parameters, {len(train_index)} images, from {run.seconds:.0f} s", flush=True)
    budget, order, recent = 60 * args.minutes, torch.empty(0, dtype=torch.int64), []
    next_report, mark = run.seconds + args.report_seconds, time.process_time()
    while run.seconds < budget:
        progress = run.seconds / budget
        if len(order) < args.batch:
            order = train_index[torch.randperm(len(train_index), generator=run.generator)]
        batch, order = order[:args.batch], order[args.batch:]
        size, padding = crop_at(progress)
        crops, mirrored = cifar10.random_crops(pixels[batch], size, padding, run.generator)
        inputs = cifar10.normalise(crops).contiguous()
        rates = [lr * rate(progress) for lr in (args.muon_lr, args.adam_lr)]
        recent.append(take_step(run, replicas, inputs, targets.of(batch, mirrored), rates))
        now = time.process_time()
        run.seconds, mark = run.seconds + (now - mark) / args.threads, now
        if run.seconds >= next_report or run.seconds >= budget:
            watched.load_state_dict(run.average)
            share = accuracy(watched, pixels[held_out], labels[held_out])
            print(f"{run.seconds:6.0f} s  step {run.steps}  epoch {run.images / len(train_index):.2f}"
                  f"  crop {size}  rate {rate(progress):.3f}  loss {sum(recent) / len(recent):.4f}"
                  f"  held-out {100 * share:.2f} %", flush=True)
            run.save()
            recent, next_report = [], run.seconds + args.report_seconds
    export(run.average, run.model_args, args.out)
    print(f"exported to {args.out}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--state", type=Path, required=True, help="folder for the cache and the restart file")
    parser.add_argument("--out",
                        type=Path,
                        required=True,
                        help="folder for config.json and model.safetensors")
    parser.add_argument("--minutes", type=float, default=85)
    parser.add_argument("--teacher", type=Path, help="logits written by teach_cifar10.py")
    parser.add_argument("--start", type=Path, help="state.pt of an earlier run whose weights are the start")
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--dim", type=int, default=160)
    parser.add_argument("--depth", type=int, default=7)
    parser.add_argument("--heads", type=int, default=5)
    parser.add_argument("--mlp-ratio", type=float, default=3.0)
    parser.add_argument("--local-depth",
                        type=int,
                        default=5,
                        help="blocks whose heads start with a direction")
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=0.002)
    parser.add_argument("--weight-decay", type=float, default=0.02)
    parser.add_argument("--report-seconds", type=float, default=600)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.state.mkdir(parents=True, exist_ok=True)
    train(args)


if __name__ == "__main__":
    main()
