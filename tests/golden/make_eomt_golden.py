#!/usr/bin/env python3
"""Tiny EoMTs and what they give: data/golden/dense/hf-eomt, and hf-eomt-gated with the gated MLP of the giant.

Weights are random and of this project; the results are those of the plain definitions below and in
make_dense_golden.py, in float64, which know nothing of the library. Needs numpy and safetensors:

    python3 tests/golden/make_eomt_golden.py
"""
import math

import numpy as np
from make_dense_golden import DEPTH, GRID, HEADS, PATCH, ROOT, WIDTH, Weights, bilinear, gelu, layer_norm, write
from make_dense_golden import transpose_convolve

QUERIES, CLASSES, LATE, EDGE = 5, 3, 2, GRID[0] * PATCH
CONTENT, IMAGE, WIDE = (12, 9), (17, 13), (18, 30)
THRESHOLD, MASK_THRESHOLD, OVERLAP, STUFF = 0.2, 0.5, 0.2, (0,)


def softmax(x):
    x = np.exp(x - x.max(-1, keepdims=True))
    return x / x.sum(-1, keepdims=True)


def sigmoid(x):
    return 1.0 / (1.0 + np.exp(-x))


def attention(w, x, prefix, hidden):
    q, k, v = (x @ w(f"{prefix}{part}_proj.weight", WIDTH, WIDTH).T + w(f"{prefix}{part}_proj.bias", WIDTH)
               for part in "qkv")
    out, d = np.empty_like(q), WIDTH // HEADS
    for head in range(HEADS):
        part = slice(head * d, (head + 1) * d)
        scores = q[:, part] @ k[:, part].T / math.sqrt(d)
        scores[hidden] = -np.inf
        out[:, part] = softmax(scores) @ v[:, part]
    return out @ w(prefix + "out_proj.weight", WIDTH, WIDTH).T + w(prefix + "out_proj.bias", WIDTH)


def norm(w, name, x):
    return layer_norm(x, w(name + ".weight", WIDTH, kind="gamma"), w(name + ".bias", WIDTH), 1e-6)


def block(w, x, index, hidden):
    b = f"layers.{index}."
    x = x + attention(w, norm(w, b + "norm1", x), b + "attention.", hidden) * w(b + "layer_scale1.lambda1", WIDTH, kind="gamma")
    h = norm(w, b + "norm2", x)
    h = gated_mlp(w, b + "mlp.", h) if w.gated else plain_mlp(w, b + "mlp.", h)
    return x + h * w(b + "layer_scale2.lambda1", WIDTH, kind="gamma")


def plain_mlp(w, name, x):
    h = gelu(x @ w(name + "fc1.weight", 2 * WIDTH, WIDTH).T + w(name + "fc1.bias", 2 * WIDTH))
    return h @ w(name + "fc2.weight", WIDTH, 2 * WIDTH).T + w(name + "fc2.bias", WIDTH)


def gated_mlp(w, name, x):
    """As in DINOv2's giant: two thirds of the hidden numbers, rounded up to eights; gates first."""
    hidden = (int(2 * WIDTH * 2 / 3) + 7) // 8 * 8
    both = x @ w(name + "weights_in.weight", 2 * hidden, WIDTH).T + w(name + "weights_in.bias", 2 * hidden)
    gate, value = both[:, :hidden], both[:, hidden:]
    return (gate * sigmoid(gate) * value) @ w(name + "weights_out.weight", WIDTH, hidden).T + w(name + "weights_out.bias", WIDTH)


def depthwise(x, weight):
    padded, out = np.pad(x, ((0, 0), (1, 1), (1, 1))), np.zeros_like(x)
    for dy in range(3):
        for dx in range(3):
            out += weight[:, 0, dy, dx, None, None] * padded[:, dy:dy + x.shape[1], dx:dx + x.shape[2]]
    return out


