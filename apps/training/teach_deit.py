r"""Fine-tunes a published DeiT (Hugging Face folder) on the training images of CIFAR-10 and writes its logits
for every image and its mirror image: soft targets for train_cifar10.py --teachers.

The held-out images of cifar10.py are not trained on. Two epochs at 80 pixels and the logits are about 15
minutes on two cores.

    python teach_deit.py --train train.zip --pretrained deit-tiny-patch16-224 --state /tmp/state \
        --out deit.pt
"""

import math
from pathlib import Path

import torch
from transformers import ViTForImageClassification

import cifar10
import teaching
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

    def forward(self, pixels):
        larger = torch.nn.functional.interpolate(pixels, (self.size, self.size), mode="bicubic")
        normalised = cifar10.normalise(larger, MEAN, STD)
        return self.vit(pixel_values=normalised, interpolate_pos_encoding=True).logits


def rate(progress):
    return progress / WARM_UP if progress < WARM_UP else 0.5 * (1 + math.cos(
        math.pi * (progress - WARM_UP) / (1 - WARM_UP)))


def fine_tune(model, pixels, labels, train_index, args):
    replicas = Replicas(model, args.threads, PIECES, torch.nn.functional.cross_entropy)
    optimiser = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.05)

    def update(progress):
        optimiser.param_groups[0]["lr"] = args.lr * rate(progress)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()

    generator = torch.Generator().manual_seed(SEED)
    teaching.fit(replicas, pixels, labels, train_index, generator, args, lambda _: (32, 4), update)


def main():
    parser = teaching.parser_of(__doc__)
    parser.add_argument("--pretrained", type=Path, required=True, help="folder of a DeiT or ViT classifier")
    parser.add_argument("--size", type=int, default=80, help="pixels that the teacher sees")
    parser.add_argument("--epochs", type=float, default=2)
    parser.add_argument("--batch", type=int, default=96)
    parser.add_argument("--lr", type=float, default=2e-4)
    args = parser.parse_args()
    pixels, labels, train_index, held_out = teaching.ready(args, SEED)
    model = Teacher(args.pretrained, args.size).train()
    fine_tune(model, pixels, labels, train_index, args)
    teaching.write_logits(model, pixels, labels, held_out, args)


if __name__ == "__main__":
    main()
