r"""Trains the model of data/model on one GPU: fine-tunes a pretrained ViT on CIFAR-10 as the teacher, then trains a small
transformer with 2D axial rotary positions to answer as the teacher does on the very same varied and mixed images ("function
matching", Beyer et al. 2022, "Knowledge distillation: A good teacher is patient and consistent"), and exports it in timm's layout.

Both schedules follow the clock, so the run ends by itself on any machine.

    python distill_cifar10.py --train train.zip --pretrained dinov2-small --state /tmp/state --out data/model

The held-out images of cifar10.py are not trained on.
"""

import argparse
import time
from pathlib import Path

import torch
from torch.nn import functional
from transformers import AutoModelForImageClassification

import cifar10
import teaching
from lean_forward import LeanForward
from teach_deit import step_share
from train_cifar10 import (CHANGED_UNTIL, EMA_EVERY, EMA_KEEP, TEMPERATURE, add_model_options, build_model, build_optimisers,
                           deepened, export, rate, start_values, start_weights)

# The labels of the training images add little to what the teacher says of them.
TEACHER_SHARE = 0.9
REPORT_SECONDS = 30


class Teacher(torch.nn.Module):
    """Images (B, 3, H, W) with values 0..255 in, logits (B, 10) out."""

    def __init__(self, folder, size):
        super().__init__()
        self.vit = AutoModelForImageClassification.from_pretrained(folder, num_labels=len(cifar10.CLASSES),
                                                                   ignore_mismatched_sizes=True)
        self.size = size

    def forward(self, pixels):
        return self.vit(pixel_values=teaching.enlarged(pixels, self.size).to(self.vit.dtype)).logits


