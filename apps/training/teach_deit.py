r"""Fine-tunes a published DeiT (Hugging Face folder) on the training images of CIFAR-10 and writes its logits
for every image and its mirror image: soft targets for train_cifar10.py --teachers.

The held-out images of cifar10.py are not trained on. Early blocks take smaller steps than late ones (Clark et
al. 2020, "ELECTRA"), the new head the largest.

    python teach_deit.py --train train.zip --pretrained deit-tiny-patch16-224 --state /tmp/state \
        --out deit.pt
"""

import re
from pathlib import Path

import torch
from transformers import ViTForImageClassification

import cifar10
import teaching
from replicas import Replicas

SEED = 1
WARM_UP = 0.1
PIECES = 4


class Teacher(torch.nn.Module):
    """32-pixel images (B, 3, 32, 32) with values 0..255 in, logits (B, 10) out."""

    def __init__(self, folder, size):
        super().__init__()
        # torch's fused attention is slow backwards for few tokens.
        self.vit = ViTForImageClassification.from_pretrained(folder, num_labels=len(cifar10.CLASSES),
                                                             ignore_mismatched_sizes=True,
                                                             attn_implementation="eager")
        self.size = size

    def forward(self, pixels):
        images = teaching.enlarged(pixels, self.size).to(self.vit.dtype)
        return self.vit(pixel_values=images, interpolate_pos_encoding=True).logits


def step_share(name, depth, args):
    """Share of the learning rate for a parameter of ViTForImageClassification."""
    if "classifier" in name:
        return args.head_step
    if "embeddings" in name:
        return args.layer_decay**(depth + 1)
    block = re.search(r"\blayers?\.(\d+)\.", name)
    return args.layer_decay**(depth - int(block[1])) if block else 1.0


def fine_tune(model, pixels, labels, train_index, args):
    replicas = Replicas(model, args.threads, PIECES, torch.nn.functional.cross_entropy,
                        torch.bfloat16 if args.bfloat16 else torch.float32)
    depth = model.vit.config.num_hidden_layers
    groups = [{"params": [p], "share": step_share(name, depth, args)} for name, p in model.vit.named_parameters()]
    update = teaching.fine_tuning(model, groups, args, WARM_UP, weight_decay=0.05, longest_gradient=1.0)
    generator = torch.Generator().manual_seed(SEED)
    teaching.fit(replicas, pixels, labels, train_index, generator, args, lambda _: (32, 4), update)


def main():
    parser = teaching.parser_of(__doc__)
    parser.add_argument("--pretrained", type=Path, required=True, help="folder of a DeiT or ViT classifier")
    parser.add_argument("--bfloat16",
                        action="store_true",
                        help="gradients in bfloat16, faster where the processor multiplies it")
    parser.add_argument("--size", type=int, default=96, help="pixels that the teacher sees")
    parser.add_argument("--epochs", type=float, default=3)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--layer-decay",
                        type=float,
                        default=0.8,
                        help="step size of a block as a share of the next block's")
    parser.add_argument("--head-step",
                        type=float,
                        default=10,
                        help="step size of the new head as a multiple of --lr")
    args = parser.parse_args()
    pixels, labels, train_index, held_out = teaching.ready(args, SEED)
    model = Teacher(args.pretrained, args.size).train()
    fine_tune(model, pixels, labels, train_index, args)
    teaching.write_logits(model, pixels, labels, held_out, args)


if __name__ == "__main__":
    main()
