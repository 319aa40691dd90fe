r"""Fine-tunes a published DeiT (Hugging Face folder) on the training images of CIFAR-10 and writes its logits
for every image and its mirror image: soft targets for train_cifar10.py --teacher.

The held-out images of cifar10.py are not trained on. Two epochs at 80 pixels and the logits are about 15
minutes on two cores.

    python teach_cifar10.py --train train.zip --pretrained deit-tiny-patch16-224 --state /tmp/state \
        --out teacher.pt
"""

import argparse
import concurrent.futures
import math
import os
import time
from pathlib import Path

import torch
from transformers import ViTForImageClassification

import cifar10
from replicas import Replicas

MEAN = (0.485, 0.456, 0.406)
STD = (0.229, 0.224, 0.225)
SEED = 1
WARM_UP = 0.1
PIECES = 4


class Teacher(torch.nn.Module):
    """32-pixel images (B, 3, 32, 32) with values 0..255 in, logits (B, 10) out."""

    def __init__(self, folder, size):
        super().__init__()
        self.vit = ViTForImageClassification.from_pretrained(folder, num_labels=len(cifar10.CLASSES),
                                                             ignore_mismatched_sizes=True)
        self.size = size
        self.register_buffer("mean", torch.tensor(MEAN).view(1, 3, 1, 1) * 255)
        self.register_buffer("std", torch.tensor(STD).view(1, 3, 1, 1) * 255)

    def forward(self, pixels):
        larger = torch.nn.functional.interpolate(pixels, (self.size, self.size), mode="bicubic")
        return self.vit(pixel_values=(larger - self.mean) / self.std, interpolate_pos_encoding=True).logits


def logits_of(model, pixels, threads):
    """(N, 10) logits of bytes (N, 3, 32, 32)."""

    def piece(start):
        with torch.no_grad():
            return model(pixels[start:start + 250].float())

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return torch.cat(list(pool.map(piece, range(0, len(pixels), 250))))


def rate(progress):
    return progress / WARM_UP if progress < WARM_UP else 0.5 * (1 + math.cos(
        math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


def fine_tune(model, pixels, labels, train_index, args):
    generator = torch.Generator().manual_seed(SEED)
    replicas = Replicas(model, args.threads, PIECES, torch.nn.functional.cross_entropy)
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)
    steps = int(args.epochs * len(train_index) / args.batch)
    order, recent, start = torch.empty(0, dtype=torch.int64), [], time.monotonic()
    for step in range(steps):
        if len(order) < args.batch:
            order = train_index[torch.randperm(len(train_index), generator=generator)]
        batch, order = order[:args.batch], order[args.batch:]
        crops, _ = cifar10.random_crops(pixels[batch], 32, 4, generator)
        optimiser.param_groups[0]["lr"] = args.lr * rate((step + 1) / steps)
        recent.append(replicas.gradients(crops.contiguous(), labels[batch]))
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        if (step + 1) % 50 == 0:
            print(f"{time.monotonic() - start:6.0f} s  step {step + 1} of {steps}"
                  f"  loss {sum(recent) / len(recent):.4f}", flush=True)
            recent = []


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--pretrained", type=Path, required=True, help="folder of a DeiT or ViT classifier")
    parser.add_argument("--state", type=Path, required=True, help="folder for the cache of pixels")
    parser.add_argument("--out", type=Path, required=True, help="file for the logits")
    parser.add_argument("--size", type=int, default=80, help="pixels that the teacher sees")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--lr", type=float, default=2e-4)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(SEED)

    pixels, labels = cifar10.read_archive(args.train, args.state)
    train_index, held_out = cifar10.split_held_out(labels)
    model = Teacher(args.pretrained, args.size).train()
    fine_tune(model, pixels, labels, train_index, args)
    model.eval()
    views = torch.stack([logits_of(model, view, args.threads) for view in (pixels, pixels.flip(3))])
    right = (views[0, held_out].argmax(1) == labels[held_out]).float().mean().item()
    print(f"held-out {100 * right:.2f} %", flush=True)
    torch.save({"logits": views, "held_out_accuracy": right}, args.out.with_suffix(".new"))
    os.replace(args.out.with_suffix(".new"), args.out)


if __name__ == "__main__":
    main()
