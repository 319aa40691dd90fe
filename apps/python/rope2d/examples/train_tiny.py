"""Trains a tiny Vision Transformer whose only positions are a rotation, exports it, and runs it with the program vit.

    python train_tiny.py [--rope dinov3] [--steps 600] [--output build/tiny] [--vit vit]

The task needs positions: a red and a blue square; is the red one left, right, above or below? 600 steps take a minute or two
on a laptop. Then rope2d.export_layout writes tiny.safetensors and tiny.json in one call, and the classes of `vit classify` are compared
with those of torch."""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import rope2d
from rope2d.torch import RotaryEmbedding

LABELS = ["left", "right", "above", "below"]
SIZE, PATCH, WIDTH, HEADS, DEPTH = 32, 4, 64, 4, 3
GRID = (SIZE // PATCH, SIZE // PATCH)
MEAN, STD = 0.5, 0.25


class Block(nn.Module):
    def __init__(self, rope: RotaryEmbedding) -> None:
        super().__init__()
        self.rope = rope
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH, eps=1e-6), nn.LayerNorm(WIDTH, eps=1e-6)
        self.qkv, self.proj = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.fc1, self.fc2 = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, tokens, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(batch, tokens, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        q, k = self.rope(q, k, GRID, num_prefix_tokens=1)
        x = x + self.proj(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, tokens, WIDTH))
        return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))


class TinyViT(nn.Module):
    """(B, 3, 32, 32) -> logits (B, 4); class token, no table of positions."""

    def __init__(self, of: rope2d.Convention) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, WIDTH, PATCH, PATCH)
        self.cls = nn.Parameter(torch.randn(1, 1, WIDTH) * 0.02)
        is_learned = of.kind == "mixed"  # frequencies of each block
        shared = RotaryEmbedding(of, WIDTH // HEADS, HEADS)
        ropes = [RotaryEmbedding(of, WIDTH // HEADS, HEADS) if is_learned else shared for _ in range(DEPTH)]
        self.blocks = nn.ModuleList(Block(rope) for rope in ropes)
        self.norm, self.head = nn.LayerNorm(WIDTH, eps=1e-6), nn.Linear(WIDTH, len(LABELS))

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        x = self.stem(pixels).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], 1)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


def draw(count: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """uint8 images (count, 32, 32, 3) and labels (count)."""
    images = random.integers(90, 166, (count, SIZE, SIZE, 3), dtype=np.uint8)
    labels = random.integers(0, 4, count)
    for image, label in zip(images, labels):
        near, far = np.sort(random.choice(SIZE - 6, 2, replace=False))
        far = min(SIZE - 6, max(far, near + 8))
        near = min(near, far - 8) if far >= 8 else 0
        across = random.integers(0, SIZE - 6) + np.array([0, random.integers(-3, 4)])  # at most 3 pixels apart
        across = np.clip(across, 0, SIZE - 6)
        first, second = (0, 2) if label in (0, 2) else (2, 0)  # channel of the square that is nearer to the origin
        for channel, along, at in ((first, near, across[0]), (second, far, across[1])):
            rows, columns = (at, along) if label < 2 else (along, at)
            image[rows : rows + 6, columns : columns + 6] = 20
            image[rows : rows + 6, columns : columns + 6, channel] = 250
    return images, labels


def to_pixels(images: np.ndarray) -> torch.Tensor:
    """float32 (B, 3, 32, 32), as `vit` prepares them by the layout file."""
    return torch.as_tensor((images.astype(np.float32) / 255 - MEAN) / STD).permute(0, 3, 1, 2).contiguous()


def train(model: TinyViT, steps: int, random: np.random.Generator) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), 2e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, total_steps=max(steps, 2))
    for step in range(steps):
        images, labels = draw(64, random)
        loss = F.cross_entropy(model(to_pixels(images)), torch.as_tensor(labels))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step}: loss {loss.item():.3f}", flush=True)


def export(model: TinyViT, of: rope2d.Convention, path: Path) -> tuple[Path, Path]:
    tensors = dict(model.state_dict())
    names = {
        "patch": "stem.*", "class_token": "cls",
        "norm1": "blocks.{block}.norm1.*", "qkv": "blocks.{block}.qkv.*", "proj": "blocks.{block}.proj.*",
        "norm2": "blocks.{block}.norm2.*", "fc1": "blocks.{block}.fc1.*", "fc2": "blocks.{block}.fc2.*",
        "norm": "norm.*", "head": "head.*",
    }  # fmt: skip
    if of.kind == "mixed":  # (H, d / 2, 2) of each block -> (2, depth, H, d / 2)
        learned = [tensors.pop(f"blocks.{i}.rope.frequencies") for i in range(DEPTH)]
        tensors["frequencies"] = torch.stack(learned).permute(3, 0, 1, 2).contiguous()
        names["rope_frequencies"] = "frequencies"
    return rope2d.export_layout(
        path, tensors, names, of, num_heads=HEADS, labels=LABELS,
        config={"image_height": SIZE, "image_width": SIZE, "norm_eps": 1e-6, "activation": "gelu", "pooling": "class_token"},
        preprocess={"resize": "squash", "mean": [MEAN] * 3, "std": [STD] * 3, "crop": False},
    )  # fmt: skip


def compare(model: TinyViT, program: str, weights: Path, layout: Path, random: np.random.Generator) -> None:
    """Logits of the program and of torch on new images."""
    images, labels = draw(16, random)
    with torch.no_grad():
        logits = model(to_pixels(images)).numpy()
    files = [weights.parent / f"{i:02}.ppm" for i in range(len(images))]
    for file, image in zip(files, images):
        file.write_bytes(b"P6 %d %d 255\n" % (SIZE, SIZE) + image.tobytes())
    command = [program, "classify", "--model", weights, "--layout", layout, "--top", "4", "--format", "json", *files]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    worst = 0.0
    for line, expected in zip(lines, logits):
        found = {entry["label"]: entry["logit"] for entry in json.loads(line)["top"]}
        worst = max(worst, max(abs(found[name] - expected[i]) for i, name in enumerate(LABELS)))
    if len(lines) != len(images) or worst > 1e-3:
        raise SystemExit(f"vit and torch differ: {len(lines)} results, logits by {worst:.2g}")
    print(
        f"vit and torch agree on {len(images)} images (logits within {worst:.1g}); {(logits.argmax(1) == labels).mean():.0%} are right"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rope", default="dinov3")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--output", type=Path, default=Path("build/tiny"))
    parser.add_argument("--vit", default="vit")
    options = parser.parse_args()
    torch.manual_seed(0)
    random, of = np.random.default_rng(0), rope2d.convention(options.rope)
    model = TinyViT(of)
    train(model, options.steps, random)
    options.output.mkdir(parents=True, exist_ok=True)
    weights, layout = export(model.eval(), of, options.output / "tiny")
    compare(model, options.vit, weights, layout, random)


if __name__ == "__main__":
    main()
