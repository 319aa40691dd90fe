"""Angles, their cosines and sines, and the rotation of queries and keys."""

from __future__ import annotations

import math
from typing import Any, Callable

import numpy as np
import numpy.typing as npt

from ._types import Doubles, Floats, Integers, PairLayout, RopeAngles, check_choice, doubles, real
from .coordinates import GridCoords
from .frequencies import check_vectors

LAYOUTS = ("neighbors", "halves", "alternating", "halves_by_axis")


def channel_pairs(layout: PairLayout, head_dim: int, num_angles: int | None = None) -> Integers:
    """(A, 2): the channels (p, q) that each angle rotates; of alternating and halves_by_axis the first half of the angles belongs
    to one axis, the second half to the other.

        neighbors        a0 a0 a1 a1 b0 b0 b1 b1    pairs (2j, 2j + 1)
        halves           a0 a1 b0 b1 a0 a1 b0 b1    pairs (j, j + A)
        alternating      a0 a0 b0 b0 a1 a1 b1 b1    neighbors, the axes in turn (MoonViT)
        halves_by_axis   a0 a1 a0 a1 b0 b1 b0 b1    each half of the head in halves (CroCo, Gemma 4)
    """
    check_choice("layout", layout, LAYOUTS)
    angles = head_dim // 2 if num_angles is None else num_angles
    if head_dim < 2 or head_dim % 2 or not 0 < angles <= head_dim // 2:
        raise ValueError(
            f"head_dim={head_dim} with {angles} angles: expected an even number of channels, two for each angle"
        )
    j = np.arange(angles)
    if layout == "neighbors":
        return np.stack([2 * j, 2 * j + 1], 1)
    if layout == "halves":
        return np.stack([j, j + angles], 1)
    if head_dim % 4 or angles != head_dim // 2:
        raise ValueError(
            f"head_dim={head_dim}: the layout {layout!r} needs two axes of pairs, a multiple of 4 channels"
        )
    quarter = head_dim // 4
    axis, k = j // quarter, j % quarter
    first = 4 * k + 2 * axis if layout == "alternating" else 2 * quarter * axis + k
    return np.stack([first, first + (1 if layout == "alternating" else quarter)], 1)


def rope_angles(coords: GridCoords, vectors: npt.ArrayLike) -> Doubles:
    """(N, A), or (H, N, A) if the frequency vectors have heads: w_x t_x + w_y t_y, + w_t t_t for a clip."""
    w = check_vectors(vectors)[..., None, :, :]
    angles = coords.t_x[:, None] * w[..., 0] + coords.t_y[:, None] * w[..., 1]
    if coords.t_t is not None:
        angles = angles + coords.t_t[:, None] * w[..., 2]
    return np.asarray(angles)


def _of_each(function: Callable[[float], float], values: Doubles) -> Doubles:
    """The function of the C library: numpy's may differ by a unit in the last place."""
    unique, index = np.unique(values, return_inverse=True)
    found = np.fromiter(map(function, unique.tolist()), np.float64, len(unique))
    return found[index].reshape(values.shape)


