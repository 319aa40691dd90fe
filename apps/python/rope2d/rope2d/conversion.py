"""Conversion of checkpoints between conventions: scores do not change if the channels of q and k are permuted alike, so the rows of
their weights, biases and norms can be put into the order of another layout."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar, Union

import numpy as np
import numpy.typing as npt

from ._types import Integers, PairLayout
from .conventions import Convention, convention
from .table import channel_pairs

Source = Union[str, Convention]
Array = TypeVar("Array", bound=npt.NDArray[np.generic])


LAYOUTS = ("neighbors", "halves", "alternating", "halves_by_axis")


def _both(source: Source, target: Source) -> tuple[Convention, Convention]:
    """Two conventions; a bare layout is the convention of the other side in that layout."""

    def resolved(of: Source, other: Source) -> Convention:
        if isinstance(of, Convention):
            return of
        if of not in LAYOUTS:
            return convention(of)
        if isinstance(other, str):
            other = Convention(of, ()) if other in LAYOUTS else convention(other)
        layout: Any = of
        return replace(other, name=of, layout=layout)

    return resolved(source, target), resolved(target, source)


def channel_order(source: Source, target: Source, head_dim: int) -> Integers:
    """(d): for each channel of `target` the channel of `source` that becomes it.

    Source and target are names of conventions or layouts ("neighbors", "halves", "alternating", "halves_by_axis"), or
    Conventions; a bare layout has the axes and frequencies of the other side. Raises ValueError if no permutation leads from one to the other: different coordinates or frequencies."""
    a, b = _both(source, target)
    kinds = ("mixed", "directions")
    if a.kind in kinds or b.kind in kinds:  # the frequencies of each head keep their order
        if a.kind != b.kind or (a.kind == "directions" and not {a.name, b.name} & set(LAYOUTS) and a.name != b.name):
            raise ValueError(
                f"{a.name} and {b.name} differ in their frequencies: learned, by directions, or of one axis"
            )
        from_pairs, to_pairs = a.pairs(head_dim), b.pairs(head_dim)
        match = np.arange(len(from_pairs))
    else:
        if (a.coordinates, a.offset, a.reference, a.per_window, a.angles_per) != (
            b.coordinates, b.offset, b.reference, b.per_window, b.angles_per,
        ):  # fmt: skip
            raise ValueError(
                f"{a.name} and {b.name} differ in their coordinates: a permutation of channels cannot change that"
            )
        from_pairs, to_pairs = a.pairs(head_dim), b.pairs(head_dim)
        rates, wanted = a.vectors(head_dim), b.vectors(head_dim)
        if a.angles_per == "per_channel" or rates.shape != wanted.shape:
            raise ValueError(f"{a.name} and {b.name} differ in the number of angles, or are no rotations")
        distance = np.abs(wanted[:, None] - rates[None]).max(-1)
        match = distance.argmin(1)
        worst = distance.min(1)
        if (worst > 1e-12 * np.abs(wanted).max(-1)).any() or len(set(match.tolist())) != len(match):
            raise ValueError(
                f"{a.name} and {b.name} differ in their frequencies: a permutation of channels cannot change that"
            )
    order = np.arange(head_dim)
    order[to_pairs.ravel()] = from_pairs[match].ravel()
    rest_from = np.setdiff1d(np.arange(head_dim), from_pairs.ravel())
    rest_to = np.setdiff1d(np.arange(head_dim), to_pairs.ravel())
    order[rest_to] = rest_from
    return order


def convert_channels(x: Array, source: Source, target: Source, axis: int = -1) -> Array:
    """Queries, keys or the weight of a norm of each head, with the d channels of a head along `axis`."""
    return np.take(x, channel_order(source, target, x.shape[axis]), axis=axis)  # type: ignore[return-value]


def convert_rows(weight: Array, num_heads: int, source: Source, target: Source) -> Array:
    """Weight (H d, C) or bias (H d) of q or of k, rows ordered by head."""
    if num_heads < 1 or weight.shape[0] % num_heads:
        raise ValueError(f"weight {weight.shape}: {num_heads} heads do not divide its rows")
    heads = weight.reshape(num_heads, weight.shape[0] // num_heads, *weight.shape[1:])
    return convert_channels(heads, source, target, axis=1).reshape(weight.shape)  # type: ignore[return-value]


def convert_qkv(weight: Array, num_heads: int, source: Source, target: Source) -> Array:
    """Weight (3 H d, C) or bias (3 H d) of q, k and v in this order, each ordered by head; v is unchanged."""
    if weight.shape[0] % (3 * max(1, num_heads)):
        raise ValueError(f"weight {weight.shape}: {num_heads} heads of q, k and v do not divide its rows")
    third = weight.shape[0] // 3
    q, k = (convert_rows(weight[i * third : (i + 1) * third], num_heads, source, target) for i in range(2))
    return np.concatenate([q, k, weight[2 * third :]])  # type: ignore[return-value]


def layout_of(convention: Convention) -> PairLayout:
    """The layout among "neighbors" and "halves" into which a checkpoint of this convention is permuted."""
    return "halves" if convention.layout in ("halves", "halves_by_axis") else "neighbors"


__all__ = ["channel_order", "channel_pairs", "convert_channels", "convert_qkv", "convert_rows", "layout_of"]
