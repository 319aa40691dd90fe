"""Writes data/golden/attention: attention probabilities of golden models in float64, by PyTorch's eager attention.

    python tests/golden/make_attention_golden.py     (a few seconds; needs what make_golden.py needs)

Each file NAME.safetensors belongs to data/golden/models/NAME and its input native.pixels. Letters: B images, H heads,
T tokens. All tensors are float64.

    block.K      (B, H, T, T)   softmax probabilities of block K
    rollout.Q    (B, T)         attention rollout (Abnar and Zuidema 2020) from token Q after the last block: the row Q
                                of the product of (mean over heads + identity) / 2, last block first
    pca.mean, pca.components, pca.values
                                (C), (3, C), (B, N, 3): scikit-learn's PCA of the patch tokens after the final norm of all
                                images, rows of components multiplied by -1 where their largest loading is negative
"""

from pathlib import Path

import numpy as np
import torch
from make_golden import ROOT, load_timm, run_timm
from safetensors.torch import load_file, save_file
from sklearn.decomposition import PCA
import transformers

PATCH = 8  # pixels, of all these models
OUTPUT = ROOT.parent / "attention"
TIMM = ("timm-vit", "rope-axial", "rope-mixed", "timm-eva02")
HF = {"hf-dinov3": "DINOv3ViTModel", "hf-dinov2-registers": "Dinov2WithRegistersModel", "hf-siglip": "SiglipVisionModel"}


def run_timm_eager(model, pixels):
    """Tokens after the final norm, and the probabilities of each block: what enters the dropout of attention."""
    kept = []
    for block in model.blocks:
        block.attn.fused_attn = False
        block.attn.attn_drop.register_forward_pre_hook(lambda _, inputs: kept.append(inputs[0]))
    return model.forward_features(pixels), kept


def run_hf_eager(name, pixels):
    model = getattr(transformers, HF[name]).from_pretrained(ROOT / name, attn_implementation="eager").eval().double()
    result = model(pixels, output_attentions=True)
    return result.last_hidden_state, result.attentions


def rollout(probabilities, token):
    row = torch.eye(probabilities[0].shape[-1], dtype=torch.float64)[token].expand(len(probabilities[0]), 1, -1)
    for block in reversed(probabilities):
        row = row @ (block.mean(1) + torch.eye(block.shape[-1], dtype=torch.float64)) / 2
    return row[:, 0].contiguous()


def pca_tensors(patches):
    rows = patches.reshape(-1, patches.shape[-1]).numpy()
    pca = PCA(3, svd_solver="full").fit(rows)
    largest = np.abs(pca.components_).argmax(1)
    components = pca.components_ * np.sign(pca.components_[np.arange(3), largest])[:, None]
    values = (rows - pca.mean_) @ components.T
    return {"pca.mean": torch.tensor(pca.mean_), "pca.components": torch.tensor(np.ascontiguousarray(components)),
            "pca.values": torch.tensor(values).reshape(*patches.shape[:2], 3)}


@torch.no_grad()
def main():
    OUTPUT.mkdir(exist_ok=True)
    for name in (*TIMM, *HF):
        pixels = load_file(ROOT / name / "expected.safetensors")["native.pixels"].double()
        tokens, probabilities = run_timm_eager(load_timm(ROOT / name).double(), pixels) if name in TIMM else run_hf_eager(
            name, pixels)
        tensors = {f"block.{k}": p.contiguous() for k, p in enumerate(probabilities)}
        size = probabilities[0].shape[-1]
        tensors |= {f"rollout.{q}": rollout(probabilities, q) for q in (0, size - 1)}
        prefix = size - (pixels.shape[2] // PATCH) * (pixels.shape[3] // PATCH)
        tensors |= pca_tensors(tokens[:, prefix:])
        save_file(tensors, OUTPUT / f"{name}.safetensors")
        print(f"{name}: {len(tensors)} tensors, {size} tokens of which {prefix} are in front of the patches")


if __name__ == "__main__":
    main()
