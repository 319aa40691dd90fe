"""Types and names that the modules share; the names of choices are those of the enumerators in C++."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]
Floats = npt.NDArray[np.floating[Any]]
Integers = npt.NDArray[np.intp]
Grid = tuple[int, int]  # rows, columns

CoordinateRule = Literal["index", "scaled_to_reference", "centered", "corners", "linspace", "fraction"]
CenteredBy = Literal["each_axis", "shorter_side", "longer_side"]
AxisOrder = Literal["x_then_y", "y_then_x"]
RopePairing = Literal["neighbors", "halves"]
PairLayout = Literal["neighbors", "halves", "alternating", "halves_by_axis"]
RopeAngles = Literal["per_pair", "per_channel"]


def check_grid(grid: Grid) -> Grid:
    rows, columns = (int(edge) for edge in grid)
    if rows < 1 or columns < 1:
        raise ValueError(f"grid={tuple(grid)}: expected at least one row and one column")
    return rows, columns


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"{name}={value!r}: expected one of {', '.join(map(repr, choices))}")


def doubles(values: npt.ArrayLike) -> Doubles:
    """Real numbers in float64."""
    return real(values, np.float64)


def real(values: npt.ArrayLike, dtype: npt.DTypeLike) -> npt.NDArray[Any]:
    """Numbers in another type; numpy would cut off imaginary parts."""
    given = np.asarray(values)
    if np.iscomplexobj(given):
        raise ValueError(f"numbers of type {given.dtype.name}: expected real ones")
    return given.astype(dtype, copy=False)
