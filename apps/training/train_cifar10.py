"""Trains a small vision transformer with 2D axial rotary positions on CIFAR-10 within a given time on a CPU,
and exports it in timm's layout.

The schedule follows the processor time that the run has had: learning rate and crop size are functions of its
share of --minutes, so the run ends by itself on any machine (or of --epochs, so that it does the same on every
machine). It can be stopped and started again with the same --state folder.

    python train_cifar10.py --train train.zip --state /tmp/state --out data/model --minutes 85

With --teachers (logits written by teach_*.py) the targets are mostly theirs; --start begins with
the averaged weights of an earlier run, whose model may have fewer blocks. --bfloat16 computes gradients in
bfloat16 (the weights stay float32). --position trains the same model with another position encoding, for
study_positions.py.
"""

import argparse
import json
import math
import os
import time
from functools import partial
from pathlib import Path

import timm
import torch
from safetensors.torch import load_file, save_file

import cifar10
from lean_forward import LeanForward
from local_start import point_heads, whiten_patches
from muon import Muon
from replicas import Replicas

# timm's architecture and what differs from it, all of one class.
POSITIONS = {
    "axial": ("vit_small_patch16_rope_224", {}),
    "mixed": ("vit_small_patch16_rope_mixed_224", {}),
    "axial+table": ("vit_small_patch16_rope_ape_224", {}),
    "table": ("vit_small_patch16_rope_ape_224", {"use_rot_pos_emb": False}),
    "sinusoidal": ("vit_small_patch16_rope_ape_224", {"use_rot_pos_emb": False}),
    "none": ("vit_small_patch16_rope_224", {"use_rot_pos_emb": False}),
}
THETA = 100.0
PATCH_SIZE = 4
# Until this share of the run images are cheaper: crops of three quarters of the edge (of 32 pixels 24, so 36 patches
# instead of 64, and rotary positions continue to the full grid without change), or --drop-patches.
CHEAP_UNTIL = 0.72
# Until this share of the run images are varied and mixed; the rest is for such as will be classified.
CHANGED_UNTIL = 0.85
WARM_UP = 0.02
LABEL_SMOOTHING = 0.1
TEMPERATURE = 2.0
TEACHER_SHARE = 0.6
EMA_EVERY = 4
EMA_KEEP = 0.98