class Images:
    """Batches of the training images on the device, without end, varied and mixed."""

    def __init__(self, pixels, labels, index, args):
        self.pixels, self.labels, self.args = pixels, cifar10.one_hot(labels), args
        self.count = len(index)
        self.generator = torch.Generator(pixels.device).manual_seed(args.seed)
        self.batches = self.endless(index)

    def endless(self, index):
        while True:
            order = index[torch.randperm(len(index), generator=self.generator, device=index.device)]
            yield from order[:len(order) // self.args.batch * self.args.batch].split(self.args.batch)

    def next(self, changed):
        """Crops (B, 3, edge, edge) with values 0..255, and probabilities (B, 10) of their labels."""
        batch, edge = next(self.batches), self.pixels.shape[-1]
        crops = cifar10.random_crops(self.pixels[batch], edge, edge // 8, self.generator)
        targets = self.labels[batch]
        if changed:
            crops, targets = cifar10.changed(crops, targets, self.args.vary, self.args.cut_mix, self.generator)
        return crops.contiguous(), targets


class Clock:
    """Share of the given minutes that has passed since it was made, and when to report."""

    def __init__(self, minutes):
        self.start, self.minutes = time.monotonic(), minutes
        self.reported = self.start

    def progress(self):
        return (time.monotonic() - self.start) / (60 * self.minutes)

    def due(self):
        if time.monotonic() < self.reported + REPORT_SECONDS:
            return False
        self.reported = time.monotonic()
        return True


def half(device):
    return torch.autocast(device, torch.bfloat16)


@torch.no_grad()
def accuracy(model, pixels, labels):
    model.eval()
    with half(pixels.device.type):
        right = sum((model(part.float()).argmax(1) == truth).sum()
                    for part, truth in zip(pixels.split(500), labels.split(500)))
    model.train()
    return right.item() / len(labels)


def fine_tune(teacher, images, held_out, args):
    depth = teacher.vit.config.num_hidden_layers
    groups = [{"params": [p], "share": step_share(name, depth, args)}
              for name, p in teacher.vit.named_parameters()]
    optimiser = torch.optim.AdamW(groups, lr=0, weight_decay=0.05)
    clock, steps = Clock(args.teacher_minutes), 0
    teacher.train()
    while (progress := clock.progress()) < 1:
        crops, targets = images.next(changed=True)
        with half(crops.device.type):
            logits = teacher(crops)
        loss = functional.cross_entropy(logits.float(), targets)
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = args.teacher_lr * group["share"] * min(progress / 0.1, (1 - progress) / 0.9)
        optimiser.step()
        steps += 1
    print(f"teacher: {steps * args.batch / images.count:.1f} epochs, loss {loss.item():.4f}, held-out"
          f" {100 * accuracy(teacher, *held_out):.2f} %", flush=True)


def loss_of(logits, from_teacher, labels):
    """Cross entropy with the teacher's answers at TEMPERATURE (Hinton et al. 2015), and with the labels."""
    soft = (from_teacher / TEMPERATURE).softmax(1)
    matched = functional.kl_div((logits / TEMPERATURE).log_softmax(1), soft, reduction="batchmean")
    return TEACHER_SHARE * TEMPERATURE**2 * matched + (1 - TEACHER_SHARE) * functional.cross_entropy(logits, labels)


class Student:
    """The model, its lean forward pass, its optimisers and the running average of its weights."""

    def __init__(self, args, pixels, device):
        model, self.description = build_model(args)
        start_values(model, cifar10.normalise(pixels[:2000].cpu()), args.local_depth)
        if args.start:
            model.load_state_dict(deepened(start_weights(args.start), args.depth))
        self.model, self.watched = model.to(device), build_model(args)[0].to(device)
        self.lean = LeanForward(self.model, (args.image_size,)).to(device)
        self.optimisers = build_optimisers(self.model, args, torch.bfloat16, map)
        self.rates = args.muon_lr, args.adam_lr
        self.average = [p.detach().clone() for p in self.model.parameters()]
        self.steps = 0

    def update(self, loss, share):
        self.model.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        for optimiser, lr in zip(self.optimisers, self.rates):
            optimiser.param_groups[0]["lr"] = lr * share
            optimiser.step()
        self.steps += 1
        if self.steps % EMA_EVERY == 0:
            keep = min(EMA_KEEP, 1 - 1 / (1 + self.steps / EMA_EVERY / 4))
            torch._foreach_lerp_(self.average, [p.detach() for p in self.model.parameters()], 1 - keep)

    def averaged(self):
        weights = {name: value.detach() for (name, _), value in zip(self.model.named_parameters(), self.average)}
        self.watched.load_state_dict(weights)
        return weights


def match(student, teacher, images, held_out, args):
    teacher.eval().to(torch.bfloat16).requires_grad_(False)
    device = held_out[0].device.type
    held_out = cifar10.normalise(held_out[0]), held_out[1]
    clock = Clock(args.minutes)

    def report():
        weights = student.averaged()
        print(f"{60 * clock.minutes * clock.progress():6.0f} s  epoch {student.steps * args.batch / images.count:.1f}"
              f"  loss {loss.item():.4f}  held-out {100 * accuracy(student.watched, *held_out):.2f} %", flush=True)
        export({name: value.cpu() for name, value in weights.items()}, student.description, args.out)

    while (progress := clock.progress()) < 1:
        crops, labels = images.next(progress < CHANGED_UNTIL)
        with torch.no_grad():
            from_teacher = teacher(crops).float()
        with half(device):
            logits = student.lean(cifar10.normalise(crops))
        loss = loss_of(logits.float(), from_teacher, labels)
        student.update(loss, rate(progress))
        if student.steps == 1 or clock.due():
            report()
    report()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", type=Path, required=True, help="zip of class folders")
    parser.add_argument("--pretrained", type=Path, required=True, help="folder of a ViT of transformers, such as DINOv2's")
    parser.add_argument("--state", type=Path, required=True, help="folder for decoded images")
    parser.add_argument("--out", type=Path, required=True, help="folder for config.json and model.safetensors")
    parser.add_argument("--teacher-minutes", type=float, default=1)
    parser.add_argument("--teacher-lr", type=float, default=3e-4)
    parser.add_argument("--layer-decay", type=float, default=0.8, help="step size of a block as a share of the next block's")
    parser.add_argument("--head-step", type=float, default=10, help="step size of the new head as a multiple of --teacher-lr")
    parser.add_argument("--teacher-size", type=int, default=112, help="pixels that the teacher sees")
    parser.add_argument("--minutes", type=float, default=7.5)
    parser.add_argument("--batch", type=int, default=1024)
    add_model_options(parser)
    parser.set_defaults(image_size=40, depth=9, vary=0.5, cut_mix=0.5)
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    torch.set_float32_matmul_precision("high")
    device = "cuda" if torch.cuda.is_available() else "cpu"
    pixels, labels = cifar10.read_archive(args.train, args.state)
    pixels, labels = cifar10.resized(pixels.to(device), args.image_size), labels.to(device)
    index, held_out = (part.to(device) for part in cifar10.split_held_out(labels.cpu()))
    images, held_out = Images(pixels, labels, index, args), (pixels[held_out], labels[held_out])
    student = Student(args, pixels[index], device)
    teacher = Teacher(args.pretrained, args.teacher_size).to(device)
    fine_tune(teacher, images, held_out, args)
    match(student, teacher, images, held_out, args)


if __name__ == "__main__":
    main()
