#!/usr/bin/env python3
"""Tiny models with dense heads and what they give: data/golden/dense.

Weights are random and of this project; the results are those of the plain definitions below, in float64, which know
nothing of the library. Needs numpy and safetensors:

    python3 tests/golden/make_dense_golden.py
"""
import json
import math
import pathlib

import numpy as np
from safetensors.numpy import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "data" / "golden" / "dense"
WIDTH, HEADS, DEPTH, PATCH, SIDE = 16, 2, 4, 4, 3  # of all models
GRID = (3, 3)
CHANNELS, FEATURES, HIDDEN = [4, 5, 6, 7], 6, 5


class Weights:
    """Random tensors by name, float32; each is made once."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.tensors = {}

    def __call__(self, name, *shape, kind="weight"):
        if name not in self.tensors:
            fan = int(np.prod(shape[1:])) if len(shape) > 1 else 4
            value = self.random.standard_normal(shape) / math.sqrt(fan)
            if kind == "gamma":
                value = 1.0 + 0.2 * self.random.standard_normal(shape)
            if kind == "variance":
                value = 0.5 + self.random.random(shape)
            self.tensors[name] = value.astype(np.float32)
        return self.tensors[name].astype(np.float64)


def erf(x):
    return np.vectorize(math.erf)(x)


def gelu(x):
    return 0.5 * x * (1.0 + erf(x / math.sqrt(2.0)))


def layer_norm(x, gamma, beta, eps):
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * gamma + beta


def attention(x, w, names):
    q, k, v = (x @ w(name + ".weight", WIDTH, WIDTH).T + w(name + ".bias", WIDTH) for name in names)
    out, d = np.empty_like(q), WIDTH // HEADS
    for head in range(HEADS):
        part = slice(head * d, (head + 1) * d)
        scores = q[:, part] @ k[:, part].T / math.sqrt(d)
        scores = np.exp(scores - scores.max(-1, keepdims=True))
        out[:, part] = scores / scores.sum(-1, keepdims=True) @ v[:, part]
    return out


def dinov2_taps(w, pixels, prefix):
    """Tokens leaving every block of transformers' DINOv2 on its native grid."""
    p = prefix + "embeddings."
    kernel = w(p + "patch_embeddings.projection.weight", WIDTH, 3, PATCH, PATCH).reshape(WIDTH, -1)
    rows = [pixels[:, y * PATCH:(y + 1) * PATCH, x * PATCH:(x + 1) * PATCH].reshape(-1)
            for y in range(GRID[0]) for x in range(GRID[1])]
    patches = np.array(rows) @ kernel.T + w(p + "patch_embeddings.projection.bias", WIDTH)
    x = np.concatenate([w(p + "cls_token", 1, 1, WIDTH)[0], patches])
    x = x + w(p + "position_embeddings", 1, 1 + GRID[0] * GRID[1], WIDTH)[0]
    taps = []
    for block in range(DEPTH):
        b = f"{prefix}encoder.layer.{block}."
        normed = layer_norm(x, w(b + "norm1.weight", WIDTH, kind="gamma"), w(b + "norm1.bias", WIDTH), 1e-6)
        heads = attention(normed, w, [b + f"attention.attention.{part}" for part in ("query", "key", "value")])
        heads = heads @ w(b + "attention.output.dense.weight", WIDTH, WIDTH).T + w(b + "attention.output.dense.bias", WIDTH)
        x = x + heads * w(b + "layer_scale1.lambda1", WIDTH, kind="gamma")
        normed = layer_norm(x, w(b + "norm2.weight", WIDTH, kind="gamma"), w(b + "norm2.bias", WIDTH), 1e-6)
        hidden = gelu(normed @ w(b + "mlp.fc1.weight", 2 * WIDTH, WIDTH).T + w(b + "mlp.fc1.bias", 2 * WIDTH))
        hidden = hidden @ w(b + "mlp.fc2.weight", WIDTH, 2 * WIDTH).T + w(b + "mlp.fc2.bias", WIDTH)
        x = x + hidden * w(b + "layer_scale2.lambda1", WIDTH, kind="gamma")
        taps.append(x)
    return taps