def predict(w, x):
    """Masks (Q, 6, 6) and classes (Q, 4) of the tokens."""
    x = norm(w, "layernorm", x)
    queries, patches = x[:QUERIES], x[-GRID[0] * GRID[1]:]
    classes = queries @ w("class_predictor.weight", CLASSES + 1, WIDTH).T + w("class_predictor.bias", CLASSES + 1)
    for layer in (1, 2, 3):
        queries = queries @ w(f"mask_head.fc{layer}.weight", WIDTH, WIDTH).T + w(f"mask_head.fc{layer}.bias", WIDTH)
        queries = gelu(queries) if layer < 3 else queries
    u = "upscale_block.block.0."
    grid = patches.T.reshape(WIDTH, *GRID)
    grid = gelu(transpose_convolve(grid, w(u + "conv1.weight", WIDTH, WIDTH, 2, 2), w(u + "conv1.bias", WIDTH)))
    grid = depthwise(grid, w(u + "conv2.weight", WIDTH, 1, 3, 3))
    grid = norm(w, u + "layernorm2d", grid.transpose(1, 2, 0)).transpose(2, 0, 1)
    return np.einsum("qc,chw->qhw", queries, grid), classes


def forward(w, pixels):
    kernel = w("embeddings.patch_embeddings.projection.weight", WIDTH, 3, PATCH, PATCH).reshape(WIDTH, -1)
    rows = [pixels[:, y * PATCH:(y + 1) * PATCH, x * PATCH:(x + 1) * PATCH].reshape(-1)
            for y in range(GRID[0]) for x in range(GRID[1])]
    x = np.array(rows) @ kernel.T + w("embeddings.patch_embeddings.projection.bias", WIDTH)
    x = x + w("embeddings.position_embeddings.weight", GRID[0] * GRID[1], WIDTH)
    x = np.concatenate([w("embeddings.cls_token", 1, 1, WIDTH)[0], w("embeddings.register_tokens", 1, 1, WIDTH)[0], x])
    hidden = np.zeros((len(x), len(x)), bool)
    for index in range(DEPTH):
        if index == DEPTH - LATE:  # with masks, which hold on
            x = np.concatenate([w("query.weight", QUERIES, WIDTH), x])
            masks, _ = predict(w, x)
            hidden = np.zeros((len(x), len(x)), bool)
            hidden[:QUERIES, -GRID[0] * GRID[1]:] = bilinear(masks, GRID, False).reshape(QUERIES, -1) <= 0
        x = block(w, x, index, hidden)
    return predict(w, x)


def panoptic(masks, classes):
    probabilities = softmax(classes)
    best, score = probabilities.argmax(-1), probabilities.max(-1)
    kept = [q for q in range(QUERIES) if best[q] != CLASSES and score[q] > THRESHOLD]
    out, segments, stuff = -np.ones(IMAGE, np.int32), [], {}
    p = sigmoid(masks[kept])
    owner = (score[kept][:, None, None] * p).argmax(0)
    for k, query in enumerate(kept):
        inside = (owner == k) & (p[k] >= MASK_THRESHOLD)
        if not inside.any() or (owner == k).sum() / (p[k] >= MASK_THRESHOLD).sum() <= OVERLAP:
            continue
        index = int(best[query])
        if index in stuff:
            out[inside] = stuff[index]
            continue
        if index in STUFF:
            stuff[index] = len(segments)
        out[inside] = len(segments)
        segments.append([len(segments), index, score[query]])
    return out, np.array(segments)


def instances(masks, classes):
    probabilities = softmax(classes)[:, :-1]
    out, segments = -np.ones(IMAGE, np.int32), []
    for query in range(QUERIES):
        inside = masks[query] > 0
        score = probabilities[query].max() * (sigmoid(masks[query]) * inside).sum() / (inside.sum() + 1e-6)
        if not inside.any() or score < THRESHOLD:
            continue
        out[inside] = len(segments)
        segments.append([len(segments), int(probabilities[query].argmax()), score])
    return out, np.array(segments)


