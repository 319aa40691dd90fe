#!/usr/bin/env python3
"""Writes tiny vision towers of language models with random weights, and what their formulas give in float64, to
data/golden/towers. Names and configurations are those of transformers; the numbers follow the published formulas in
plain numpy, without any library's model code. Needs numpy and safetensors.

  python3 tests/golden/make_tower_golden.py data/golden/towers
"""
import json
import math
import sys
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

erf = np.vectorize(math.erf)


def gelu(x):
    return 0.5 * x * (1 + erf(x / math.sqrt(2)))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))


def silu(x):
    return x / (1 + np.exp(-x))


def layer_norm(x, gamma, beta, eps):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + eps) * gamma + beta


def rms_norm(x, gamma, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gamma


class Weights:
    """Float32 tensors by name, made when first asked for; computed with in float64."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.tensors = {}

    def make(self, name, *shape, around=0.0, spread=None):
        if spread is None:
            spread = 1 / math.sqrt(np.prod(shape[1:])) if len(shape) > 1 else 0.3
        values = around + spread * self.random.standard_normal(shape)
        return self.tensors.setdefault(name, values.astype(np.float32)).astype(np.float64)

    def norm(self, name, width, beta=True):
        gamma = self.make(name + ".weight", width, around=1.0, spread=0.2)
        return (gamma, self.make(name + ".bias", width)) if beta else (gamma,)

    def linear(self, x, name, out, bias=True):
        y = x @ self.make(name + ".weight", out, x.shape[-1]).T
        return y + self.make(name + ".bias", out) if bias else y


def patches_of(image, patch):
    """(3, H, W) -> (rows, columns, 3 P P)"""
    channels, height, width = image.shape
    grid = image.reshape(channels, height // patch, patch, width // patch, patch)
    return grid.transpose(1, 3, 0, 2, 4).reshape(height // patch, width // patch, -1)


def angles_of(rows, columns, head, second=0):
    """(rows columns, head / 2): those of the row, then those of the column; the base is 10000."""
    count = head // 4
    of_row = 10000.0 ** (-np.arange(count) / count)
    of_column = of_row * 10000.0 ** (-2 / head) if second else of_row
    r, c = np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij")
    return np.concatenate([r.reshape(-1, 1) * of_row, c.reshape(-1, 1) * of_column], 1)


def rotate_halves(x, angles):
    first, second = np.split(x, 2, -1)
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return np.concatenate([first * cos - second * sin, second * cos + first * sin], -1)


def attention(q, k, v, heads, angles, groups):
    """Rows of q, k, v (N, C) attend to those of their own group."""
    count, width = q.shape
    q, k, v = (x.reshape(count, heads, -1) for x in (q, k, v))
    q, k = rotate_halves(q, angles), rotate_halves(k, angles)
    scores = np.einsum("ihd,jhd->hij", q, k) / math.sqrt(width // heads)
    scores = np.where(groups[:, None] == groups[None, :], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("hij,jhd->ihd", weights, v).reshape(count, width)


def cells_of(tokens, rows, columns, size, channel_first=False):
    grid = tokens.reshape(rows // size, size, columns // size, size, -1)
    order = (0, 2, 4, 1, 3) if channel_first else (0, 2, 1, 3, 4)
    return grid.transpose(order).reshape((rows // size) * (columns // size), -1)


def whole(rows, columns):
    return np.zeros(rows * columns, int)


def qwen2_5_vl(w, prefix, config, image):
    patch, width, heads = config["patch_size"], config["hidden_size"], config["num_heads"]
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "patch_embed.proj.weight", width, 3, 2, patch, patch).sum(2)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T
    angles = angles_of(rows, columns, width // heads)
    edge = config["window_size"] // patch
    r, c = np.meshgrid(np.arange(rows) // edge, np.arange(columns) // edge, indexing="ij")
    windows = (r * 1000 + c).reshape(-1)
    for i in range(config["depth"]):
        name = f"{prefix}blocks.{i}."
        qkv = w.linear(rms_norm(x, *w.norm(name + "norm1", width, False), 1e-6), name + "attn.qkv", 3 * width)
        groups = whole(rows, columns) if i in config["fullatt_block_indexes"] else windows
        x = x + w.linear(attention(*np.split(qkv, 3, 1), heads, angles, groups), name + "attn.proj", width)
        y = rms_norm(x, *w.norm(name + "norm2", width, False), 1e-6)
        hidden = config["intermediate_size"]
        gate, up = w.linear(y, name + "mlp.gate_proj", hidden), w.linear(y, name + "mlp.up_proj", hidden)
        x = x + w.linear(silu(gate) * up, name + "mlp.down_proj", width)
    cells = cells_of(rms_norm(x, *w.norm(prefix + "merger.ln_q", width, False), 1e-6), rows, columns, 2)
    merged = w.linear(gelu(w.linear(cells, prefix + "merger.mlp.0", 4 * width)), prefix + "merger.mlp.2",
                      config["out_hidden_size"])
    return {"tokens": x, "merged": merged}


def aligned(table, rows, columns):
    """A square table (G G, C) resampled bilinearly, corners on corners."""
    edge = math.isqrt(len(table))
    grid = table.reshape(edge, edge, -1)

    def taps(count):
        at = np.arange(count) * (edge - 1) / max(count - 1, 1)
        base = np.minimum(np.floor(at).astype(int), edge - 1)
        return base, np.minimum(base + 1, edge - 1), (at - base)[:, None, None]

    low, high, t = taps(rows)
    grid = grid[low] * (1 - t) + grid[high] * t
    low, high, t = taps(columns)
    grid = grid.transpose(1, 0, 2)
    return (grid[low] * (1 - t) + grid[high] * t).transpose(1, 0, 2).reshape(rows * columns, -1)


def qwen3_vl(w, prefix, config, image):
    patch, width, heads = config["patch_size"], config["hidden_size"], config["num_heads"]
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "patch_embed.proj.weight", width, 3, 2, patch, patch).sum(2)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T + w.make(
        prefix + "patch_embed.proj.bias", width)
    x = x + aligned(w.make(prefix + "pos_embed.weight", config["num_position_embeddings"], width, spread=0.5), rows,
                    columns)
    angles = angles_of(rows, columns, width // heads)
    results = {}

    def merge(tokens, name, norm_cells):
        cells = cells_of(tokens if norm_cells else layer_norm(tokens, *w.norm(name + "norm", width), 1e-6), rows,
                         columns, 2)
        if norm_cells:
            cells = layer_norm(cells, *w.norm(name + "norm", 4 * width), 1e-6)
        return w.linear(gelu(w.linear(cells, name + "linear_fc1", 4 * width)), name + "linear_fc2",
                        config["out_hidden_size"])

    for i in range(config["depth"]):
        name = f"{prefix}blocks.{i}."
        qkv = w.linear(layer_norm(x, *w.norm(name + "norm1", width), 1e-6), name + "attn.qkv", 3 * width)
        x = x + w.linear(attention(*np.split(qkv, 3, 1), heads, angles, whole(rows, columns)), name + "attn.proj",
                         width)
        y = w.linear(layer_norm(x, *w.norm(name + "norm2", width), 1e-6), name + "mlp.linear_fc1",
                     config["intermediate_size"])
        x = x + w.linear(gelu_tanh(y), name + "mlp.linear_fc2", width)
        if i in config["deepstack_visual_indexes"]:
            k = config["deepstack_visual_indexes"].index(i)
            results[f"deepstack.{k}"] = merge(x, f"{prefix}deepstack_merger_list.{k}.", True)
    return {"tokens": x, "merged": merge(x, prefix + "merger.", False), **results}


def mistral3(w, prefix, config, image, out=20):
    patch, width, heads = config["patch_size"], config["hidden_size"], config["num_attention_heads"]
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "patch_conv.weight", width, 3, patch, patch)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T
    x = rms_norm(x, *w.norm(prefix + "ln_pre", width, False), 1e-5)
    angles = angles_of(rows, columns, width // heads, second=1)
    for i in range(config["num_hidden_layers"]):
        name = f"{prefix}transformer.layers.{i}."
        y = rms_norm(x, *w.norm(name + "attention_norm", width, False), 1e-5)
        q, k, v = (w.linear(y, f"{name}attention.{part}_proj", width, False) for part in "qkv")
        x = x + w.linear(attention(q, k, v, heads, angles, whole(rows, columns)), name + "attention.o_proj", width,
                         False)
        y = rms_norm(x, *w.norm(name + "ffn_norm", width, False), 1e-5)
        gate = w.linear(y, name + "feed_forward.gate_proj", config["intermediate_size"], False)
        up = w.linear(y, name + "feed_forward.up_proj", config["intermediate_size"], False)
        x = x + w.linear(silu(gate) * up, name + "feed_forward.down_proj", width, False)
    joint = "multi_modal_projector."
    cells = cells_of(rms_norm(x, *w.norm(joint + "norm", width, False), 1e-5), rows, columns, 2, channel_first=True)
    y = w.linear(cells, joint + "patch_merger.merging_layer", width, False)
    return {"tokens": x, "merged": w.linear(gelu(w.linear(y, joint + "linear_1", out, False)), joint + "linear_2", out,
                                            False)}


TOWERS = {
    "qwen2.5-vl-shards": (qwen2_5_vl, "visual.", {
        "architectures": ["Qwen2_5_VLForConditionalGeneration"], "model_type": "qwen2_5_vl",
        "text_config": {"hidden_size": 24},
        "vision_config": {"model_type": "qwen2_5_vl", "depth": 3, "hidden_size": 40, "num_heads": 2, "patch_size": 4,
                          "intermediate_size": 36, "out_hidden_size": 24, "window_size": 16, "spatial_merge_size": 2,
                          "temporal_patch_size": 2, "fullatt_block_indexes": [1]}}),
    "qwen3-vl": (qwen3_vl, "", {
        "architectures": ["Qwen3VLVisionModel"], "model_type": "qwen3_vl_vision", "depth": 3, "hidden_size": 24,
        "num_heads": 2, "patch_size": 4, "intermediate_size": 36, "out_hidden_size": 20, "spatial_merge_size": 2,
        "temporal_patch_size": 2, "num_position_embeddings": 16, "deepstack_visual_indexes": [0, 1]}),
    "mistral3": (mistral3, "vision_tower.", {
        "architectures": ["Mistral3ForConditionalGeneration"], "model_type": "mistral3", "spatial_merge_size": 2,
        "text_config": {"hidden_size": 20, "rms_norm_eps": 1e-5},
        "vision_config": {"model_type": "pixtral", "hidden_size": 40, "num_attention_heads": 2, "patch_size": 4,
                          "intermediate_size": 28, "num_hidden_layers": 2, "image_size": 32, "hidden_act": "silu"}}),
}


def main(root):
    for seed, (name, (tower, prefix, config)) in enumerate(TOWERS.items()):
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        weights, expected = Weights(seed), {}
        for i, (height, width) in enumerate([(24, 40), (56, 16)]):
            image = np.random.default_rng(100 + i).standard_normal((3, height, width)).astype(np.float32)
            key = "ab"[i]
            expected[key + ".pixels"] = image[None]
            r, c = np.meshgrid(np.arange(height // 4), np.arange(width // 4), indexing="ij")
            expected[key + ".positions"] = np.stack([r, c], -1).reshape(-1, 2).astype(np.int64)
            results = tower(weights, prefix, config.get("vision_config", config), image.astype(np.float64))
            expected.update({f"{key}.{n}.f64": x for n, x in results.items()})
        save_file(expected, folder / "expected.safetensors")
        (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        (folder / "case.json").write_text(json.dumps({"inputs": [{"name": "a"}, {"name": "b"}]}) + "\n")
        if not name.endswith("-shards"):
            save_file(weights.tensors, folder / "model.safetensors")
            continue
        # The tower in two shards of three, the language model in the others: the last is missing.
        names = sorted(weights.tensors)
        shards = {"model-00001-of-00003.safetensors": {n: weights.tensors[n] for n in names[::2]},
                  "model-00002-of-00003.safetensors": {n: weights.tensors[n] for n in names[1::2]}}
        text = {"model.embed_tokens.weight": np.zeros((4, 24), np.float32)}
        shards["model-00001-of-00003.safetensors"].update(text)
        index = {n: shard for shard, tensors in shards.items() for n in tensors}
        index["model.layers.0.mlp.up_proj.weight"] = "model-00003-of-00003.safetensors"
        for shard, tensors in shards.items():
            save_file(tensors, folder / shard)
        (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": index}, indent=1) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
