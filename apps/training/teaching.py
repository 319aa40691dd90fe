"""What the scripts that make a teacher for train_cifar10.py share: their options, the loop over the images, and
the file of logits."""

import argparse
import concurrent.futures
import math
import os
import time
from pathlib import Path

import torch

import cifar10

# of ImageNet, as published models want their images
MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)


def parser_of(page):
    parser = argparse.ArgumentParser(description=page, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--state", type=Path, required=True, help="folder for the cache of pixels")
    parser.add_argument("--out", type=Path, required=True, help="file for the logits")
    parser.add_argument("--vary", type=float, default=0.0, help="as train_cifar10.py has it")
    parser.add_argument("--cut-mix", type=float, default=0.0, help="as train_cifar10.py has it")
    parser.add_argument("--threads", type=int, default=2)
    return parser


def enlarged(pixels, size):
    """Images with values 0..255 as a model of ImageNet sees them at size x size pixels."""
    larger = torch.nn.functional.interpolate(pixels, (size, size), mode="bicubic")
    return cifar10.normalise(larger, MEAN, STD)


def fine_tuning(model, groups, args, warm_up, weight_decay, longest_gradient):
    """The `update` that fit() wants: AdamW whose step size, args.lr times the "share" of each group, warms up and
    then falls as a cosine."""
    optimiser = torch.optim.AdamW(groups, lr=0, weight_decay=weight_decay)

    def rate(progress):
        if progress < warm_up:
            return progress / warm_up
        return 0.5 * (1 + math.cos(math.pi * (progress - warm_up) / (1 - warm_up)))

    def update(progress):
        for group in optimiser.param_groups:
            group["lr"] = args.lr * rate(progress) * group["share"]
        torch.nn.utils.clip_grad_norm_(model.parameters(), longest_gradient)
        optimiser.step()

    return update


def fit(replicas, pixels, labels, index, generator, args, crop_at, update):
    """Goes args.epochs times through the images of `index` in batches of args.batch. The share of the run that
    is done, in (0, 1], chooses the crops, (edge, padding) = crop_at(share), and goes to update(share), which
    finds the gradients in the model."""
    steps = int(args.epochs * len(index) / args.batch)
    recent, start = [], time.monotonic()
    for step, batch in zip(range(1, steps + 1), cifar10.shuffled_batches(index, args.batch, generator)):
        size, padding = crop_at(step / steps)
        crops = cifar10.random_crops(pixels[batch], size, padding, generator)
        crops, targets = cifar10.changed(crops, cifar10.one_hot(labels[batch]), args.vary, args.cut_mix, generator)
        recent.append(replicas.gradients(crops.contiguous(), targets))
        update(step / steps)
        if step % 50 == 0 or step == steps:
            print(f"{time.monotonic() - start:6.0f} s  step {step} of {steps}  crop {size}"
                  f"  loss {sum(recent) / len(recent):.4f}", flush=True)
            recent = []


@torch.no_grad()
def settle(model, pixels):
    """Means and variances of the normalisations over these images: the replicas kept theirs to themselves."""
    for layer in model.modules():
        if isinstance(layer, torch.nn.BatchNorm2d):
            layer.reset_running_stats()
            layer.momentum = None  # the plain mean of all batches
    model.train()
    for batch in pixels.split(500):
        model(batch.float())


def logits_of(model, pixels, threads):
    """(N, C) logits of bytes (N, 3, 32, 32)."""

    def piece(part):
        with torch.no_grad():
            return model(part.float())

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return torch.cat(list(pool.map(piece, pixels.split(250))))


def write_logits(model, pixels, labels, held_out, args):
    """The file that train_cifar10.py --teachers takes: "logits" (2, N, C) of every image and its mirror
    image."""
    model.eval()
    views = torch.stack([logits_of(model, view, args.threads) for view in (pixels, pixels.flip(3))])
    share = (views[:, held_out].argmax(2) == labels[held_out]).float().mean(1)
    print(f"held-out {100 * share[0]:.2f} %, mirrored {100 * share[1]:.2f} %", flush=True)
    torch.save({"logits": views}, args.out.with_suffix(".new"))
    os.replace(args.out.with_suffix(".new"), args.out)


def ready(args, seed):
    """Pixels (N, 3, 32, 32) of bytes, labels (N), and the indices that are trained on and held out."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    pixels, labels = cifar10.read_archive(args.train, args.state)
    return pixels, labels, *cifar10.split_held_out(labels)