def semantic_windows(w, pixels):
    """Classes at WIDE of pixels (3, EDGE, 2 EDGE - 4), computed as two windows."""
    width = pixels.shape[2]
    total, count = np.zeros((CLASSES, EDGE, width)), np.zeros(width)
    for start in (0, width - EDGE):
        masks, classes = forward(w, pixels[:, :, start:start + EDGE])
        masks = sigmoid(bilinear(masks, (EDGE, EDGE), False))
        total[:, :, start:start + EDGE] += np.einsum("qc,qhw->chw", softmax(classes)[:, :-1], masks)
        count[start:start + EDGE] += 1
    scores = np.sort(bilinear(total / count, WIDE, False), 0)
    assert (scores[-1] - scores[-2]).min() > 1e-4, "a tie"
    return bilinear(total / count, WIDE, False).argmax(0).astype(np.int32)


def make_config(**more):
    return {"architectures": ["EomtForUniversalSegmentation"], "model_type": "eomt", "hidden_size": WIDTH,
            "num_hidden_layers": DEPTH, "num_attention_heads": HEADS, "mlp_ratio": 2, "patch_size": PATCH,
            "image_size": EDGE, "layer_norm_eps": 1e-6, "num_register_tokens": 1, "num_queries": QUERIES,
            "num_blocks": LATE, "num_upscale_blocks": 1, "id2label": {"0": "sky", "1": "cat", "2": "dog"}, **more}


PROCESSOR = {"image_processor_type": "EomtImageProcessor", "do_resize": True, "do_pad": True,
             "do_split_image": False, "size": {"shortest_edge": EDGE, "longest_edge": EDGE}, "resample": 2,
             "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225]}


def new_weights(seed, gated):
    w = Weights(seed)
    w.gated = gated
    return w


def make_gated(seed=21):
    w, random = new_weights(seed, True), np.random.default_rng(seed + 1)
    pixels = random.standard_normal((3, EDGE, EDGE)).astype(np.float32)
    masks, classes = forward(w, pixels.astype(np.float64))
    w.tensors["attn_mask_probs"] = np.array([1.0, 0.0], np.float32)
    write(ROOT / "hf-eomt-gated", w, {"pixels": pixels[None], "mask_logits": masks, "class_logits": classes},
          make_config(use_swiglu_ffn=True), PROCESSOR)


def main(seed=9):
    w, random = new_weights(seed, False), np.random.default_rng(seed + 1)
    w("class_predictor.weight", CLASSES + 1, WIDTH)
    w.tensors["class_predictor.weight"] *= 3.0  # so that the queries differ
    pixels = random.standard_normal((3, EDGE, EDGE)).astype(np.float32)
    wide = random.standard_normal((3, EDGE, 2 * EDGE - 4)).astype(np.float32)
    masks, classes = forward(w, pixels.astype(np.float64))
    full = bilinear(masks, (EDGE, EDGE), False)[:, :CONTENT[0], :CONTENT[1]]
    full = bilinear(full, IMAGE, False)
    w.tensors["attn_mask_probs"] = np.array([1.0, 0.0], np.float32)
    w.tensors["criterion.empty_weight"] = np.ones(CLASSES + 1, np.float32)
    panoptic_map, panoptic_segments = panoptic(full, classes)
    instance_map, instance_segments = instances(full, classes)
    assert len(panoptic_segments) > 1 and len(instance_segments) > 1
    classes_map = semantic_windows(w, wide.astype(np.float64))
    write(ROOT / "hf-eomt", w,
          {"pixels": pixels[None], "mask_logits": masks, "class_logits": classes, "panoptic": panoptic_map,
           "panoptic_segments": panoptic_segments, "instance": instance_map, "instance_segments": instance_segments,
           "wide": wide[None], "semantic": classes_map}, make_config(), PROCESSOR)


if __name__ == "__main__":
    main()
    make_gated()