def convolve(x, weight, bias=None, stride=1):
    """x (C, H, W), weight (O, C, k, k), padding k // 2."""
    k = weight.shape[-1]
    padded = np.pad(x, ((0, 0), (k // 2, k // 2), (k // 2, k // 2)))
    height, width = -(-x.shape[1] // stride), -(-x.shape[2] // stride)
    out = np.zeros((weight.shape[0], height, width))
    for i in range(height):
        for j in range(width):
            window = padded[:, i * stride:i * stride + k, j * stride:j * stride + k]
            out[:, i, j] = np.tensordot(weight, window, 3)
    return out if bias is None else out + bias[:, None, None]


def transpose_convolve(x, weight, bias):
    """weight (C, O, k, k), stride k."""
    k = weight.shape[-1]
    out = np.zeros((weight.shape[1], k * x.shape[1], k * x.shape[2]))
    for i in range(x.shape[1]):
        for j in range(x.shape[2]):
            out[:, k * i:k * i + k, k * j:k * j + k] = np.tensordot(x[:, i, j], weight, 1)
    return out + bias[:, None, None]


def axis(n, m, corners):
    out = np.zeros((m, n))
    for i in range(m):
        at = i * (n - 1) / (m - 1) if corners and m > 1 else 0.0 if corners else max((i + 0.5) * n / m - 0.5, 0.0)
        low = min(int(at), n - 1)
        out[i, low] += 1.0 - (at - low)
        out[i, min(low + 1, n - 1)] += at - low
    return out


def bilinear(x, size, corners):
    return np.einsum("ih,chw,jw->cij", axis(x.shape[1], size[0], corners), x, axis(x.shape[2], size[1], corners))


def cubic_axis(n, m):
    a, out = -0.75, np.zeros((m, n))
    for i in range(m):
        at = (i + 0.5) * n / m - 0.5
        low = math.floor(at)
        for k in range(-1, 3):
            d = abs(at - low - k)
            weight = (a + 2) * d ** 3 - (a + 3) * d ** 2 + 1 if d <= 1 else a * (d ** 3 - 5 * d ** 2 + 8 * d - 4)
            out[i, min(max(low + k, 0), n - 1)] += weight
    return out


def relu(x):
    return np.maximum(x, 0.0)


def conv(w, name, out, channels, k, x, bias=True, stride=1):
    weight = w(name + ".weight", out, channels, k, k)
    return convolve(x, weight, w(name + ".bias", out) if bias else None, stride)


def neck_maps(w, taps, names):
    """The maps of four taps, 3x3 to FEATURES channels."""
    maps = []
    for index, patches in enumerate(taps):
        c = CHANNELS[index]
        x = patches.T.reshape(WIDTH, *GRID)
        x = conv(w, names["project"].format(index), c, WIDTH, 1, x)
        resize = names["resize"].format(index)
        if index < 2:
            k = 4 if index == 0 else 2
            x = transpose_convolve(x, w(resize + ".weight", c, c, k, k), w(resize + ".bias", c))
        if index == 3:
            x = conv(w, resize, c, c, 3, x, stride=2)
        maps.append(conv(w, names["neck"].format(index), FEATURES, c, 3, x, bias=False))
    return maps


def unit(w, name, x):
    hidden = conv(w, name.format(1), FEATURES, FEATURES, 3, relu(x))
    return x + conv(w, name.format(2), FEATURES, FEATURES, 3, relu(hidden))


def depth_anything(folder, seed):
    """DINOv2 and a DPT head as transformers' Depth Anything has them, metric: sigmoid times max_depth."""
    w, random = Weights(seed), np.random.default_rng(seed + 1)
    pixels = random.standard_normal((3, GRID[0] * PATCH, GRID[1] * PATCH)).astype(np.float32)
    taps = dinov2_taps(w, pixels.astype(np.float64), "backbone.")
    gamma, beta = w("backbone.layernorm.weight", WIDTH, kind="gamma"), w("backbone.layernorm.bias", WIDTH)
    patches = [layer_norm(tap, gamma, beta, 1e-6)[1:] for tap in taps]
    maps = neck_maps(w, patches, {"project": "neck.reassemble_stage.layers.{}.projection",
                                  "resize": "neck.reassemble_stage.layers.{}.resize", "neck": "neck.convs.{}"})
    x = None
    for j in range(4):
        fusion, lateral = f"neck.fusion_stage.layers.{j}.", maps[3 - j]
        unit(w, fusion + "residual_layer1.convolution{}", lateral)  # of layer 0 in the file, without effect
        x = lateral if j == 0 else x + unit(w, fusion + "residual_layer1.convolution{}", lateral)
        x = unit(w, fusion + "residual_layer2.convolution{}", x)
        size = maps[2 - j].shape[1:] if j < 3 else (2 * x.shape[1], 2 * x.shape[2])
        x = conv(w, fusion + "projection", FEATURES, FEATURES, 1, bilinear(x, size, True))
    x = conv(w, "head.conv1", FEATURES // 2, FEATURES, 3, x)
    x = bilinear(x, (GRID[0] * PATCH, GRID[1] * PATCH), True)
    x = relu(conv(w, "head.conv2", HIDDEN, FEATURES // 2, 3, x))
    logits = conv(w, "head.conv3", 1, HIDDEN, 1, x)[0]
    depth = 20.0 / (1.0 + np.exp(-logits))
    image = cubic_axis(depth.shape[0], 17) @ depth @ cubic_axis(depth.shape[1], 23).T
    backbone = {"model_type": "dinov2", "hidden_size": WIDTH, "num_hidden_layers": DEPTH, "num_attention_heads": HEADS,
                "mlp_ratio": 2, "patch_size": PATCH, "image_size": GRID[0] * PATCH, "layer_norm_eps": 1e-6,
                "apply_layernorm": True, "reshape_hidden_states": False, "out_indices": [1, 2, 3, 4]}
    config = {"architectures": ["DepthAnythingForDepthEstimation"], "model_type": "depth_anything",
              "backbone_config": backbone, "neck_hidden_sizes": CHANNELS, "fusion_hidden_size": FEATURES,
              "head_hidden_size": HIDDEN, "depth_estimation_type": "metric", "max_depth": 20,
              "reassemble_factors": [4, 2, 1, 0.5], "head_in_index": -1, "patch_size": PATCH}
    processor = {"image_processor_type": "DPTImageProcessor", "do_resize": True, "keep_aspect_ratio": True,
                 "ensure_multiple_of": PATCH, "size": {"height": 12, "width": 12}, "resample": 3,
                 "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}
    write(folder, w, {"pixels": pixels[None], "depth": depth, "depth_image": image}, config, processor)


def dinov2_head(folder, seed):
    """The same backbone with a linear head for classes and one for depth, in files of their own."""
    w, random = Weights(seed), np.random.default_rng(seed + 1)
    pixels = random.standard_normal((3, GRID[0] * PATCH, GRID[1] * PATCH)).astype(np.float32)
    taps = dinov2_taps(w, pixels.astype(np.float64), "")
    gamma, beta = w("layernorm.weight", WIDTH, kind="gamma"), w("layernorm.bias", WIDTH)
    backbone = {"architectures": ["Dinov2Model"], "model_type": "dinov2", "hidden_size": WIDTH,
                "num_hidden_layers": DEPTH, "num_attention_heads": HEADS, "mlp_ratio": 2, "patch_size": PATCH,
                "image_size": GRID[0] * PATCH, "layer_norm_eps": 1e-6}
    classes, bins = Weights(seed + 2), Weights(seed + 3)
    x = np.concatenate([layer_norm(tap, gamma, beta, 1e-6)[1:] for tap in taps], 1).T  # (4 C, N)
    c = "decode_head."
    scale = classes(c + "bn.weight", 4 * WIDTH, kind="gamma") / np.sqrt(
        classes(c + "bn.running_var", 4 * WIDTH, kind="variance") + 1e-5)
    x = (x - classes(c + "bn.running_mean", 4 * WIDTH)[:, None]) * scale[:, None] + classes(c + "bn.bias", 4 * WIDTH)[:, None]
    logits = classes(c + "conv_seg.weight", 5, 4 * WIDTH, 1, 1)[:, :, 0, 0] @ x + classes(c + "conv_seg.bias", 5)[:, None]
    classes.tensors[c + "bn.num_batches_tracked"] = np.array(7, dtype=np.int64)
    x = np.concatenate([taps[-1][1:], np.repeat(taps[-1][:1], GRID[0] * GRID[1], 0)], 1).T.reshape(2 * WIDTH, *GRID)
    x = bilinear(x, (4 * GRID[0], 4 * GRID[1]), False)
    scores = np.tensordot(bins(c + "conv_depth.weight", 16, 2 * WIDTH, 1, 1)[:, :, 0, 0], x, 1) + bins(
        c + "conv_depth.bias", 16)[:, None, None]
    weights = relu(scores) + 0.1
    depth = np.tensordot(np.linspace(0.001, 10.0, 16), weights / weights.sum(0), 1)
    write(folder, w, {"pixels": pixels[None], "logits": logits.reshape(5, *GRID), "depth": depth}, backbone, None)
    save_file(classes.tensors, folder / "voc2012_ms_head.safetensors")
    save_file(bins.tensors, folder / "nyu_linear_head.safetensors")


def write(folder, w, results, config, processor):
    folder.mkdir(parents=True, exist_ok=True)
    save_file(w.tensors, folder / "model.safetensors", metadata={"format": "pt"})
    save_file({name: np.ascontiguousarray(value) for name, value in results.items()}, folder / "expected.safetensors")
    (folder / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    if processor is not None:
        (folder / "preprocessor_config.json").write_text(json.dumps(processor, indent=1) + "\n")


if __name__ == "__main__":
    depth_anything(ROOT / "hf-depth-anything", 1)
    dinov2_head(ROOT / "dinov2-heads", 2)
