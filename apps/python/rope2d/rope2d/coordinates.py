"""Coordinates of the patches of a grid, in float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ._types import CenteredBy, CoordinateRule, Doubles, Grid, Integers, check_choice, check_grid


@dataclass(frozen=True)
class GridCoords:
    """Coordinates of N patches: t_x grows to the right, t_y downwards, t_t with time (None for images); each (N)."""

    t_x: Doubles
    t_y: Doubles
    t_t: Doubles | None = None

    def __len__(self) -> int:
        return len(self.t_x)


def num_patches(grid: Grid) -> int:
    """N = rows times columns."""
    rows, columns = check_grid(grid)
    return rows * columns


def _axis(length: int, rule: str, offset: float, reference: int, divisor: int) -> Doubles:
    """Coordinates (G) of one axis; divisions come before products, as in the C++ library."""
    i = np.arange(length, dtype=np.float64)
    if rule == "index":
        return i + offset
    if rule == "scaled_to_reference":
        return (i + offset) / float(length) * float(reference)
    if rule == "centered":
        return 2.0 * ((i + 0.5 + offset) / float(divisor)) - 1.0
    if rule == "fraction":
        return (i + 0.5) / float(length)
    if length < 2:
        raise ValueError(f"coordinates {rule!r} are not defined for a side of one patch")
    if rule == "corners":
        return i * (reference - 1) / (length - 1)
    return 2.0 * i / (length - 1) - 1.0


def grid_coords(
    grid: Grid,
    rule: CoordinateRule = "index",
    *,
    offset: float = 0.0,
    reference: Grid = (0, 0),
    centered_by: CenteredBy = "each_axis",
) -> GridCoords:
    """Coordinates of all patches of `grid`, for patch i of G along an axis:

    index                 i + offset                    rope-vit, SAM 2; with offset 1 Meta's Perception Encoder
    scaled_to_reference   (i + offset) / G reference    EVA-02, timm's Perception Encoder
    centered              2 (i + 0.5 + offset) / G - 1  DINOv3
    corners               i (reference - 1) / (G - 1)   V-JEPA 2.1
    linspace              2 i / (G - 1) - 1             RvT
    fraction              (i + 0.5) / G                 ComRoPE
    """
    rows, columns = check_grid(grid)
    check_choice("rule", rule, ("index", "scaled_to_reference", "centered", "corners", "linspace", "fraction"))
    check_choice("centered_by", centered_by, ("each_axis", "shorter_side", "longer_side"))
    if not math.isfinite(offset):
        raise ValueError(f"offset={offset}: expected a finite number")
    if offset != 0.0 and rule in ("corners", "linspace", "fraction"):
        raise ValueError(f"offset={offset}: coordinates {rule!r} have none")
    if rule in ("scaled_to_reference", "corners") and min(reference) < 1:
        raise ValueError(f"reference={tuple(reference)}: coordinates {rule!r} need a reference grid")
    common = {"each_axis": None, "shorter_side": min(rows, columns), "longer_side": max(rows, columns)}[centered_by]
    x = _axis(columns, rule, offset, int(reference[1]), common or columns)
    y = _axis(rows, rule, offset, int(reference[0]), common or rows)
    return GridCoords(np.tile(x, rows), np.repeat(y, columns))


def clip_coords(
    num_frames: int, grid: Grid, rule: CoordinateRule = "index", *, offset: float = 0.0, reference: Grid = (0, 0)
) -> GridCoords:
    """Coordinates of a clip, frame by frame (frames N): those of the grid, and the index of the frame as t_t."""
    if num_frames < 1:
        raise ValueError(f"num_frames={num_frames}: expected at least one")
    one = grid_coords(grid, rule, offset=offset, reference=reference)
    return GridCoords(
        np.tile(one.t_x, num_frames),
        np.tile(one.t_y, num_frames),
        np.repeat(np.arange(num_frames, dtype=np.float64), len(one)),
    )


def window_order(grid: Grid, window: int) -> tuple[Integers, list[int]]:
    """(N) row-major indices of the patches window by window, and the number of patches of each window.

    Windows are counted from the upper left corner; those at the right and lower edges are smaller."""
    rows, columns = check_grid(grid)
    if window < 1:
        raise ValueError(f"window={window}: expected at least 1")
    index = np.arange(rows * columns).reshape(rows, columns)
    parts = [
        index[top : top + window, left : left + window].ravel()
        for top in range(0, rows, window)
        for left in range(0, columns, window)
    ]
    return np.concatenate(parts), [len(part) for part in parts]


def window_coords(grid: Grid, window: int, *, offset: float = 0.0) -> GridCoords:
    """Index coordinates that count from the corner of each window (SAM 3), of the patches in row-major order."""
    rows, columns = check_grid(grid)
    window_order(grid, window)
    i = np.arange(rows * columns)
    x, y = ((at % window).astype(np.float64) + offset for at in (i % columns, i // columns))
    return GridCoords(x, y)


def reordered(coords: GridCoords, order: Sequence[int] | npt.NDArray[np.integer]) -> GridCoords:
    """The coordinates of patch order[i] at place i."""
    at = np.asarray(order)
    if sorted(at.tolist()) != list(range(len(coords))):
        raise ValueError(f"order of {len(at)} patches is no permutation of the {len(coords)} patches")
    return GridCoords(coords.t_x[at], coords.t_y[at], None if coords.t_t is None else coords.t_t[at])


def coords_1d(length: int, offset: float = 0.0) -> Doubles:
    """Coordinates i + offset (L) of a sequence."""
    if length < 1:
        raise ValueError(f"length={length}: expected at least one token")
    return np.arange(length, dtype=np.float64) + offset
