#!/usr/bin/env python3
"""Writes tiny vision towers of language models with random weights, and what their formulas give in float64, to
data/golden/towers. Names and configurations are those of transformers; the numbers follow the published formulas in
plain numpy, without any library's model code. Needs numpy and safetensors.

  python3 tests/golden/make_tower_golden.py data/golden/towers [TOWER...]
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


def quick_gelu(x):
    return x / (1 + np.exp(-1.702 * x))


def silu(x):
    return x / (1 + np.exp(-x))


def layer_norm(x, gamma, beta, eps):
    centered = x - x.mean(-1, keepdims=True)
    return centered / np.sqrt((centered**2).mean(-1, keepdims=True) + eps) * gamma + beta


def rms_norm(x, gamma, eps):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gamma


class Weights:
    """Float32 tensors by name, made at their first use; computed with in float64."""

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


def rotate_neighbors(x, angles):
    first, second = x[..., ::2], x[..., 1::2]
    cos, sin = np.cos(angles)[:, None], np.sin(angles)[:, None]
    return np.stack([first * cos - second * sin, second * cos + first * sin], -1).reshape(x.shape)


def attention(q, k, v, heads, angles, groups, rotate=rotate_halves, norms=None):
    """Rows of q, k, v (N, C) attend to those of their own group; several heads of q may share one of k and v."""
    count, width = q.shape
    q, k, v = (x.reshape(count, -1, width // heads) for x in (q, k, v))
    if norms is not None:
        q, k = norms(q, k)
    q, k = rotate(q, angles), rotate(k, angles)
    k, v = (np.repeat(x, heads // x.shape[1], 1) for x in (k, v))
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
        keys = config.get("num_key_value_heads", heads) * (width // heads)
        qkv = w.linear(rms_norm(x, *w.norm(name + "norm1", width, False), 1e-6), name + "attn.qkv", width + 2 * keys)
        groups = whole(rows, columns) if i in config["fullatt_block_indexes"] else windows
        x = x + w.linear(attention(*np.split(qkv, [width, width + keys], 1), heads, angles, groups), name + "attn.proj",
                         width)
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


def ernie4_5_vl(w, prefix, config, image, out=20):
    patch, width, heads = config["patch_size"], config["hidden_size"], config["num_heads"]
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    x = w.linear(patches.reshape(rows * columns, -1), prefix + "patch_embed.proj", width, False)
    angles = angles_of(rows, columns, width // heads)
    for i in range(config["depth"]):
        name = f"{prefix}blocks.{i}."
        qkv = w.linear(layer_norm(x, *w.norm(name + "norm1", width), 1e-6), name + "attn.qkv", 3 * width)
        x = x + w.linear(attention(*np.split(qkv, 3, 1), heads, angles, whole(rows, columns)), name + "attn.proj",
                         width)
        y = w.linear(layer_norm(x, *w.norm(name + "norm2", width), 1e-6), name + "mlp.fc1", config["intermediate_size"])
        x = x + w.linear(quick_gelu(y), name + "mlp.fc2", width)
    x = layer_norm(x, *w.norm(prefix + "ln", width), 1e-6)
    cells = cells_of(x, rows, columns, 2)
    for part, given in (("spatial", 1), ("temporal", 2)):  # an image is two equal frames
        name = f"resampler_model.{part}_linear."
        hidden = gelu(w.linear(np.concatenate([cells] * given, 1), name + "0", 4 * width))
        cells = layer_norm(w.linear(hidden, name + "2", 4 * width), *w.norm(name + "3", 4 * width), 1e-6)
    merged = rms_norm(w.linear(cells, "resampler_model.mlp", out), *w.norm("resampler_model.after_norm", out, False), 1e-5)
    return {"tokens": x, "merged": merged}


def sapiens2(w, prefix, config, image):
    patch, width, heads = config["patch_size"], config["hidden_size"], config["num_attention_heads"]
    hidden, registers, head = config["intermediate_size"], config["num_register_tokens"], width // heads
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make("patch_embed.projection.weight", width, 3, patch, patch)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T + w.make("patch_embed.projection.bias", width)
    x = np.concatenate([w.make("cls_token", 1, 1, width)[0], w.make("storage_tokens", 1, registers, width)[0], x])
    frequencies = 2 * math.pi * 100.0 ** (-np.arange(head // 4) / (head // 4))
    r, c = np.meshgrid(2 * (np.arange(rows) + 0.5) / rows - 1, 2 * (np.arange(columns) + 0.5) / columns - 1, indexing="ij")
    angles = np.concatenate([r.reshape(-1, 1) * frequencies, c.reshape(-1, 1) * frequencies], 1)
    angles = np.concatenate([np.zeros((1 + registers, head // 2)), angles])  # prefix tokens are not rotated
    for i, key_heads in enumerate(config["num_key_value_heads_per_layer"]):
        name = f"blocks.{i}."
        y = rms_norm(x, *w.norm(name + "ln1", width, False), 1e-6)
        q, k, v = (w.linear(y, f"{name}attn.w{part}", size * head) for part, size in zip("qkv", (heads, key_heads, key_heads)))

        def norms(q, k):
            return (rms_norm(q, *w.norm(name + "attn.q_norm", head, False), 1e-6),
                    rms_norm(k, *w.norm(name + "attn.k_norm", head, False), 1e-6))

        y = attention(q, k, v, heads, angles, np.zeros(len(x), int), norms=norms)
        x = x + w.linear(y, name + "attn.proj", width) * w.make(name + "attn.gamma.weight", width, around=0.5)
        y = w.linear(rms_norm(x, *w.norm(name + "ln2", width, False), 1e-6), name + "ffn.w12", 2 * hidden)
        gate, up = np.split(y, 2, 1)
        x = x + w.linear(silu(gate) * up, name + "ffn.w3", width)
    x = rms_norm(x, *w.norm("ln1", width, False), 1e-6)
    return {"tokens": x, "pooled": x[:1]}


def sam3(w, prefix, config, image):
    patch, width, heads = config["patch_size"], config["hidden_size"], config["num_attention_heads"]
    window, head = config["window_size"], width // heads
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make("embeddings.patch_embeddings.projection.weight", width, 3, patch, patch)
    trained = config["pretrain_image_size"] // patch
    table = w.make("embeddings.position_embeddings", 1, trained * trained, width, spread=0.5)[0]
    r, c = (x.reshape(-1) for x in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T + table[r % trained * trained + c % trained]
    x = layer_norm(x, *w.norm("layer_norm", width), 1e-6)
    frequencies = 10000.0 ** (-np.arange(head // 4) / (head // 4))
    for i in range(config["num_hidden_layers"]):
        name = f"layers.{i}."
        is_global = i in config["global_attn_indexes"]
        at = (c * window / columns, r * window / rows) if is_global else (c % window, r % window)
        angles = np.concatenate([axis[:, None] * frequencies for axis in at], 1)
        groups = whole(rows, columns) if is_global else r // window * 1000 + c // window
        y = layer_norm(x, *w.norm(name + "layer_norm1", width), 1e-6)
        q, k, v = (w.linear(y, f"{name}attention.{part}_proj", width) for part in "qkv")
        y = attention(q, k, v, heads, angles, groups, rotate_neighbors)
        x = x + w.linear(y, name + "attention.o_proj", width)
        y = w.linear(layer_norm(x, *w.norm(name + "layer_norm2", width), 1e-6), name + "mlp.fc1",
                     config["intermediate_size"])
        x = x + w.linear(gelu(y), name + "mlp.fc2", width)
    return {"tokens": x}


def glm5(w, prefix, config, image):
    """GLM-OCR's tower with a limit in its gated MLPs."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_heads"], config["rms_norm_eps"]
    out, limit = config["out_hidden_size"], config["swiglu_limit"]
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "patch_embed.proj.weight", width, 3, 2, patch, patch).sum(2)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T + w.make(
        prefix + "patch_embed.proj.bias", width)
    angles = angles_of(rows, columns, width // heads)

    def gated(x, name, hidden, to, bias):
        gate, up = w.linear(x, name + "gate_proj", hidden, bias), w.linear(x, name + "up_proj", hidden, bias)
        return w.linear(silu(np.minimum(gate, limit)) * np.clip(up, -limit, limit), name + "down_proj", to, bias)

    for i in range(config["depth"]):
        name = f"{prefix}blocks.{i}."
        qkv = w.linear(rms_norm(x, *w.norm(name + "norm1", width, False), eps), name + "attn.qkv", 3 * width)
        norms = [w.norm(f"{name}attn.{part}_norm", width // heads, False) for part in "qk"]
        attended = attention(*np.split(qkv, 3, 1), heads, angles, whole(rows, columns),
                             norms=lambda q, k: (rms_norm(q, *norms[0], eps), rms_norm(k, *norms[1], eps)))
        x = x + w.linear(attended, name + "attn.proj", width)
        y = rms_norm(x, *w.norm(name + "norm2", width, False), eps)
        x = x + gated(y, name + "mlp.", config["intermediate_size"], width, True)
    x = rms_norm(x, *w.norm(prefix + "post_layernorm", width, False), eps)
    cells = cells_of(x, rows, columns, 2, channel_first=True)
    cells = cells @ w.make(prefix + "downsample.weight", out, width, 2, 2).reshape(out, -1).T + w.make(
        prefix + "downsample.bias", out)
    y = w.linear(cells, prefix + "merger.proj", out, False)
    y = gelu(layer_norm(y, *w.norm(prefix + "merger.post_projection_norm", out), 1e-5))
    return {"tokens": cells, "merged": gated(y, prefix + "merger.", config["projection_intermediate_size"], out, False)}


def rice(w, prefix, config, image):
    """A class token in front of the patches, turned by angles of its own; it is no visual token."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_heads"], config["layer_norm_eps"]
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "patch_embed.proj.weight", width, 3, patch, patch).reshape(width, -1)
    x = np.concatenate([w.make(prefix + "class_embedding", width)[None], patches.reshape(rows * columns, -1) @ kernel.T])
    angles = np.concatenate([w.make(prefix + "class_pos_emb", 1, width // heads // 2, spread=1.0),
                             angles_of(rows, columns, width // heads)])
    x = layer_norm(x, *w.norm(prefix + "pre_layernorm", width), eps)
    for i in range(config["depth"]):
        name = f"{prefix}blocks.{i}."
        qkv = w.linear(layer_norm(x, *w.norm(name + "norm1", width), eps), name + "attn.qkv", 3 * width)
        x = x + w.linear(attention(*np.split(qkv, 3, 1), heads, angles, np.zeros(len(x), int)), name + "attn.proj", width)
        y = w.linear(layer_norm(x, *w.norm(name + "norm2", width), eps), name + "mlp.fc1", config["intermediate_size"])
        x = x + w.linear(gelu(y), name + "mlp.fc2", width)
    cells = cells_of(layer_norm(x[1:], *w.norm(prefix + "merger.ln_q", width), eps), rows, columns, 2)
    merged = w.linear(gelu(w.linear(cells, prefix + "merger.mlp.0", 4 * width)), prefix + "merger.mlp.2",
                      config["text_hidden_size"])
    return {"tokens": x, "merged": merged}


def plain_attention(q, k, v, heads):
    """Without positions."""
    return attention(q, k, v, heads, np.zeros((len(q), q.shape[1] // heads // 2)), np.zeros(len(q), int))


def clip_block(w, x, name, config, eps, activation):
    width = config["hidden_size"]
    y = layer_norm(x, *w.norm(name + "layer_norm1", width), eps)
    q, k, v = (w.linear(y, f"{name}self_attn.{part}_proj", width) for part in "qkv")
    x = x + w.linear(plain_attention(q, k, v, config["num_attention_heads"]), name + "self_attn.out_proj", width)
    y = w.linear(layer_norm(x, *w.norm(name + "layer_norm2", width), eps), name + "mlp.fc1", config["intermediate_size"])
    return x + w.linear(activation(y), name + "mlp.fc2", width)


def llava(w, prefix, config, image, out=20):
    """CLIP's tower, of which the language model reads the patches before the last block."""
    patch, width, eps = config["patch_size"], config["hidden_size"], 1e-5
    patches = patches_of(image, patch).reshape(-1, 3 * patch * patch)
    kernel = w.make(prefix + "embeddings.patch_embedding.weight", width, 3, patch, patch).reshape(width, -1)
    x = np.concatenate([w.make(prefix + "embeddings.class_embedding", width)[None], patches @ kernel.T])
    x = x + w.make(prefix + "embeddings.position_embedding.weight", len(x), width, spread=0.5)
    x = layer_norm(x, *w.norm(prefix + "pre_layrnorm", width), eps)
    for i in range(config["num_hidden_layers"]):
        read, x = x, clip_block(w, x, f"{prefix}encoder.layers.{i}.", config, eps, quick_gelu)
    w.norm(prefix + "post_layernorm", width)  # in the file, and not read
    hidden = gelu(w.linear(read[1:], "multi_modal_projector.linear_1", out))
    return {"tokens": x, "merged": w.linear(hidden, "multi_modal_projector.linear_2", out)}


def smolvlm(w, prefix, config, image, out=20):
    """SigLIP's tower for images of any grid: a patch takes the row in whose share of the edge it begins."""
    patch, width, eps = config["patch_size"], config["hidden_size"], 1e-6
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "embeddings.patch_embedding.weight", width, 3, patch, patch).reshape(width, -1)
    x = patches.reshape(rows * columns, -1) @ kernel.T + w.make(prefix + "embeddings.patch_embedding.bias", width)
    edge = config["image_size"] // patch
    table = w.make(prefix + "embeddings.position_embedding.weight", edge * edge, width, spread=0.5)
    r, c = np.meshgrid(np.arange(rows) * edge // rows, np.arange(columns) * edge // columns, indexing="ij")
    x = x + table[(r * edge + c).reshape(-1)]
    for i in range(config["num_hidden_layers"]):
        x = clip_block(w, x, f"{prefix}encoder.layers.{i}.", config, eps, gelu_tanh)
    x = layer_norm(x, *w.norm(prefix + "post_layernorm", width), eps)
    cells = cells_of(x, rows, columns, 2)
    return {"tokens": x, "merged": w.linear(cells, "model.connector.modality_projection.proj", out, False)}


def ovis2(w, prefix, config, image, out=20):
    """AIMv2, and a visual vocabulary: the rows of its table, weighted by probabilities."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_attention_heads"], 1e-5
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "embeddings.patch_embedding.weight", width, 3, patch, patch).reshape(width, -1)
    x = patches.reshape(rows * columns, -1) @ kernel.T + w.make(prefix + "embeddings.patch_embedding.bias", width)
    x = rms_norm(x, *w.norm(prefix + "embeddings.rms_norm", width, False), eps)
    x = x + w.make(prefix + "embeddings.position_embedding.weight", rows * columns, width, spread=0.5)
    for i in range(config["num_hidden_layers"]):
        name = f"{prefix}encoder.layers.{i}."
        y = rms_norm(x, *w.norm(name + "rms_norm1", width, False), eps)
        q, k, v = (w.linear(y, f"{name}attention.{part}_proj", width, False) for part in "qkv")
        x = x + w.linear(plain_attention(q, k, v, heads), name + "attention.out_proj", width, False)
        y = rms_norm(x, *w.norm(name + "rms_norm2", width, False), eps)
        gate, up = (w.linear(y, f"{name}ffn.{part}_proj", config["intermediate_size"], False) for part in ("gate", "up"))
        x = x + w.linear(silu(gate) * up, name + "ffn.down_proj", width, False)
    x = rms_norm(x, *w.norm(prefix + "rms_norm", width, False), eps)
    padded = np.pad(x.reshape(rows, columns, -1), ((0, rows % 2), (0, columns % 2), (0, 0)))
    cells = cells_of(padded, *padded.shape[:2], 2)
    words = config["vocab_size"] - config["num_visual_indicator_tokens"]
    tower = prefix.removesuffix("transformer.")
    logits = layer_norm(w.linear(cells, tower + "head_linear", words, False), *w.norm(tower + "head_norm", words), 1e-5)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    table = w.make("model.visual_embeddings_table.weight", config["vocab_size"], out)
    return {"tokens": x, "merged": weights / weights.sum(-1, keepdims=True) @ table[:words]}


def softmax(scores):
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True)


def heads_of(x, heads):
    """(N, C) -> (heads, N, C / heads)"""
    return x.reshape(len(x), heads, -1).transpose(1, 0, 2)


def resampled(table, size):
    """(rows, columns, C) bilinearly at another size, as images are: edges stay edges."""
    for axis, count in enumerate(size):
        length = table.shape[axis]
        at = np.maximum((np.arange(count) + 0.5) * length / count - 0.5, 0)
        low = np.minimum(np.floor(at).astype(int), length - 1)
        high, t = np.minimum(low + 1, length - 1), (at - low).reshape([-1] + [1] * (2 - axis))
        table = np.take(table, low, axis) * (1 - t) + np.take(table, high, axis) * t
    return table


def distance_bias(table, trained, rows, columns):
    """(heads, T, T) of a class token and a grid: a number for each distance in rows and columns, and three more."""
    edge = 2 * trained - 1
    grid = resampled(table[:-3].reshape(edge, edge, -1), (2 * rows - 1, 2 * columns - 1))
    r, c = (x.reshape(-1) for x in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))
    bias = np.empty((len(r) + 1, len(r) + 1, table.shape[1]))
    bias[1:, 1:] = grid[r[:, None] - r[None] + rows - 1, c[:, None] - c[None] + columns - 1]
    bias[0, 1:], bias[1:, 0], bias[0, 0] = table[-3:]
    return bias.transpose(2, 0, 1)


def beit(w, prefix, config, image):
    """A bias of every block, and one of all."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_attention_heads"], 1e-12
    trained, patches = config["image_size"] // patch, patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make("embeddings.patch_embeddings.projection.weight", width, 3, patch, patch)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T
    x = np.concatenate([w.make("embeddings.cls_token", 1, 1, width)[0],
                        x + w.make("embeddings.patch_embeddings.projection.bias", width)])

    def bias(name):
        table = w.make(name + "relative_position_bias.relative_position_bias_table", (2 * trained - 1) ** 2 + 3, heads,
                       spread=1.0)
        return distance_bias(table, trained, rows, columns)

    shared = bias("encoder.")
    for i in range(config["num_hidden_layers"]):
        name = f"encoder.layer.{i}."
        y = layer_norm(x, *w.norm(name + "layernorm_before", width), eps)
        q, k, v = (heads_of(w.linear(y, f"{name}attention.attention.{part}", width, part != "key"), heads)
                   for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(width // heads) + shared + bias(name + "attention.attention.")
        y = (softmax(scores) @ v).transpose(1, 0, 2).reshape(x.shape)
        x = x + w.linear(y, name + "attention.output.dense", width) * w.make(name + "lambda_1", width, around=0.5)
        y = w.linear(layer_norm(x, *w.norm(name + "layernorm_after", width), eps), name + "intermediate.dense",
                     config["intermediate_size"])
        x = x + w.linear(gelu(y), name + "output.dense", width) * w.make(name + "lambda_2", width, around=0.5)
    pooled = layer_norm(x[1:].mean(0, keepdims=True), *w.norm("pooler.layernorm", width), eps)
    return {"tokens": x, "pooled": pooled}


def axis_bias(q, of_rows, of_columns, rows, columns):
    """(heads, N, N): the products of each query with the vectors of its distances to a key on both axes."""
    r, c = (x.reshape(-1) for x in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))
    vectors = of_rows[r[:, None] - r[None] + rows - 1] + of_columns[c[:, None] - c[None] + columns - 1]
    return np.einsum("hic,ijc->hij", q, vectors)


def sam(w, prefix, config, image):
    """Windows of the grid completed by zeros, which are tokens with keys and values, and a neck of convolutions."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_attention_heads"], 1e-6
    head, window, patches = width // heads, config["window_size"], patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make("patch_embed.projection.weight", width, 3, patch, patch).reshape(width, -1)
    x = patches @ kernel.T + w.make("patch_embed.projection.bias", width)
    x = x + w.make("pos_embed", 1, rows, columns, width, spread=0.5)[0]

    def attend(y, name):
        """(rows, columns, C) -> the same, each token attends to all."""
        size = y.shape[:2]
        qkv = w.linear(y.reshape(-1, width), name + "attn.qkv", 3 * width)
        q, k, v = (heads_of(part, heads) for part in np.split(qkv, 3, 1))
        vectors = [w.make(f"{name}attn.rel_pos_{axis}", 2 * length - 1, head, spread=0.5)
                   for axis, length in zip("hw", size)]
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(head) + axis_bias(q, *vectors, *size)
        return (softmax(scores) @ v).transpose(1, 0, 2).reshape(y.shape)

    for i in range(config["num_hidden_layers"]):
        name = f"layers.{i}."
        y = layer_norm(x, *w.norm(name + "layer_norm1", width), eps)
        if i in config["global_attn_indexes"]:
            y = attend(y, name)
        else:
            padded = np.zeros((-(-rows // window) * window, -(-columns // window) * window, width))
            padded[:rows, :columns] = y
            for top in range(0, rows, window):
                for left in range(0, columns, window):
                    part = padded[top:top + window, left:left + window]
                    part[:] = attend(part.copy(), name)
            y = padded[:rows, :columns]
        x = x + w.linear(y, name + "attn.proj", width)
        y = w.linear(layer_norm(x, *w.norm(name + "layer_norm2", width), eps), name + "mlp.lin1", config["mlp_dim"])
        x = x + w.linear(gelu(y), name + "mlp.lin2", width)
    out = config["output_channels"]
    y = x @ w.make("neck.conv1.weight", out, width, 1, 1).reshape(out, width).T
    y = np.pad(layer_norm(y, *w.norm("neck.layer_norm1", out), eps), ((1, 1), (1, 1), (0, 0)))
    kernel = w.make("neck.conv2.weight", out, out, 3, 3)
    y = sum(y[i:i + rows, j:j + columns] @ kernel[:, :, i, j].T for i in range(3) for j in range(3))
    merged = layer_norm(y, *w.norm("neck.layer_norm2", out), eps)
    return {"tokens": x.reshape(-1, width), "merged": merged.reshape(-1, out)}


def siglip_block(w, x, name, config, eps, attend, names=("layer_norm1", "layer_norm2", "self_attn.", "out_proj")):
    """Separate q, k and v, an MLP with GELU."""
    width, (norm1, norm2, part, out) = config["hidden_size"], names
    y = layer_norm(x, *w.norm(name + norm1, width), eps)
    q, k, v = (w.linear(y, f"{name}{part}{of}_proj", width) for of in "qkv")
    x = x + w.linear(attend(q, k, v), name + part + out, width)
    y = w.linear(layer_norm(x, *w.norm(name + norm2, width), eps), name + "mlp.fc1", config["intermediate_size"])
    return x + w.linear(gelu(y), name + "mlp.fc2", width)


def minimax(w, prefix, config, image, hidden=28, out=20):
    """Three axes share the front of a head, as halves; each token goes through an MLP before it is part of a cell."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_attention_heads"], 1e-5
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "embeddings.patch_embedding.weight", width, 3, 2, patch, patch).sum(2)
    x = patches.reshape(rows * columns, -1) @ kernel.reshape(width, -1).T
    x = layer_norm(x, *w.norm(prefix + "pre_layrnorm", width), eps)
    head = width // heads
    count = head // 3 // 2
    r, c = (at.reshape(-1, 1) for at in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))
    frequencies = 10000.0 ** (-np.arange(count) / count)
    angles = np.concatenate([0 * r * frequencies, r * frequencies, c * frequencies], 1)

    def rotate(x, angles):
        return np.concatenate([rotate_halves(x[..., :6 * count], angles), x[..., 6 * count:]], -1)

    for i in range(config["num_hidden_layers"]):
        x = siglip_block(w, x, f"{prefix}encoder.layers.{i}.", config, eps,
                         lambda q, k, v: attention(q, k, v, heads, angles, whole(rows, columns), rotate))
    y = gelu(w.linear(x, "multi_modal_projector.linear_1", hidden))
    cells = cells_of(w.linear(y, "multi_modal_projector.linear_2", out), rows, columns, 2)
    merged = w.linear(gelu(w.linear(cells, "patch_merge_mlp.linear_1", hidden)), "patch_merge_mlp.linear_2", out)
    return {"tokens": x, "merged": merged}