def sinusoidal_table(grid, dim):
    """(1, grid * grid, dim): sines and cosines of the column in the first half of the channels, of the row in
    the second (base 10000, Vaswani et al. 2017)."""
    turns = torch.arange(grid).double()[:, None] * 10000.0**(-torch.arange(0, dim // 2, 2).double() / (dim // 2))
    line = torch.stack([turns.sin(), turns.cos()], dim=2).flatten(1)  # (grid, dim / 2)
    columns, rows = line.expand(grid, grid, -1), line[:, None].expand(grid, grid, -1)
    return torch.cat([columns, rows], dim=2).reshape(1, grid * grid, dim).float()


def full_crop(args):
    """Edge and padding of the crops that images are classified as."""
    return args.image_size, args.image_size // 8


def cheap_crop(args):
    return args.image_size * 3 // 4 // PATCH_SIZE * PATCH_SIZE, 0


def build_model(args):
    architecture, position_args = POSITIONS[args.position]
    model_args = {
        "img_size": [args.image_size] * 2,
        "patch_size": PATCH_SIZE,
        "embed_dim": args.dim,
        "depth": args.depth,
        "num_heads": args.heads,
        "mlp_ratio": args.mlp_ratio,
        "init_values": 0.5,
        "num_classes": len(cifar10.CLASSES),
        "global_pool": "avg",
        "dynamic_img_size": True,
        **position_args,
    }
    model = timm.create_model(architecture, patch_drop_rate=args.drop_patches, **model_args)
    if args.position == "sinusoidal":
        model.pos_embed.data = sinusoidal_table(args.image_size // PATCH_SIZE, args.dim)
        model.pos_embed.requires_grad_(False)
    return model, {"architecture": architecture, "model_args": model_args}


def start_values(model, pixels, local_depth):
    whiten_patches(model.patch_embed.proj, pixels)
    for depth, block in enumerate(model.blocks):
        if depth < local_depth:
            point_heads(block.attn, THETA, sharpness=2.0)


def build_optimisers(model, args, kind, map_over):
    matrices = [(n, p) for n, p in model.named_parameters() if n.startswith("blocks.") and p.ndim == 2]
    chosen = {n for n, _ in matrices}
    rest = [p for n, p in model.named_parameters() if n not in chosen and p.requires_grad]
    return [
        Muon(matrices, lr=args.muon_lr, weight_decay=args.weight_decay, dtype=kind, map_over=map_over),
        torch.optim.AdamW(rest, lr=args.adam_lr, betas=(0.9, 0.98), weight_decay=0.0)
    ]


def start_weights(file):
    """The averaged weights of a state file, or those of an exported model."""
    if file.suffix == ".safetensors":
        return {name: value.float() for name, value in load_file(file).items()}
    return torch.load(file, weights_only=True)["average"]


def deepened(weights, depth):
    """The weights of a model of `depth` blocks that computes the same: new blocks are copies of others, spread
    evenly, whose LayerScale begins at zero."""
    blocks = {}
    for name, value in weights.items():
        if name.startswith("blocks."):
            _, block, rest = name.split(".", 2)
            blocks.setdefault(int(block), {})[rest] = value
    sources = [(i * len(blocks) + len(blocks) // 2) // depth for i in range(depth)]
    result = {name: value for name, value in weights.items() if not name.startswith("blocks.")}
    for new, old in enumerate(sources):
        repeated = new > 0 and sources[new - 1] == old
        for rest, value in blocks[old].items():
            result[f"blocks.{new}.{rest}"] = torch.zeros_like(value) if repeated and "gamma" in rest else value.clone()
    return result


def rate(progress):
    """Share of the full learning rate: linear warm-up, level until 30 %, then a straight line to zero."""
    if progress < WARM_UP:
        return (progress + 0.1 * WARM_UP) / (1.1 * WARM_UP)
    return 1.0 if progress < 0.3 else max(0.0, (1.0 - progress) / 0.7)


def accuracy(model, pixels, labels, pool):

    @torch.no_grad()
    def right(first):
        part = slice(first, first + 250)
        return (model(cifar10.normalise(pixels[part])).argmax(1) == labels[part]).sum().item()

    model.eval()
    count = sum(pool.map(right, range(0, len(labels), 250)))
    model.train()
    return count / len(labels)


def export(weights, description, folder):
    """Writes config.json and model.safetensors (float16) so that timm.create_model(architecture,
    **model_args) loads them strictly."""
    folder.mkdir(parents=True, exist_ok=True)
    model_args = description["model_args"]
    config = {
        "architecture": description["architecture"],
        "num_classes": len(cifar10.CLASSES),
        "num_features": model_args["embed_dim"],
        "global_pool": model_args["global_pool"],
        "model_args": model_args,
        "label_names": list(cifar10.CLASSES),
        "pretrained_cfg": {
            "tag": "cifar10",
            "custom_load": False,
            "input_size": [3, *model_args["img_size"]],
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

    def __init__(self, args, pixels, loss_of):
        torch.manual_seed(args.seed)
        self.generator = torch.Generator().manual_seed(args.seed)
        self.model, self.description = build_model(args)
        start_values(self.model,
                     cifar10.normalise(pixels[torch.randperm(len(pixels), generator=self.generator)[:2000]]),
                     args.local_depth)
        learner = LeanForward(self.model, (cheap_crop(args)[0], full_crop(args)[0])) if args.bfloat16 else self.model
        kind = torch.bfloat16 if args.bfloat16 else torch.float32
        self.replicas = Replicas(learner, args.threads, args.pieces, loss_of, kind)
        self.optimisers = build_optimisers(self.model, args, kind, self.replicas.pool.map)
        self.average = {n: v.detach().clone() for n, v in self.model.state_dict().items()}
        self.seconds, self.steps, self.images = 0.0, 0, 0
        self.path = args.state / "state.pt"
        if self.path.exists():
            self.load(torch.load(self.path, weights_only=True))
        elif args.start:
            self.average = deepened(start_weights(args.start), args.depth)
            self.model.load_state_dict(self.average)

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


def loss_without_teacher(logits, targets):
    return torch.nn.functional.cross_entropy(logits, targets, label_smoothing=LABEL_SMOOTHING)


def loss_with_teacher(logits, targets):
    """Hinton et al. 2015. targets (B, 2C): probabilities of the teacher at TEMPERATURE, then the labels as
    ones and zeros."""
    soft, hard = targets.chunk(2, dim=1)
    distance = torch.nn.functional.kl_div((logits / TEMPERATURE).log_softmax(1), soft, reduction="batchmean")
    return (TEACHER_SHARE * TEMPERATURE**2 * distance
            + (1 - TEACHER_SHARE) * torch.nn.functional.cross_entropy(logits, hard))


def targets_and_loss(labels, teachers):
    """A row of probabilities per image, and the mean loss of outputs against such rows: labels as ones and zeros,
    or what the teachers make of the image beside them."""
    hard = cifar10.one_hot(labels)
    if not teachers:
        return hard, loss_without_teacher
    # logits (2, N, C) of every image and its mirror image: the mean of all votes is better than each
    votes = [torch.load(file, weights_only=True)["logits"].log_softmax(-1) for file in teachers]
    soft = (torch.cat(votes).mean(0) / TEMPERATURE).softmax(-1)
    return torch.cat([soft, hard], dim=1), loss_with_teacher


def pieces_of(batch, pixels, targets, progress, args, generator):
    """The pieces of a batch as Replicas.gradients_of takes them. Every piece has random numbers of its own."""
    cheap, changed = progress < CHEAP_UNTIL, progress < CHANGED_UNTIL
    size, padding = cheap_crop(args) if cheap and not args.drop_patches else full_crop(args)

    def make(index, seed):
        draw = torch.Generator().manual_seed(seed)
        images = pixels[index]
        if args.zoom > 1:
            images = cifar10.enlarged(images, args.zoom, draw)
        crops, aims = cifar10.random_crops(images, size, padding, draw), targets[index]
        if changed:
            crops, aims = cifar10.changed(crops, aims, args.vary, args.cut_mix, draw)
        return cifar10.normalise(crops).contiguous(), aims

    seeds = torch.randint(2**31, (args.pieces,), generator=generator).tolist()
    return [(partial(make, index, seed), len(index) / len(batch))
            for index, seed in zip(batch.chunk(args.pieces), seeds)]


def choose_drop(run, args, progress):
    if args.drop_patches:
        for replica in run.replicas.copies:
            replica.patch_drop.prob = args.drop_patches if progress < CHEAP_UNTIL else 0.0


def take_step(run, pieces, rates):
    """One update of the weights; returns the loss before it."""
    loss = run.replicas.gradients_of(pieces)
    if not math.isfinite(loss):
        raise SystemExit(f"loss {loss} in step {run.steps}")
    torch.nn.utils.clip_grad_norm_(run.model.parameters(), 5.0)
    for optimiser, lr in zip(run.optimisers, rates):
        optimiser.param_groups[0]["lr"] = lr
        optimiser.step()
    run.steps += 1
    if run.steps % EMA_EVERY == 0:
        run.update_average()
    return loss


def train(args):
    pixels, labels = cifar10.read_archive(args.train, args.cache or args.state)
    pixels = cifar10.resized(pixels, args.image_size)
    train_index, held_out = cifar10.split_held_out(labels)
    targets, loss_of = targets_and_loss(labels, args.teachers)
    run = Run(args, pixels[train_index], loss_of)
    watched = build_model(args)[0]
    parameters = sum(p.numel() for p in run.model.parameters())
    print(f"{parameters} parameters, {len(train_index)} images, from {run.seconds:.0f} s", flush=True)
    batches = cifar10.shuffled_batches(train_index, args.batch, run.generator)
    if args.bfloat16:
        # Compiles for both sizes, one thread at a time.
        for progress in (0.0, 1.0):
            choose_drop(run, args, progress)
            run.replicas.piece(*pieces_of(next(batches), pixels, targets, progress, args, run.generator)[0])
    recent = []
    next_report, mark = run.seconds + args.report_seconds, time.process_time()

    def progress_now():
        if args.epochs:
            return run.images / (args.epochs * len(train_index))
        return run.seconds / (60 * args.minutes)

    while (progress := progress_now()) < 1:
        batch = next(batches)
        choose_drop(run, args, progress)
        rates = [lr * rate(progress) for lr in (args.muon_lr, args.adam_lr)]
        recent.append(take_step(run, pieces_of(batch, pixels, targets, progress, args, run.generator), rates))
        run.images += len(batch)
        now = time.process_time()
        run.seconds, mark = run.seconds + (now - mark) / args.threads, now
        if run.seconds >= next_report or progress_now() >= 1:
            watched.load_state_dict(run.average)
            share = accuracy(watched, pixels[held_out], labels[held_out], run.replicas.pool)
            print(f"{run.seconds:6.0f} s  step {run.steps}  epoch {run.images / len(train_index):.2f}"
                  f"  rate {rate(progress):.3f}  loss {sum(recent) / len(recent):.4f}"
                  f"  held-out {100 * share:.2f} %", flush=True)
            run.save()
            recent, next_report = [], run.seconds + args.report_seconds
    export(run.average, run.description, args.out)
    print(f"exported to {args.out}", flush=True)


def existing(text):
    """The path that an option gives; argparse says if nothing is there."""
    path = Path(text)
    if not path.exists():
        raise argparse.ArgumentTypeError(f"{text}: no such file")
    return path


def add_model_options(parser):
    """What the model is, how its weights move, and what becomes of its images."""
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--position", choices=POSITIONS, default="axial")
    parser.add_argument("--drop-patches",
                        type=float,
                        default=0.0,
                        help="share of the patches left out, instead of small crops")
    parser.add_argument("--image-size",
                        type=int,
                        default=32,
                        help="edge that the images of 32 pixels are resized to: the finer the patches, the dearer")
    parser.add_argument("--dim", type=int, default=160)
    parser.add_argument("--depth", type=int, default=7)
    parser.add_argument("--heads", type=int, default=5)
    parser.add_argument("--mlp-ratio", type=float, default=3.0)
    parser.add_argument("--local-depth",
                        type=int,
                        default=5,
                        help="blocks whose heads start with a direction (axial only)")
    parser.add_argument("--muon-lr", type=float, default=0.02)
    parser.add_argument("--adam-lr", type=float, default=0.002)
    parser.add_argument("--weight-decay", type=float, default=0.02)
    parser.add_argument("--cut-mix",
                        type=float,
                        default=0.0,
                        help="share of the images that get a part of another one")
    parser.add_argument("--vary",
                        type=float,
                        default=0.0,
                        help="share of the images that are turned, scaled and slanted; brightness, contrast and"
                        " saturation each change in as many")
    parser.add_argument("--start",
                        type=existing,
                        help="state.pt or model.safetensors of an earlier run, whose weights are the start")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--state", type=Path, required=True, help="folder for the restart file")
    parser.add_argument("--cache", type=Path, help="folder for decoded images; default --state")
    parser.add_argument("--out",
                        type=Path,
                        required=True,
                        help="folder for config.json and model.safetensors")
    parser.add_argument("--minutes", type=float, default=85)
    parser.add_argument("--epochs", type=float, help="instead of --minutes")
    parser.add_argument("--zoom", type=float, default=1.0, help="enlarge the images of a batch by up to this")
    parser.add_argument("--teachers", type=existing, nargs="+", help="logits written by teach_*.py")
    parser.add_argument("--batch", type=int, default=192)
    parser.add_argument("--pieces", type=int, default=4, help="parts of a batch, for as many threads or fewer")
    parser.add_argument("--bfloat16",
                        action="store_true",
                        help="gradients in bfloat16: twice as fast where the processor multiplies it (axial only)")
    parser.add_argument("--report-seconds", type=float, default=600)
    parser.add_argument("--threads", type=int, default=2)
    add_model_options(parser)
    args = parser.parse_args()
    if args.bfloat16 and args.position != "axial":
        parser.error("--bfloat16 is for --position axial")
    torch.set_num_threads(1)
    args.state.mkdir(parents=True, exist_ok=True)
    train(args)


if __name__ == "__main__":
    main()
