"""The published conventions by name: the choices of each, its coordinates, frequency vectors and tables."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from . import frequencies as f
from ._types import AxisOrder, CoordinateRule, Doubles, Grid, Integers, PairLayout, RopeAngles, doubles
from .coordinates import GridCoords, clip_coords, grid_coords, reordered, window_coords, window_order
from .table import RopeTable, channel_pairs, rope_angles


@dataclass(frozen=True)
class Convention:
    """The choices of one published convention; `dataclasses.replace` makes variants.

    Attributes:
        name, families: its name, and the models that use it.
        kind: "axial" one axis per angle; "mixed" both axes in every angle, with learned frequencies; "volume" time, row and
            column; "directions" both axes, by a formula; "line" positions of a sequence, a grid of one row.
        coordinates, offset, reference: rule of grid_coords(); `reference` is the default, that of the model otherwise.
        axis_order: axis of the first half of the angles.
        layout: channels of a pair, as in published checkpoints.
        theta, angle_scale: frequencies angle_scale theta^(-k / F).
        second_axis_shift: s of theta^(-(k + s) / F) of the second axis (Pixtral).
        angles_per: "per_channel" if the two channels of a pair have different angles, which is not a rotation (V-JEPA 2).
        per_window: coordinates count from the corner of each window.
        class_angles: the first token is rotated by learned angles.
    """

    name: str
    families: tuple[str, ...]
    kind: str = "axial"
    coordinates: CoordinateRule = "index"
    offset: float = 0.0
    reference: Grid | None = None
    axis_order: AxisOrder = "x_then_y"
    layout: PairLayout = "neighbors"
    theta: float = 10000.0
    angle_scale: float = 1.0
    second_axis_shift: float = 0.0
    angles_per: RopeAngles = "per_pair"
    per_window: bool = False
    class_angles: bool = False

    @property
    def is_rotation(self) -> bool:
        """Whether scores depend on differences of positions only."""
        return self.angles_per == "per_pair"

    def num_angles(self, head_dim: int) -> int:
        """A: angles of a head."""
        if self.kind != "volume":
            return head_dim // 2
        if self.angles_per == "per_channel":
            return head_dim
        return 3 * f.num_volume_frequencies(head_dim) if self.name == "minimax-m3" else head_dim // 2

    def coords(self, grid: Grid, *, frames: int = 1, window: int = 0, reference: Grid | None = None) -> GridCoords:
        """Coordinates of the patches, frame by frame; with a `window`, window by window."""
        of = reference or self.reference or (0, 0)
        if self.per_window:
            if window < 1:
                raise ValueError(f"{self.name}: coordinates count from the corner of a window; pass window=")
            one = window_coords(grid, window, offset=self.offset)
        else:
            one = grid_coords(grid, self.coordinates, offset=self.offset, reference=of)
        if self.name == "golden-gate":
            rows, columns = grid
            one = GridCoords(one.t_x * math.sqrt(columns / rows), one.t_y * math.sqrt(rows / columns))
        if self.kind == "line" and grid[0] != 1:
            raise ValueError(f"{self.name}: grid {grid}: positions of a sequence are a grid of one row, (1, N)")
        if window:
            one = reordered(one, window_order(grid, window)[0])
        if self.kind == "volume":
            clip = clip_coords(frames, grid, self.coordinates, offset=self.offset, reference=of)
            return clip
        return GridCoords(np.tile(one.t_x, frames), np.tile(one.t_y, frames)) if frames > 1 else one

    def vectors(self, head_dim: int, num_heads: int = 1, frequencies: npt.ArrayLike | None = None) -> Doubles:
        """Frequency vectors (A, 3) or (H, A, 3) of a head. `frequencies` are the learned ones (H, d / 2, 2) or (d / 2, 2), x first,
        of a mixed convention; others have none."""
        if (self.kind == "mixed") != (frequencies is not None):
            wanted = "learned ones, (H, d / 2, 2)" if self.kind == "mixed" else "none, they follow from the formula"
            raise ValueError(f"{self.name}: frequencies: expected {wanted}")
        if frequencies is not None:
            return f.check_vectors(frequencies, head_dim // 2)
        if self.kind == "line":
            count = f.num_frequencies_1d(head_dim)
            steps = f.exp_pi(count) if self.name == "rope-1d-exp-pi" else f.from_theta(count, self.theta, self.angle_scale)
            return np.stack([steps, np.zeros(count), np.zeros(count)], 1)
        if self.name == "rvt":
            bands = f.pixel_bands(f.num_axial_frequencies(head_dim))
            return f.axial(bands, bands, self.axis_order)
        if self.name == "timm-mrope":
            steps, vectors = f.from_theta(head_dim // 2, self.theta), np.zeros((head_dim // 2, 3))
            for j, w in enumerate(steps):
                vectors[j, (2, 1, 0)[j % 3]] = w
            return vectors
        if self.kind == "volume":
            of_axis = f.from_theta(f.num_volume_frequencies(head_dim), self.theta)
            vectors = f.volume(of_axis, head_dim, per_channel=self.angles_per == "per_channel")
            return vectors[: self.num_angles(head_dim)]
        if self.kind == "directions":
            if self.name == "spiral":
                return f.spiral(head_dim, 4, self.theta)
            return (f.golden_gate if self.name == "golden-gate" else f.golden_gate_nd)(num_heads, head_dim)
        count = f.num_axial_frequencies(head_dim)
        first = f.from_theta(count, self.theta, self.angle_scale)
        second = first * math.pow(self.theta, -self.second_axis_shift / count) if self.second_axis_shift else first
        return f.axial(*((first, second) if self.axis_order == "x_then_y" else (second, first)), order=self.axis_order)

    def pairs(self, head_dim: int) -> Integers:
        """(P, 2): the channels (p, q) of each pair."""
        return channel_pairs(
            self.layout, head_dim, None if self.angles_per == "per_channel" else self.num_angles(head_dim)
        )

    def angles(
        self,
        grid: Grid,
        head_dim: int,
        num_heads: int = 1,
        *,
        frequencies: npt.ArrayLike | None = None,
        **of_grid: Any,
    ) -> Doubles:
        """(N, A) or (H, N, A) angles; `of_grid` are frames, window and reference, as of coords()."""
        return rope_angles(self.coords(grid, **of_grid), self.vectors(head_dim, num_heads, frequencies))

    def table(
        self,
        grid: Grid,
        head_dim: int,
        num_heads: int = 1,
        *,
        frequencies: npt.ArrayLike | None = None,
        class_angles: npt.ArrayLike | None = None,
        dtype: npt.DTypeLike = np.float64,
        **of_grid: Any,
    ) -> RopeTable:
        """The table of a grid. `class_angles` (A) makes a row for the class token in front of the patches (MLCD)."""
        angles = self.angles(grid, head_dim, num_heads, frequencies=frequencies, **of_grid)
        if self.class_angles and class_angles is not None:
            angles = np.concatenate([doubles(class_angles)[None], angles])
        elif class_angles is not None:
            raise ValueError(f"{self.name}: class_angles: its class token is not rotated")
        return RopeTable(angles, self.layout, head_dim=head_dim, angles_per=self.angles_per, dtype=dtype)


_TURN = 2.0 * math.pi
_TOWERS = (
    "Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL", "Qwen3.5", "GLM-4V", "GLM-OCR", "GLM-5.3", "PaddleOCR-VL", "VideoLLaMA 3",
    "DeepSeek ViT", "ERNIE-4.5-VL", "EXAONE-4.5",
)  # fmt: skip
_ALL = {
    c.name: c
    for c in (
        Convention("rope-vit", ("rope-vit axial",), theta=100.0),
        Convention("rope-vit-mixed", ("rope-vit mixed",), kind="mixed"),
        Convention(
            "eva02",
            ("EVA-02", "timm SBB"),
            coordinates="scaled_to_reference",
            reference=(16, 16),
            axis_order="y_then_x",
        ),
        Convention("perception-encoder", ("Perception Encoder",), offset=1.0),
        Convention(
            "perception-encoder-timm",
            ("Perception Encoder in timm",),
            coordinates="scaled_to_reference",
            offset=1.0,
            reference=(24, 24),
        ),
        Convention(
            "dinov3",
            ("DINOv3", "Sapiens2"),
            coordinates="centered",
            axis_order="y_then_x",
            layout="halves",
            theta=100.0,
            angle_scale=_TURN,
        ),
        Convention("sam2", ("SAM 2", "Perception Encoder without a class token")),
        Convention("sam3", ("SAM 3",), coordinates="scaled_to_reference", reference=(24, 24)),
        Convention("sam3-windows", ("SAM 3 in blocks with windows",), per_window=True),
        Convention("qwen2-vl", _TOWERS, axis_order="y_then_x", layout="halves"),
        Convention("mlcd", ("MLCD", "RICE"), axis_order="y_then_x", layout="halves", class_angles=True),
        Convention("pixtral", ("Pixtral", "Mistral 3"), axis_order="y_then_x", layout="halves", second_axis_shift=0.5),
        Convention(
            "mistral", ("Pixtral, Mistral 3 in Mistral's own layout",), axis_order="y_then_x", second_axis_shift=0.5
        ),
        Convention("moonvit", ("MoonViT", "Kimi-VL", "Kimi K2.5"), layout="alternating"),
        Convention(
            "croco", ("CroCo v2", "DUSt3R", "MASt3R"), axis_order="y_then_x", layout="halves_by_axis", theta=100.0
        ),
        Convention("gemma4", ("Gemma 4",), layout="halves_by_axis", theta=100.0),
        Convention("llama4", ("Llama 4",), offset=1.0),
        Convention("vjepa2", ("V-JEPA 2",), kind="volume", angles_per="per_channel"),
        Convention("vjepa2.1", ("V-JEPA 2.1",), kind="volume", coordinates="corners", reference=(16, 16)),
        Convention("minimax-m3", ("MiniMax-M3",), kind="volume", layout="halves"),
        Convention("timm-mrope", ("timm's RotaryEmbeddingMRope",), kind="volume", layout="halves"),
        Convention(
            "spiral",
            ("Spiral RoPE (by the abstract of the paper, and the README and frequencies of its code)",),
            kind="directions",
        ),
        Convention(
            "golden-gate", ("golden gate RoPE",), kind="directions", coordinates="linspace", layout="halves"
        ),
        Convention("golden-gate-nd", ("golden gate RoPE in vit-pytorch's ViTND",), kind="directions", layout="halves"),
        Convention("string", ("STRING", "Cayley-STRING"), kind="mixed"),
        Convention("comrope", ("ComRoPE", "ComRoPE-LD", "ComRoPE-AP"), kind="mixed", coordinates="fraction"),
        Convention("rope-1d", ("one-dimensional, complex form",), kind="line"),
        Convention("rope-1d-exp-pi", ("one-dimensional, half-split",), kind="line", layout="halves"),
        Convention("rvt", ("RvT",), coordinates="linspace", axis_order="y_then_x"),
    )
}


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", text.partition("(")[0].lower())


def conventions() -> tuple[str, ...]:
    """Names of all conventions."""
    return tuple(_ALL)


def convention(name: str, **changes: Any) -> Convention:
    """The convention of that name, or of a family, whatever the case, spaces and hyphens, and what follows in parentheses: "dinov3", "EVA-02", "Qwen2.5-VL".
    `changes` replace single choices: convention("perception-encoder", offset=0.0)."""
    wanted = _plain(name)
    for c in _ALL.values():
        if wanted == _plain(c.name):
            return replace(c, **changes)
    for c in _ALL.values():
        if wanted and wanted in map(_plain, c.families):
            return replace(c, **changes)
    raise ValueError(f"no convention {name!r}; there are {', '.join(_ALL)}")