def between_zeros(table, count):
    """(G, ...) -> (count, ...): linear between its rows and zeros around them."""
    at = (np.arange(count) + 0.5) * len(table) / count - 0.5 + 1
    padded = np.pad(table, [(1, 1)] + [(0, 0)] * (table.ndim - 1))
    low, t = np.floor(at).astype(int), (at - np.floor(at)).reshape([-1] + [1] * (table.ndim - 1))
    return padded[low] * (1 - t) + padded[low + 1] * t


def muse(w, prefix, config, image, hidden=28, out=20):
    """Windows, positions that count from 1, a table that is read with rows and columns swapped."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_attention_heads"], 1e-5
    patches = patches_of(image, patch)
    rows, columns = patches.shape[:2]
    kernel = w.make(prefix + "patch_embedder.patch_embedding.weight", width, 6 * patch * patch)
    edge = config["pos_emb_height"]
    table = w.make(prefix + "patch_embedder.position_embedding_table.weight", edge * edge, width, spread=0.5)
    table = between_zeros(table.reshape(edge, edge, -1), columns).transpose(1, 0, 2)
    table = between_zeros(table, rows).transpose(1, 0, 2).reshape(rows * columns, -1)
    x = np.concatenate([patches.reshape(rows * columns, -1)] * 2, 1) @ kernel.T + table
    x = layer_norm(x, *w.norm(prefix + "ln_pre", width), eps)
    count = width // heads // 4
    frequencies = 10000.0 ** (-np.arange(count) / count)
    r, c = (at.reshape(-1) for at in np.meshgrid(np.arange(rows), np.arange(columns), indexing="ij"))
    angles = np.concatenate([(c + 1)[:, None] * frequencies, (r + 1)[:, None] * frequencies], 1)
    for i, kind in enumerate(config["layer_types"]):
        groups = whole(rows, columns) if kind == "full_attention" else r // edge * 1000 + c // edge
        x = siglip_block(w, x, f"{prefix}layers.{i}.", config, eps,
                         lambda q, k, v: attention(q, k, v, heads, angles, groups), ("norm1", "norm2", "attn.", "proj"))
    x = layer_norm(x, *w.norm(prefix + "ln_post", width), eps)
    cells = cells_of(x, rows, columns, 2, channel_first=True)
    y = gelu(w.linear(gelu(w.linear(cells, "model.vision_adapter.fc1", hidden, False)), "model.vision_adapter.fc2", hidden, False))
    y = w.linear(y, "model.vision_projection", out, False)
    return {"tokens": x, "merged": rms_norm(y, 1.0, 1e-6)}


def videomae(w, prefix, config, image):
    """A clip of equal frames: patches of all steps in time are numbered by sines and cosines, and attend to each other."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_attention_heads"], 1e-12
    patches = patches_of(image, patch).reshape(-1, 3 * patch * patch)
    kernel = w.make(prefix + "embeddings.patch_embeddings.projection.weight", width, 3, 2, patch, patch).sum(2)
    x = patches @ kernel.reshape(width, -1).T + w.make(prefix + "embeddings.patch_embeddings.projection.bias", width)
    x = np.concatenate([x] * (config["num_frames"] // 2))
    angles = np.arange(len(x))[:, None] / 10000.0 ** (np.arange(0, width, 2) / width)
    x = x + np.stack([np.sin(angles), np.cos(angles)], -1).reshape(x.shape).astype(np.float32)
    for i in range(config["num_hidden_layers"]):
        name = f"{prefix}encoder.layer.{i}."
        y = layer_norm(x, *w.norm(name + "layernorm_before", width), eps)
        q, k, v = (w.linear(y, f"{name}attention.attention.{part}", width, False) for part in ("query", "key", "value"))
        q, v = q + w.make(name + "attention.attention.q_bias", width), v + w.make(name + "attention.attention.v_bias", width)
        x = x + w.linear(plain_attention(q, k, v, heads), name + "attention.output.dense", width)
        y = w.linear(layer_norm(x, *w.norm(name + "layernorm_after", width), eps), name + "intermediate.dense",
                     config["intermediate_size"])
        x = x + w.linear(gelu(y), name + "output.dense", width)
    pooled = layer_norm(x.mean(0, keepdims=True), *w.norm("fc_norm", width), 1e-5)
    return {"tokens": x, "pooled": pooled, "logits": w.linear(pooled, "classifier", 3)}


def vjepa2_1(w, prefix, config, image):
    """An image, or the frames of a clip: patches of either by a layer of their own; of the 64 channels of a head 20 each are rotated
    by time, row and column."""
    patch, width, heads, eps = config["patch_size"], config["hidden_size"], config["num_attention_heads"], 1e-6
    embedded = {}
    for kind, layer, frames in (("img", "patch_embed_img", 1), ("video", "patch_embed", 2)):
        embedded[frames] = (w.make(f"{prefix}{layer}.proj.weight", width, 3, frames, patch, patch),
                            w.make(f"{prefix}{layer}.proj.bias", width) + w.make(f"{prefix}{kind}_mod_embed", 1, 1, width)[0])
    frames = 1 if image.ndim == 3 else 2
    grids = [patches_of(frame, patch) for frame in image.reshape(-1, *image.shape[-3:])]
    rows, columns = grids[0].shape[:2]
    steps = len(grids) // frames
    kernel, bias = embedded[frames]
    x = np.concatenate([sum(grids[step * frames + f].reshape(rows * columns, -1) @ kernel[:, :, f].reshape(width, -1).T
                            for f in range(frames)) + bias for step in range(steps)])
    frequency = 10000.0 ** (-np.arange(10) / 10)
    r, c = np.meshgrid(np.arange(rows) * (256 // patch - 1) / (rows - 1), np.arange(columns) * (256 // patch - 1) / (columns - 1),
                       indexing="ij")
    r, c = np.tile(r.reshape(-1, 1), (steps, 1)), np.tile(c.reshape(-1, 1), (steps, 1))
    t = np.repeat(np.arange(steps), rows * columns)[:, None]
    angle = np.concatenate([t * frequency, r * frequency, c * frequency, np.zeros((len(x), 2))], 1)

    def rotated(q):  # (N, 64)
        even, odd = q[:, ::2], q[:, 1::2]
        return np.stack([even * np.cos(angle) - odd * np.sin(angle), odd * np.cos(angle) + even * np.sin(angle)], -1).reshape(q.shape)

    for i in range(config["num_hidden_layers"]):
        name = f"{prefix}blocks.{i}."
        y = w.linear(layer_norm(x, *w.norm(name + "norm1", width), eps), name + "attn.qkv", 3 * width)
        q, k, v = np.split(y, 3, 1)
        q, k = (np.concatenate([rotated(head) for head in np.split(part, heads, 1)], 1) for part in (q, k))
        x = x + w.linear(plain_attention(q, k, v, heads), name + "attn.proj", width)
        y = w.linear(layer_norm(x, *w.norm(name + "norm2", width), eps), name + "mlp.fc1", config["intermediate_size"])
        x = x + w.linear(gelu(y), name + "mlp.fc2", width)
    for i in range(3):
        w.norm(f"{prefix}norms_block.{i}", width)
    return {"tokens": layer_norm(x, *w.norm(prefix + "norms_block.3", width), eps)}


SIZES = {"sam3": [(24, 24)] * 2, "videomae": [(16, 16)] * 2, "llava": [(24, 24)] * 2, "ovis2": [(20, 20)] * 2, "sam": [(24, 24)] * 2,
         "beit": [(20, 20), (12, 32)]}  # of images, where they are not those of all
CLIPS = {"vjepa2.1": (4, 3, 24, 16)}  # frames
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
    "ernie4.5-vl": (ernie4_5_vl, "vision_model.", {
        "architectures": ["Ernie4_5_VLMoeForConditionalGeneration"], "model_type": "ernie4_5_vl_moe",
        "text_config": {"hidden_size": 20, "rms_norm_eps": 1e-5},
        "vision_config": {"model_type": "ernie4_5_vl_moe_vision", "depth": 2, "hidden_size": 16, "num_heads": 2,
                          "patch_size": 4, "intermediate_size": 36, "spatial_merge_size": 2, "temporal_merge_size": 2,
                          "rms_norm_eps": 1e-6, "hidden_act": "quick_gelu"}}),
    "exaone4.5": (qwen2_5_vl, "model.visual.", {
        "architectures": ["Exaone4_5_ForConditionalGeneration"], "model_type": "exaone4_5",
        "text_config": {"hidden_size": 24},
        "vision_config": {"model_type": "exaone4_5_vision", "depth": 2, "hidden_size": 32, "num_heads": 4,
                          "num_key_value_heads": 2, "patch_size": 4, "intermediate_size": 28, "out_hidden_size": 24,
                          "window_size": 16, "spatial_merge_size": 2, "temporal_patch_size": 2,
                          "fullatt_block_indexes": [0]}}),
    "sapiens2": (sapiens2, "", {
        "architectures": ["Sapiens2Model"], "model_type": "sapiens2", "hidden_size": 32, "num_attention_heads": 4,
        "num_hidden_layers": 3, "num_key_value_heads_per_layer": [4, 2, 1], "patch_size": 4, "image_size": [24, 40],
        "intermediate_size": 28, "num_register_tokens": 2, "hidden_act": "silu", "rms_norm_eps": 1e-6}),
    "sam3": (sam3, "", {
        "architectures": ["Sam3ViTModel"], "model_type": "sam3_vit_model", "hidden_size": 24, "num_attention_heads": 2,
        "num_hidden_layers": 3, "global_attn_indexes": [1], "window_size": 3, "patch_size": 4, "image_size": 24,
        "pretrain_image_size": 16, "intermediate_size": 36, "layer_norm_eps": 1e-6}),
    "glm5": (glm5, "model.visual.", {
        "architectures": ["Glm5NextForConditionalGeneration"], "model_type": "glm5_next",
        "text_config": {"hidden_size": 20},
        "vision_config": {"model_type": "glm5_next_vision", "depth": 2, "hidden_size": 32, "num_heads": 2,
                          "patch_size": 4, "intermediate_size": 28, "out_hidden_size": 20, "attention_bias": True,
                          "projection_intermediate_size": 36, "swiglu_limit": 0.75, "spatial_merge_size": 2,
                          "temporal_patch_size": 2, "rms_norm_eps": 1e-5, "hidden_act": "silu"}}),
    "rice": (rice, "visual.", {
        "architectures": ["LLaVAOneVision1_5_ForConditionalGeneration"], "model_type": "llavaonevision1_5",
        "text_config": {"hidden_size": 20},
        "vision_config": {"model_type": "rice_vit", "depth": 2, "hidden_size": 32, "num_heads": 2, "patch_size": 4,
                          "intermediate_size": 28, "text_hidden_size": 20, "spatial_merge_size": 2,
                          "temporal_patch_size": 1, "layer_norm_eps": 1e-5, "hidden_act": "gelu"}}),
    "llava": (llava, "vision_tower.", {
        "architectures": ["LlavaForConditionalGeneration"], "model_type": "llava", "text_config": {"hidden_size": 20},
        "vision_feature_layer": -2, "vision_feature_select_strategy": "default",
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 24, "num_attention_heads": 3, "patch_size": 4,
                          "intermediate_size": 36, "num_hidden_layers": 3, "image_size": 24}}),
    "smolvlm": (smolvlm, "model.vision_model.", {
        "architectures": ["SmolVLMForConditionalGeneration"], "model_type": "smolvlm", "scale_factor": 2,
        "text_config": {"hidden_size": 20},
        "vision_config": {"model_type": "smolvlm_vision", "hidden_size": 24, "num_attention_heads": 2, "patch_size": 4,
                          "intermediate_size": 36, "num_hidden_layers": 2, "image_size": 32}}),
    "ovis2": (ovis2, "model.vision_tower.transformer.", {
        "architectures": ["Ovis2ForConditionalGeneration"], "model_type": "ovis2", "text_config": {"hidden_size": 20},
        "vision_config": {"model_type": "ovis2_vision", "hidden_size": 24, "num_attention_heads": 2, "patch_size": 4,
                          "intermediate_size": 36, "num_hidden_layers": 2, "image_size": 20, "hidden_stride": 2,
                          "vocab_size": 40, "num_visual_indicator_tokens": 5}}),
    "beit": (beit, "", {
        "architectures": ["BeitModel"], "model_type": "beit", "hidden_size": 24, "num_attention_heads": 3,
        "num_hidden_layers": 2, "intermediate_size": 36, "patch_size": 4, "image_size": 20,
        "use_relative_position_bias": True, "use_shared_relative_position_bias": True, "use_mean_pooling": True,
        "use_absolute_position_embeddings": False, "layer_scale_init_value": 0.1, "layer_norm_eps": 1e-12}),
    "sam": (sam, "", {
        "architectures": ["SamVisionModel"], "model_type": "sam_vision_model", "hidden_size": 24,
        "num_attention_heads": 2, "num_hidden_layers": 3, "global_attn_indexes": [1], "window_size": 4, "mlp_dim": 36,
        "patch_size": 4, "image_size": 24, "output_channels": 20, "layer_norm_eps": 1e-6}),
    "minimax": (minimax, "vision_tower.vision_model.", {
        "architectures": ["MiniMaxM3SparseForConditionalGeneration"], "model_type": "minimax_m3_vl",
        "text_config": {"hidden_size": 20}, "projector_hidden_size": 28,
        "vision_config": {"model_type": "minimax_m3_vl_vision", "hidden_size": 32, "num_attention_heads": 2,
                          "num_hidden_layers": 2, "intermediate_size": 28, "patch_size": 4, "image_size": 32,
                          "spatial_merge_size": 2, "temporal_patch_size": 2, "hidden_act": "gelu"}}),
    "muse": (muse, "model.vision_tower.", {
        "architectures": ["MuseGlimmerForConditionalGeneration"], "model_type": "muse_glimmer",
        "text_config": {"hidden_size": 20, "rms_norm_eps": 1e-6}, "projector_hidden_size": 28, "projector_hidden_act": "gelu",
        "vision_config": {"model_type": "muse_glimmer_vision", "hidden_size": 24, "num_attention_heads": 2,
                          "num_hidden_layers": 3, "layer_types": ["window_attention", "full_attention", "window_attention"],
                          "intermediate_size": 28, "patch_size": 4, "pos_emb_height": 4, "pos_emb_width": 4,
                          "merge_size": 2, "patch_temporal": 2, "hidden_act": "gelu", "layer_norm_eps": 1e-5}}),
    "videomae": (videomae, "videomae.", {
        "architectures": ["VideoMAEForVideoClassification"], "model_type": "videomae", "hidden_size": 24,
        "num_attention_heads": 3, "num_hidden_layers": 2, "intermediate_size": 36, "patch_size": 4, "image_size": 16,
        "num_frames": 6, "tubelet_size": 2, "use_mean_pooling": True, "qv_bias": True, "layer_norm_eps": 1e-12,
        "id2label": {"0": "walk", "1": "run", "2": "jump"}}),
    "vjepa2.1": (vjepa2_1, "ema_encoder.module.backbone.", {
        "hidden_size": 64, "num_attention_heads": 1, "num_hidden_layers": 2, "intermediate_size": 96, "patch_size": 8}),
}


def main(root, only):
    for seed, (name, (tower, prefix, config)) in enumerate(TOWERS.items()):
        if only and name not in only:
            continue
        folder = root / name
        folder.mkdir(parents=True, exist_ok=True)
        weights, expected = Weights(seed), {}
        for i, (height, width) in enumerate(SIZES.get(name, [(24, 40), (56, 16)])):
            image = np.random.default_rng(100 + i).standard_normal((3, height, width)).astype(np.float32)
            key = "ab"[i]
            expected[key + ".pixels"] = image[None]
            edge = config.get("patch_size", 4)
            r, c = np.meshgrid(np.arange(height // edge), np.arange(width // edge), indexing="ij")
            expected[key + ".positions"] = np.stack([r, c], -1).reshape(-1, 2).astype(np.int64)
            results = tower(weights, prefix, config.get("vision_config", config), image.astype(np.float64))
            expected.update({f"{key}.{n}.f64": x for n, x in results.items()})
        inputs = [{"name": "a"}, {"name": "b"}]
        if name in CLIPS:
            clip = np.random.default_rng(200).standard_normal(CLIPS[name]).astype(np.float32)
            expected["c.pixels"] = clip[None]
            results = tower(weights, prefix, config, clip.astype(np.float64))
            expected.update({f"c.{n}.f64": x for n, x in results.items()})
            inputs.append({"name": "c"})
        save_file(expected, folder / "expected.safetensors")
        if "model_type" in config:  # others are bare files
            (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
        (folder / "case.json").write_text(json.dumps({"inputs": inputs}) + "\n")
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
    main(Path(sys.argv[1]), sys.argv[2:])
