r"""Trains a small convolutional network on the training images of CIFAR-10 and writes its logits for every
image and its mirror image: soft targets for train_cifar10.py --teachers.

A network of convolutions learns from few images what a transformer needs many for, at a fraction of the
arithmetic. The recipe follows Jordan 2024 ("94 % on CIFAR-10 in 3.29 seconds on a single GPU"): whitened first
convolution that stays as it is, convolutions that start near the identity, orthogonalised updates. The
held-out images of cifar10.py are not trained on.

    python teach_convolutions.py --train train.zip --state /tmp/state --out convolutions.pt
"""

import torch
from torch import nn

import cifar10
import teaching
from local_start import whiten_patches
from muon import Muon
from replicas import Replicas

SEED = 1
WIDTHS = (64, 256, 256)
WARM_UP = 0.05
LABEL_SMOOTHING = 0.1
# (share of the steps until which it is used, crop edge, padding): small crops first, at little more than half
# the cost.
CROPS = ((0.45, 24, 0), (1.0, 32, 3))
PIECES = 4
HEAD_SCALE = 1 / 9


def convolution(inputs, outputs):
    """3 x 3, the first `inputs` outputs starting as a copy of the inputs."""
    layer = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
    nn.init.dirac_(layer.weight[:inputs])
    return layer


def group(inputs, outputs):
    return nn.Sequential(
        convolution(inputs, outputs), nn.MaxPool2d(2), nn.BatchNorm2d(outputs), nn.GELU(),
        convolution(outputs, outputs), nn.BatchNorm2d(outputs), nn.GELU())


class Teacher(nn.Module):
    """Images (B, 3, H, W) of 24 or more pixels with values 0..255 in, logits (B, 10) out."""

    def __init__(self):
        super().__init__()
        first = 2 * 3 * 2 * 2  # both signs of every direction of a 2 x 2 patch
        self.patches = nn.Conv2d(3, first, 2)
        self.groups = nn.Sequential(*(group(i, o) for i, o in zip((first, *WIDTHS), WIDTHS)))
        self.head = nn.Linear(WIDTHS[-1], len(cifar10.CLASSES), bias=False)

    def forward(self, pixels):
        images = cifar10.normalise(pixels).contiguous(memory_format=torch.channels_last)
        features = self.groups(nn.functional.gelu(self.patches(images)))
        return HEAD_SCALE * self.head(features.amax((2, 3)))


def rate(progress):
    return progress / WARM_UP if progress < WARM_UP else (1 - progress) / (1 - WARM_UP)


def crop_at(progress):
    return next((size, padding) for until, size, padding in CROPS if progress <= until)


def loss_of(logits, labels):
    return nn.functional.cross_entropy(logits, labels, label_smoothing=LABEL_SMOOTHING)


@torch.no_grad()
def keep_length(convolutions):
    """Filters are followed by a normalisation: their length means nothing, but it sets how far a step of
    given size turns them."""
    for weight in convolutions:
        weight.mul_(len(weight)**0.5 / weight.norm())


def train(model, pixels, labels, train_index, args):
    generator = torch.Generator().manual_seed(SEED)
    whiten_patches(model.patches, cifar10.normalise(pixels[train_index[:2000]]))
    model.patches.weight.requires_grad_(False)
    convolutions = [p for p in model.groups.parameters() if p.ndim == 4]
    rest = [p for p in model.parameters() if p.ndim != 4]
    optimisers = [
        (Muon([("", p) for p in convolutions], lr=0, momentum=args.momentum), args.muon_lr),
        (torch.optim.AdamW(rest, lr=0, betas=(0.9, 0.95), weight_decay=0.0), args.adam_lr)
    ]
    replicas = Replicas(model, args.threads, PIECES, loss_of)

    def update(progress):
        for optimiser, lr in optimisers:
            optimiser.param_groups[0]["lr"] = lr * rate(progress)
            optimiser.step()
        keep_length(convolutions)

    keep_length(convolutions)
    teaching.fit(replicas, pixels, labels, train_index, generator, args, crop_at, update)
    teaching.settle(model, pixels[train_index[torch.randperm(len(train_index), generator=generator)[:5000]]])


def main():
    parser = teaching.parser_of(__doc__)
    parser.add_argument("--epochs", type=float, default=8)
    parser.add_argument("--batch", type=int, default=500)
    parser.add_argument("--muon-lr", type=float, default=0.12)
    parser.add_argument("--adam-lr", type=float, default=0.01)
    parser.add_argument("--momentum", type=float, default=0.8)
    args = parser.parse_args()
    pixels, labels, train_index, held_out = teaching.ready(args, SEED)
    model = Teacher().to(memory_format=torch.channels_last).train()
    train(model, pixels, labels, train_index, args)
    teaching.write_logits(model, pixels, labels, held_out, args)


if __name__ == "__main__":
    main()
