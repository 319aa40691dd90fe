"""The models that are compared: ViTs with 2D axial RoPE, their weights drawn once and kept as a timm folder, so
that every engine computes the same function."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import timm
import torch
from safetensors.torch import save_file

ARCHITECTURE = "vit_small_patch16_rope_224"  # the variants differ from it only in what is named here
VARIANTS = {
    "tiny": {"embed_dim": 192, "num_heads": 3},
    "small": {"embed_dim": 384, "num_heads": 6},
    "base": {"embed_dim": 768, "num_heads": 12},
    "large": {"embed_dim": 1024, "depth": 24, "num_heads": 16},
    "huge": {"embed_dim": 1280, "depth": 32, "num_heads": 16, "patch_size": 14},
}
SEED = 1


@dataclass(frozen=True)
class Case:
    """One row of the table: a variant, the edge of its square input in pixels, images per pass, and the
    arithmetic of its linear layers, float32, bfloat16 or int8."""
    variant: str
    size: int
    batch: int
    dtype: str

    def __str__(self):
        return f"{self.variant}-{self.size}-{self.batch}-{self.dtype}"


@torch.no_grad()
def draw_weights(model):
    """Weights that keep activations near unit variance: timm's own start leaves blocks and head close to zero,
    and logits of zero agree with anything."""
    generator = torch.Generator().manual_seed(SEED)
    for name, parameter in model.named_parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        if parameter.ndim > 1 and not name.endswith("token"):
            parameter.copy_(noise * parameter[0].numel()**-0.5)
        elif name.endswith(("norm.weight", "norm1.weight", "norm2.weight")):
            parameter.copy_(1 + 0.1 * noise)
        else:
            parameter.copy_(0.3 * noise)  # biases, layer scale, class token


def model_folder(work, variant):
    """The variant's folder with config.json and model.safetensors; made where it is missing."""
    folder = Path(work) / f"vit_{variant}_rope"
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        model = timm.create_model(ARCHITECTURE, **VARIANTS[variant])
        draw_weights(model)
        save_file(model.state_dict(), folder / "model.safetensors")
        config = {"architecture": ARCHITECTURE, "num_classes": model.num_classes,
                  "num_features": model.num_features, "model_args": VARIANTS[variant],
                  "pretrained_cfg": model.pretrained_cfg}
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    return folder


def load_model(folder, size):
    """timm's model in evaluation mode for inputs of size x size."""
    return timm.create_model(f"local-dir:{folder.resolve()}", pretrained=True, img_size=size).eval()


def make_pixels(case):
    """(batch, 3, size, size) float32 in the range of normalised images, every image another one."""
    shape = (case.batch, 3, case.size, case.size)
    return np.random.default_rng(SEED).uniform(-2, 2, shape).astype(np.float32)
