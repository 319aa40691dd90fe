"""Steps of a model on numpy arrays, on the kernels of the models: patches, and attention with rotary positions.

Letters: B images, K channels, H, W pixels, P patch edge, L tokens, d channels of a head. Rotations are
`vitcpp.position.RopeTable`.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import integer, number, numbers, truth
from .position import RopeTable

Floats = npt.NDArray[np.float32]


def _four(name: str, values: npt.ArrayLike) -> Floats:
    array = numbers(name, values, np.float32)
    if array.ndim != 4 or 0 in array.shape:
        raise ArgumentError(f"[vitcpp.parts] {name} of shape {array.shape}; expected four dimensions, none of them 0")
    return array


def _shape(array: npt.NDArray[Any]) -> Any:
    return (ctypes.c_size_t * array.ndim)(*array.shape)


def patchify(pixels: npt.ArrayLike, patch_size: int, threads: int = 0) -> Floats:
    """Patches (B, N, K P P) of pixels (B, K, H, W), row by row of the grid; N = (H / P) (W / P), a remainder is dropped.

    The numbers of a patch are ordered as the weight (K, P, P) of a convolution.

    Raises:
        ArgumentError: no patch fits.
    """
    planes = _four("pixels", pixels)
    batch, channels, height, width = planes.shape
    edge = integer("patch_size", patch_size, 1)
    out = np.empty((batch, (height // edge) * (width // edge), channels * edge * edge), np.float32)
    lib.call(
        "vit_patchify",
        planes,
        _shape(planes),
        edge,
        integer("threads", threads, 0),
        out,
    )
    return out


def attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    rope: RopeTable | None = None,
    *,
    num_prefix_tokens: int = 0,
    scale: float | None = None,
    causal: bool = False,
    threads: int = 0,
) -> Floats:
    """softmax(q k^T / sqrt(d)) v of each head, after `rope` has rotated q and k.

    Args:
        q: (B, L, heads, d).
        k, v: (B, L, key heads, d): as many heads, or fewer, each for several of queries.
        rope: Factors (float32) of the tokens after the first `num_prefix_tokens`; None rotates nothing.
        scale: Of the logits; None = 1 / sqrt(d).
        causal: A token attends to itself and earlier tokens.

    Returns:
        float32 (B, L, heads, d).

    Raises:
        ArgumentError: the shapes do not match.
    """
    queries, keys, values = _four("q", q), _four("k", k), _four("v", v)
    wanted = (*queries.shape[:2], keys.shape[2], queries.shape[3])
    if keys.shape != wanted or values.shape != wanted:
        raise ArgumentError(
            f"[vitcpp.parts] q, k and v of shapes {queries.shape}, {keys.shape} and {values.shape}; expected "
            "(B, L, heads, d), (B, L, key heads, d) and the same again"
        )
    if rope is not None and not isinstance(rope, RopeTable):
        raise ArgumentError(f"[vitcpp.parts] rope={rope!r}; expected a vitcpp.RopeTable")
    if scale is not None and not number("scale", scale) > 0.0:
        raise ArgumentError(f"[vitcpp.parts] scale={scale!r}; expected a positive number")
    options = lib.AttentionOptions(
        num_heads=queries.shape[2],
        num_key_heads=keys.shape[2],
        num_prefix_tokens=integer("num_prefix_tokens", num_prefix_tokens, 0),
        scale=0.0 if scale is None else float(scale),
        causal=truth("causal", causal),
        threads=integer("threads", threads, 0),
    )
    out = np.empty(queries.shape, np.float32)
    lib.call(
        "vit_attention",
        queries,
        keys,
        values,
        _shape(queries),
        None if rope is None else rope._handle,
        ctypes.byref(options),
        out,
    )
    return out