class RopeTable:
    """Cosines and sines of angles (N, A), or (H, N, A) if heads differ; never changes.

    Attributes:
        cos, sin: arrays of the shape of the angles, computed in float64 and rounded once to `dtype`.
        pairs: (P, 2), the channels (p, q) of each pair.
        head_dim: d.
    """

    def __init__(
        self,
        angles: npt.ArrayLike,
        layout: PairLayout = "neighbors",
        *,
        head_dim: int | None = None,
        angles_per: RopeAngles = "per_pair",
        dtype: npt.DTypeLike = np.float64,
    ) -> None:
        """`head_dim` is twice the number of angles unless channels remain that are not rotated."""
        values = doubles(angles)
        check_choice("angles_per", angles_per, ("per_pair", "per_channel"))
        if values.ndim not in (2, 3) or not values.size or not np.isfinite(values).all():
            raise ValueError(f"angles {values.shape}: expected finite numbers (N, A) or (H, N, A)")
        if np.dtype(dtype) not in (np.float32, np.float64):
            raise ValueError(f"dtype={np.dtype(dtype).name}: expected float32 or float64")
        self.layout, self.angles_per = layout, angles_per
        per_channel = angles_per == "per_channel"
        self.head_dim = head_dim or values.shape[-1] * (1 if per_channel else 2)
        if per_channel and values.shape[-1] != self.head_dim:
            raise ValueError(f"{values.shape[-1]} angles: expected {self.head_dim}, one per channel")
        self.pairs = channel_pairs(layout, self.head_dim, None if per_channel else values.shape[-1])
        self.cos: Floats = _of_each(math.cos, values).astype(dtype)
        self.sin: Floats = _of_each(math.sin, values).astype(dtype)
        self.cos.flags.writeable = self.sin.flags.writeable = False

    @property
    def num_patches(self) -> int:
        """N."""
        return int(self.cos.shape[-2])

    def to_complex(self) -> npt.NDArray[np.complexfloating[Any, Any]]:
        """cos + i sin, in the shape of the angles."""
        return np.asarray(self.cos + 1j * self.sin)

    def per_channel(self) -> tuple[Floats, Floats]:
        """Cosines and sines (N, d) or (H, N, d) with those of both channels of a pair: the form of transformers; channels that are not
        rotated have 1 and 0."""
        cos = np.ones((*self.cos.shape[:-1], self.head_dim), self.cos.dtype)
        sin = np.zeros_like(cos)
        for place in range(2):
            at = self.pairs[:, place]
            cos[..., at] = self.cos[..., at] if self.angles_per == "per_channel" else self.cos
            sin[..., at] = self.sin[..., at] if self.angles_per == "per_channel" else self.sin
        return cos, sin

    def rotate(self, x: npt.ArrayLike, num_prefix_tokens: int = 0, num_suffix_tokens: int = 0) -> Floats:
        """Rotated queries or keys (..., H, T, d) or (T, d), as a new array of the table's type: with the angle a of a pair (p, q)

            x_p' = x_p cos a - x_q sin a,    x_q' = x_q cos a + x_p sin a.

        The first and last tokens stay as they are; the N others are the patches of the table. With a table per head, axis -3
        of x is H."""
        out = np.array(real(x, self.cos.dtype))
        first, last = num_prefix_tokens, out.shape[-2] - num_suffix_tokens if out.ndim > 1 else 0
        fits = (
            out.ndim >= 2
            and out.shape[-1] == self.head_dim
            and min(first, num_suffix_tokens) >= 0
            and last - first == self.num_patches
        )
        if not fits or (self.cos.ndim == 3 and (out.ndim < 3 or out.shape[-3] != self.cos.shape[0])):
            heads = f"{self.cos.shape[0]}, " if self.cos.ndim == 3 else ""
            raise ValueError(
                f"x {out.shape}, {num_prefix_tokens} prefix and {num_suffix_tokens} suffix tokens: expected "
                f"(..., {heads}{first + self.num_patches + num_suffix_tokens}, {self.head_dim})"
            )
        p, q = self.pairs[:, 0], self.pairs[:, 1]
        of_p, of_q = (p, q) if self.angles_per == "per_channel" else (slice(None), slice(None))
        patches = out[..., first:last, :]
        x_p, x_q = patches[..., p], patches[..., q]
        patches[..., p] = x_p * self.cos[..., of_p] - x_q * self.sin[..., of_p]
        patches[..., q] = x_q * self.cos[..., of_q] + x_p * self.sin[..., of_q]
        return out


def scores(q: npt.ArrayLike, k: npt.ArrayLike) -> Floats:
    """q k^T / sqrt(d), (..., T, T), of rotated queries and keys (..., T, d)."""
    queries, keys = np.asarray(q), np.asarray(k)
    return np.asarray(queries @ np.swapaxes(keys, -1, -2) / math.sqrt(queries.shape[-1]))
