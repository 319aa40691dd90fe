"""Patches and attention on arrays, what models attend to, progress, and wrong calls, as in C++."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitcpp
from vitcpp.position import RopeTable, frequencies

DATA = Path(__file__).parents[2] / "data"
IMAGES = [DATA / "images/cat_tabby.jpg", DATA / "images/dog_retriever.jpg"]
RNG = np.random.default_rng(8)


@pytest.fixture(scope="module")
def model() -> vitcpp.Model:
    return vitcpp.load(DATA / "model")


def test_patchify() -> None:
    pixels = RNG.standard_normal((2, 3, 9, 13)).astype(np.float32)  # a remainder of 1 x 1
    expected = pixels[:, :, :8, :12].reshape(2, 3, 2, 4, 3, 4).transpose(0, 2, 4, 1, 3, 5).reshape(2, 6, 48)
    assert np.array_equal(vitcpp.patchify(pixels, 4), expected)


def softmax(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


@pytest.mark.parametrize("key_heads", [4, 2, 1])
@pytest.mark.parametrize("causal", [False, True])
def test_attention(key_heads: int, causal: bool) -> None:
    table = RopeTable.axial((3, 4), frequencies(2, a=100.0))
    q = RNG.standard_normal((2, 13, 4, 8)).astype(np.float32)
    k, v = RNG.standard_normal((2, 2, 13, key_heads, 8)).astype(np.float32)
    found = vitcpp.attention(q, k, v, table, num_prefix_tokens=1, causal=causal)
    rotated_q, rotated_k = (table.rotate(x, 1).astype(np.float64) for x in (q, k))
    rotated_k, values = (np.repeat(x, 4 // key_heads, 2) for x in (rotated_k, v.astype(np.float64)))
    logits = np.einsum("bqhd,bkhd->bhqk", rotated_q, rotated_k) / np.sqrt(8)
    if causal:
        logits[:, :, np.triu(np.ones((13, 13), bool), 1)] = -np.inf
    expected = np.einsum("bhqk,bkhd->bqhd", softmax(logits), values)
    assert np.abs(found - expected).max() < 1e-5  # 13 terms of numbers below 5, of 24 bits
    assert np.array_equal(found, vitcpp.attention(q, k, v, table, num_prefix_tokens=1, causal=causal, threads=1))


def test_rotate_in_place() -> None:
    table = RopeTable.axial((1, 2), frequencies(2, a=100.0))
    x = RNG.standard_normal((1, 2, 1, 8)).astype(np.float32)
    expected = table.rotate(x)
    assert table.rotate(x, out=x) is x and np.array_equal(x, expected)
    other = np.empty_like(x)
    assert table.rotate(x, out=other) is other and np.array_equal(other, table.rotate(x))
    for wrong in (x.astype(np.float64), x[..., ::2], np.empty(3, np.float32)):
        with pytest.raises((vitcpp.ArgumentError, ValueError)):
            table.rotate(x, out=wrong)


def test_maps(model: vitcpp.Model) -> None:
    tokens = model.forward_features(model.preprocess(IMAGES))
    patches = model.patches(IMAGES)
    assert [one.shape for one in patches] == [(10, 10, tokens.shape[2])] * 2
    assert np.array_equal(patches[1].reshape(100, -1), tokens[1, 1:])
    assert np.array_equal(model.patches(IMAGES[0]), patches[0])
    attention = [model.attention(IMAGES[0], block) for block in range(model.config["depth"])]
    assert attention[-1].shape == (model.config["num_heads"], 101, 101)
    assert np.array_equal(model.attention(IMAGES[0]), attention[-1])
    assert np.allclose(attention[0].sum(-1), 1, atol=1e-5)
    row = np.eye(101)[0]
    for probabilities in reversed(attention):
        row = row @ (probabilities.astype(np.float64).mean(0) + np.eye(101)) / 2
    assert np.abs(model.rollout(IMAGES[0]) - row).max() < 1e-6
    with pytest.raises(vitcpp.Error):
        model.attention(IMAGES[0], 99)
    with pytest.raises(vitcpp.Error):
        model.patches("absent.jpg")


def test_progress(model: vitcpp.Model) -> None:
    calls: list[tuple[int, int | None]] = []
    images = [IMAGES[0]] * 130
    vectors = model.embed(images, progress=lambda done, count: calls.append((done, count)))
    assert vectors.shape[0] == 130 and calls == [(64, 130), (128, 130), (130, 130)]
    calls.clear()
    model.embed((image for image in images[:3]), progress=lambda done, count: calls.append((done, count)))
    assert calls == [(3, None)]

    def stop(done: int, count: int | None) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.embed(images, progress=stop)


X = np.zeros((1, 4, 2, 8), np.float32)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: vitcpp.patchify(None, 4),
        lambda m: vitcpp.patchify(X[0], 4),
        lambda m: vitcpp.patchify(X, 0),
        lambda m: vitcpp.patchify(X, -1),
        lambda m: vitcpp.patchify(X, 2.5),
        lambda m: vitcpp.patchify(X, 3),
        lambda m: vitcpp.patchify(X, 1 << 60),
        lambda m: vitcpp.patchify(X, 1, threads=-1),
        lambda m: vitcpp.patchify(np.zeros((0, 3, 4, 4)), 2),
        lambda m: vitcpp.attention(X, X, X[:, :3]),
        lambda m: vitcpp.attention(X, X[..., :4], X),
        lambda m: vitcpp.attention(X[0], X, X),
        lambda m: vitcpp.attention(X, X, X, "rope"),
        lambda m: vitcpp.attention(X, X, X, scale=0.0),
        lambda m: vitcpp.attention(X, X, X, scale=float("nan")),
        lambda m: vitcpp.attention(X, X, X, threads=-1),
        lambda m: vitcpp.attention(X, X, X, num_prefix_tokens=-1),
        lambda m: vitcpp.attention(X, X, X, RopeTable.axial((3, 3), frequencies(2))),
        lambda m: m.embed(3),
        lambda m: m.embed(None),
        lambda m: m.embed([3]),
        lambda m: m.attention(IMAGES[0], 1.5),
        lambda m: m.rollout(3),
        lambda m: m.patches(np.zeros((4, 4, 3), np.float32)),
    ],
)
def test_wrong_calls(model: vitcpp.Model, call: Any) -> None:
    with pytest.raises(vitcpp.Error) as caught:
        call(model)
    assert str(caught.value).startswith("[")
