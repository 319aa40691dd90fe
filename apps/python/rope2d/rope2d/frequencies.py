"""Frequencies: of an axis (F), and the frequency vectors (A, 3) of a head: angle = w[:, 0] t_x + w[:, 1] t_y + w[:, 2] t_t.

Powers are those of the C library, as in the C++ library; numpy's may differ by a unit in the last place."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from ._types import AxisOrder, Doubles, check_choice, doubles


def num_axial_frequencies(head_dim: int) -> int:
    """F = d / 4 frequencies per axis."""
    if head_dim < 4 or head_dim % 4:
        raise ValueError(f"head_dim={head_dim}: two axes of channel pairs need a multiple of 4")
    return head_dim // 4


def num_frequencies_1d(head_dim: int) -> int:
    """F = d / 2 frequencies of positions in a sequence."""
    if head_dim < 2 or head_dim % 2:
        raise ValueError(f"head_dim={head_dim}: channel pairs need a multiple of 2")
    return head_dim // 2


def num_volume_frequencies(head_dim: int) -> int:
    """floor(floor(d / 3) / 2) frequencies for each of time, row and column."""
    if head_dim // 6 < 1:
        raise ValueError(f"head_dim={head_dim}: three axes of channel pairs need at least 6")
    return head_dim // 3 // 2


def _checked(count: int, positive: float = 1.0, name: str = "theta") -> int:
    if count < 1:
        raise ValueError(f"count={count}: expected at least one frequency")
    if not (math.isfinite(positive) and positive > 0):
        raise ValueError(f"{name}={positive}: expected a positive number")
    return int(count)


def from_theta(count: int, theta: float = 10000.0, scale: float = 1.0) -> Doubles:
    """scale theta^(-k / F), (F): 10000 of EVA-02, 100 of rope-vit; scale 2 pi where frequencies count turns (DINOv3)."""
    _checked(count, theta)
    return np.array([math.pow(theta, -k / count) * scale for k in range(count)])


def exp_pi(count: int) -> Doubles:
    """exp(-pi k / F), (F): the half-split one-dimensional variant."""
    _checked(count)
    return np.array([math.exp(-math.pi * k / count) for k in range(count)])


def from_period_range(count: int, shortest: float, longest: float) -> Doubles:
    """1 / period, (F), periods spaced geometrically from shortest to longest (DINOv3's second form)."""
    _checked(count, shortest, "shortest")
    _checked(count, longest, "longest")
    if shortest > longest:
        raise ValueError(f"shortest={shortest} is greater than longest={longest}")
    steps = [k / (count - 1) if count > 1 else 0.0 for k in range(count)]
    return np.array([1.0 / (shortest * math.pow(longest / shortest, step)) for step in steps])


def from_periods(periods: npt.ArrayLike) -> Doubles:
    """1 / period, (F), of stored periods."""
    values = doubles(periods)
    if values.ndim != 1 or not len(values) or not (np.isfinite(values) & (values > 0)).all():
        raise ValueError("periods: expected a list of positive numbers")
    return np.asarray(1.0 / values)


def pixel_bands(count: int, max_frequency: float = 10.0) -> Doubles:
    """pi linspace(1, max_frequency / 2, F), for coordinates in [-1, 1] (Perceiver, RvT)."""
    _checked(count, max_frequency, "max_frequency")
    steps = [k / (count - 1) if count > 1 else 0.0 for k in range(count)]
    return np.array([math.pi * (1.0 + (max_frequency / 2.0 - 1.0) * step) for step in steps])


def axial(x: npt.ArrayLike, y: npt.ArrayLike, order: AxisOrder = "x_then_y") -> Doubles:
    """(2F, 3): the F frequencies of one axis, then those of the other."""
    check_choice("order", order, ("x_then_y", "y_then_x"))
    of_x, of_y = doubles(x), doubles(y)
    if of_x.ndim != 1 or of_x.shape != of_y.shape or not len(of_x):
        raise ValueError(f"frequencies of x {of_x.shape} and of y {of_y.shape}: expected the same number of both")
    vectors = np.zeros((2 * len(of_x), 3))
    at_x, at_y = (0, len(of_x)) if order == "x_then_y" else (len(of_x), 0)
    vectors[at_x : at_x + len(of_x), 0] = of_x
    vectors[at_y : at_y + len(of_y), 1] = of_y
    return vectors


def mixed(frequencies: npt.ArrayLike) -> Doubles:
    """(depth, H, d / 2, 3) of learned frequencies (2, depth, H, d / 2), x first (rope-vit; timm's `rope.freqs`)."""
    values = doubles(frequencies)
    if values.ndim != 4 or values.shape[0] != 2 or not values.size or not np.isfinite(values).all():
        raise ValueError(f"frequencies {values.shape}: expected finite numbers (2, depth, heads, pairs)")
    return np.concatenate([np.moveaxis(values, 0, -1), np.zeros((*values.shape[1:], 1))], -1)


def volume(frequencies: npt.ArrayLike, head_dim: int, *, per_channel: bool = True) -> Doubles:
    """Vectors of time, row and column with F frequencies each; what is left of the head is zero.

    per_channel: (d, 3), channel i of an axis has frequency i mod F, so channels of a pair differ (V-JEPA 2, no rotation);
    else (d / 2, 3), a frequency per pair (V-JEPA 2.1)."""
    values = doubles(frequencies)
    of_axis = np.tile(values, 2) if per_channel else values
    count = head_dim if per_channel else head_dim // 2
    if 3 * len(of_axis) > count:
        raise ValueError(f"{len(values)} frequencies of three axes do not fit {head_dim} channels")
    vectors = np.zeros((count, 3))
    for place, axis in enumerate((2, 1, 0)):
        vectors[place * len(of_axis) : (place + 1) * len(of_axis), axis] = of_axis
    return vectors


def spiral(head_dim: int, num_directions: int, theta: float = 10000.0) -> Doubles:
    """(d / 2, 3): K directions k pi / K in turn, each with its share of the frequencies theta^(-4m/d); perpendicular directions
    have the same frequencies (Spiral RoPE, by the formula of its paper)."""
    directions, per_direction = num_directions, head_dim // 2 // max(1, num_directions)
    if directions < 2 or directions % 2 or head_dim % (4 * directions):
        raise ValueError(
            f"head_dim={head_dim}, num_directions={directions}: expected an even number, 4 times which divides head_dim"
        )
    steps = from_theta(num_axial_frequencies(head_dim), theta)
    vectors = []
    for k in range(directions):
        angle = k * math.pi / directions
        for j in range(per_direction):
            w = float(steps[2 * (k % (directions // 2)) + j // 2 * directions + j % 2])
            vectors.append([w * math.cos(angle), w * math.sin(angle), 0.0])
    return np.array(vectors)


def _geometric(count: int, low: float, high: float) -> list[float]:
    _checked(count, low, "low")
    return [low * math.pow(high / low, f / (count - 1)) if count > 1 else low for f in range(count)]


def golden_gate(num_heads: int, head_dim: int, low: float = 0.2, high: float = 20.0) -> Doubles:
    """(H, d / 2, 3): magnitudes in geometric steps from low to high, directions n pi (sqrt 5 - 1) / 2 for n = h d / 2 + f; for
    coordinates "linspace" times sqrt(W / H) and sqrt(H / W) (Xiong 2025)."""
    pairs = head_dim // 2
    sizes, golden = _geometric(pairs, low, high), math.pi * (math.sqrt(5) - 1) / 2
    vectors = [
        [
            [sizes[f] * math.cos((h * pairs + f) * golden), sizes[f] * math.sin((h * pairs + f) * golden), 0.0]
            for f in range(pairs)
        ]
        for h in range(num_heads)
    ]
    return np.array(vectors)


def _inverse_erf(y: float) -> float:
    x = 0.0
    for _ in range(100):
        step = (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
        x -= max(-0.5, min(0.5, step))
        if abs(step) < 1e-17:
            break
    return x


def golden_gate_nd(num_heads: int, head_dim: int, low: float = 1.0, high: float = 10000.0) -> Doubles:
    """(H, d / 2, 3): as golden_gate() with quasi-random directions, for index coordinates (vit-pytorch's ViTND in two dimensions)."""
    pairs, ratio = head_dim // 2, 2.0
    for _ in range(100):  # the root of g^3 = g + 1
        ratio = (1 + ratio) ** (1 / 3)
    sizes = _geometric(pairs, low, high)
    vectors = []
    for n in range(1, num_heads * pairs + 1):
        row, column = (_inverse_erf(2 * math.fmod(n * ratio**-a, 1.0) - 1) for a in (1, 2))
        w = sizes[(n - 1) % pairs] / math.sqrt(row * row + column * column)
        vectors.append([w * column, w * row, 0.0])
    return np.array(vectors).reshape(num_heads, pairs, 3)


def check_vectors(vectors: npt.ArrayLike, num_angles: int | None = None) -> Doubles:
    """Frequency vectors (A, 3) or (H, A, 3) as float64; two columns, x and y, are completed."""
    values = doubles(vectors)
    if values.ndim not in (2, 3) or values.shape[-1] not in (2, 3) or not values.size or not np.isfinite(values).all():
        raise ValueError(f"frequency vectors {values.shape}: expected finite numbers (A, 3) or (H, A, 3)")
    if num_angles is not None and values.shape[-2] != num_angles:
        raise ValueError(f"{values.shape[-2]} frequency vectors: expected {num_angles}")
    if values.shape[-1] == 2:
        values = np.concatenate([values, np.zeros((*values.shape[:-1], 1))], -1)
    return values
