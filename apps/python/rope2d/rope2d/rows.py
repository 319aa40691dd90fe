"""Encodings that are no rotations: sinusoidal rows, and relative distances on keys and values."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ._types import Doubles, Grid, Integers, check_grid, doubles
from .frequencies import from_period_range, from_theta
from .table import _of_each


def _interleaved(positions: Doubles, dim: int, base: float) -> Doubles:
    if dim < 2 or dim % 2 or not base > 0:
        raise ValueError(f"dim={dim}, base={base}: expected an even number of channels and a positive base")
    angles = positions[:, None] * from_theta(dim // 2, base)
    return np.stack([_of_each(math.sin, angles), _of_each(math.cos, angles)], -1).reshape(len(positions), dim)


def sinusoidal_1d(length: int, dim: int, base: float = 10000.0) -> Doubles:
    """(length, dim): channel 2i is sin(t base^(-2i/dim)), channel 2i + 1 its cosine (Vaswani et al. 2017)."""
    return _interleaved(np.arange(length, dtype=np.float64), dim, base)


def sinusoidal_2d(grid: Grid, dim: int, base: float = 10000.0) -> Doubles:
    """(N, dim): the first half of the channels is the row of the column, the second half that of the row of a patch."""
    rows, columns = check_grid(grid)
    if dim % 4:
        raise ValueError(f"dim={dim}: expected a multiple of 4")
    x, y = sinusoidal_1d(columns, dim // 2, base), sinusoidal_1d(rows, dim // 2, base)
    return np.concatenate([np.tile(x, (rows, 1)), np.repeat(y, columns, 0)], 1)


def sinusoidal_2d_quarters(grid: Grid, dim: int, base: float = 10000.0) -> Doubles:
    """(N, dim): sin x, cos x, sin y, cos y, each of F = dim / 4 angles index base^(-k / (F - 1)) (big_vision, SimpleViT)."""
    rows, columns = check_grid(grid)
    if dim % 4 or dim < 8 or base < 1:
        raise ValueError(f"dim={dim}, base={base}: expected a multiple of 4, at least 8, and a base of at least 1")
    steps = from_period_range(dim // 4, 1.0, base)
    i = np.arange(rows * columns)
    parts = [_of_each(f, at[:, None] * steps) for at in (i % columns, i // columns) for f in (math.sin, math.cos)]
    return np.concatenate(parts, 1)


def relative_index(num_tokens: int, max_distance: int) -> Integers:
    """(T, T): clip(j - i, -R, R) + R of query i and key j."""
    i = np.arange(num_tokens)
    return np.asarray(np.clip(i[None, :] - i[:, None], -max_distance, max_distance) + max_distance)


def nezha_table(max_distance: int, head_dim: int) -> Doubles:
    """(2R + 1, d): NEZHA's fixed table; row r belongs to distance r - R (Wei et al. 2019)."""
    return sinusoidal_1d(2 * max_distance + 1, head_dim)


def relative_attention(
    q: npt.ArrayLike, k: npt.ArrayLike, v: npt.ArrayLike, keys: npt.ArrayLike, values: npt.ArrayLike
) -> tuple[Doubles, Doubles]:
    """Attention with clipped relative distances (Shaw et al. 2018): out (..., T, d) and probabilities (..., T, T).

    q, k, v are (..., T, d); keys and values are the tables (2R + 1, d):
    score_ij = q_i . (k_j + keys_r) / sqrt(d),  out_i = sum_j p_ij (v_j + values_r),  r = relative_index[i, j]."""
    queries, of_keys, of_values = (doubles(x) for x in (q, k, v))
    key_table, value_table = doubles(keys), doubles(values)
    index = relative_index(queries.shape[-2], (len(key_table) - 1) // 2)
    logits = queries @ np.swapaxes(of_keys, -1, -2) + np.einsum("...id,ijd->...ij", queries, key_table[index])
    logits = logits / math.sqrt(queries.shape[-1])
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights = weights / weights.sum(-1, keepdims=True)
    return np.asarray(weights @ of_values + np.einsum("...ij,ijd->...id", weights, value_table[index])), weights
