"""Position encodings as numpy arrays, free of any model.

Letters: N patches of a grid (rows, columns) in row-major order, L tokens, H heads, d channels of a head, F frequencies:
d / 4 per axis in 2D, d / 2 in 1D. Numbers are computed in double and rounded once.
"""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Mapping
from typing import Any, Literal, Union, get_args

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import integer, number, numbers, pair
from ._results import as_numpy

Coordinates = Literal["index", "scaled", "centered"]
CenteredBy = Literal["each_axis", "shorter_side", "longer_side"]
AxisOrder = Literal["xy", "yx"]
Pairing = Literal["neighbors", "halves"]
Resampling = Literal[
    "bicubic_antialias",
    "bicubic",
    "bicubic_plus_tenth",
    "bilinear",
    "bilinear_antialias",
    "bilinear_aligned",
    "tiled",
    "bucketed",
    "bilinear_plus_tenth",
    "bilinear_zeros",
]

# The numbers of the library are their places in these.
_COORDINATES: tuple[str, ...] = get_args(Coordinates)
_CENTERED_BY: tuple[str, ...] = get_args(CenteredBy)
_AXIS_ORDERS: tuple[str, ...] = get_args(AxisOrder)
_PAIRINGS: tuple[str, ...] = get_args(Pairing)
_RULES = ("theta", "exp_pi", "periods", "pixels")
_LAYOUTS = ("line", "grid", "quarters")
_RESAMPLINGS: tuple[str, ...] = get_args(Resampling)
_DTYPES = {"float32": 0, "float64": 1}

Doubles = npt.NDArray[np.float64]


def _number(name: str, choices: tuple[str, ...], value: str) -> int:
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"[vitcpp.position] {name}={value!r}; expected one of {', '.join(map(repr, choices))}")
    return choices.index(value)


def _dtype(dtype: npt.DTypeLike) -> int:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        raise ArgumentError(f"[vitcpp.position] dtype={dtype!r}; expected float32 or float64") from None
    if name not in _DTYPES:
        raise ArgumentError(f"[vitcpp.position] dtype={name}; expected float32 or float64")
    return _DTYPES[name]


def _grid(grid: tuple[int, int]) -> tuple[int, int]:
    return pair("grid", grid, 1)


def _options(
    coordinates: str = "index",
    offset: float = 0.0,
    reference: tuple[int, int] = (0, 0),
    centered_by: str = "each_axis",
    order: str = "xy",
    pairing: str = "neighbors",
    dtype: npt.DTypeLike = np.float32,
) -> Any:
    rows, columns = pair("reference", reference)
    return ctypes.byref(
        lib.RopeOptions(
            coordinates=_number("coordinates", _COORDINATES, coordinates),
            centered_by=_number("centered_by", _CENTERED_BY, centered_by),
            axis_order=_number("order", _AXIS_ORDERS, order),
            pairing=_number("pairing", _PAIRINGS, pairing),
            offset=offset,
            reference_rows=rows,
            reference_columns=columns,
            dtype=_dtype(dtype),
        )
    )


def _doubles(name: str, values: npt.ArrayLike, ndim: int | None = None) -> Doubles:
    return numbers(name, values, np.float64, ndim)


def frequencies(
    count: int,
    rule: Literal["theta", "exp_pi", "periods", "pixels"] = "theta",
    a: float = 10000.0,
    b: float = 0.0,
) -> Doubles:
    """`count` = F frequencies in radians per unit of coordinate.

    Rules: "theta" a^(-k / F); "exp_pi" exp(-pi k / F); "periods" 1 / period, spaced geometrically from a to b;
    "pixels" pi linspace(1, a / 2, F).
    """
    out = np.empty(integer("count", count, 1), np.float64)
    lib.call("vit_rope_frequencies", _number("rule", _RULES, rule), count, a, b, out)
    return out


def grid_coordinates(
    grid: tuple[int, int],
    coordinates: Coordinates = "index",
    offset: float = 0.0,
    reference: tuple[int, int] = (0, 0),
    centered_by: CenteredBy = "each_axis",
) -> tuple[Doubles, Doubles]:
    """Coordinates t_x, t_y (N) of the patches of a grid.

    "index": i + offset (rope-vit, SAM 2). "scaled": (i + offset) / G * reference (EVA-02). "centered":
    2 (i + 0.5 + offset) / G - 1 (DINOv3).
    """
    rows, columns = _grid(grid)
    t_x, t_y = np.empty(rows * columns), np.empty(rows * columns)
    options = _options(coordinates, offset, reference, centered_by)
    lib.call("vit_grid_coordinates", rows, columns, options, t_x, t_y)
    return t_x, t_y


def _rotated_in(x: npt.ArrayLike, dtype: np.dtype[Any], out: npt.NDArray[Any] | None) -> npt.NDArray[Any]:
    """An array with the numbers of x that may be rotated in place: a copy, or `out`, which may be x."""
    if out is None:
        return numbers("x", x, dtype).copy()
    if not isinstance(out, np.ndarray) or out.dtype != dtype or not out.flags.c_contiguous or not out.flags.writeable:
        found = f"{out.dtype}" if isinstance(out, np.ndarray) else f"type {type(out).__name__}"
        raise ArgumentError(
            f"[vitcpp.position] out of dtype {found}; expected a writable array of {dtype}, row-major without gaps"
        )
    if out is not x:
        values = numbers("x", x, dtype)
        if values.shape != out.shape:
            raise ArgumentError(f"[vitcpp.position] out of shape {out.shape} for x of shape {values.shape}")
        np.copyto(out, values)
    return out


class RopeTable:
    """Rotary factors cos + i sin of a grid or line. Never changes; threads may share it.

    Attributes:
        cos, sin: (N, d / 2), or (H, N, d / 2) where heads have tables of their own.
        logit_factor: What the logits of attention are multiplied by; 1.0 but for `scaling` with yarn.
    """

    def __init__(self, handle: lib.Handle, logit_factor: float = 1.0) -> None:
        self._handle = handle
        self.logit_factor = logit_factor
        cos, sin = lib.Array(), lib.Array()
        lib.call("vit_rope_table_get", handle, ctypes.byref(cos), ctypes.byref(sin))
        self.cos: npt.NDArray[Any] = as_numpy(handle, cos)
        self.sin: npt.NDArray[Any] = as_numpy(handle, sin)
        self.cos.flags.writeable = self.sin.flags.writeable = False

    @classmethod
    def axial(
        cls,
        grid: tuple[int, int],
        frequencies: npt.ArrayLike,
        *,
        coordinates: Coordinates = "index",
        offset: float = 0.0,
        reference: tuple[int, int] = (0, 0),
        centered_by: CenteredBy = "each_axis",
        order: AxisOrder = "xy",
        pairing: Pairing = "neighbors",
        dtype: npt.DTypeLike = np.float32,
        trained: tuple[int, int] | None = None,
        scaling: str | None = None,
    ) -> RopeTable:
        """Axial encoding (N, 2F) with F `frequencies` for both axes; `order` tells which axis comes first.

        On another grid than the `trained` one, `scaling` is "none", "linear", "ntk" or "yarn[,key=value...]", as `--rope-scaling`
        has it; None = what the rule of the coordinates gives.
        """
        rows, columns = _grid(grid)
        values = _doubles("frequencies", frequencies, 1)
        options = _options(coordinates, offset, reference, centered_by, order, pairing, dtype)
        if trained is not None:
            rule = None if scaling is None else lib.encoded(scaling)
            factor = ctypes.c_double()
            arguments = (*_grid(trained), rule, values, values.size, options, ctypes.byref(factor))
            handle = lib.Handle("rope_table", "vit_rope_axial_scaled", rows, columns, *arguments)
            return cls(handle, factor.value)
        if scaling is not None:
            raise ArgumentError(f"[vitcpp.position] scaling={scaling!r} without the trained grid")
        return cls(
            lib.Handle("rope_table", "vit_rope_axial", rows, columns, values, values.size, options)
        )

    @classmethod
    def mixed(
        cls,
        grid: tuple[int, int],
        frequencies: npt.ArrayLike,
        layer: int = 0,
        *,
        coordinates: Coordinates = "index",
        offset: float = 0.0,
        reference: tuple[int, int] = (0, 0),
        order: AxisOrder = "xy",
        pairing: Pairing = "neighbors",
        dtype: npt.DTypeLike = np.float32,
    ) -> RopeTable:
        """Learned frequencies (2, depth, H, d / 2), x first, that mix both axes: factors (H, N, d / 2) of a layer."""
        rows, columns = _grid(grid)
        values = _doubles("frequencies", frequencies)
        if values.ndim != 4 or values.shape[0] != 2:
            raise ArgumentError(
                f"[vitcpp.position] frequencies of shape {values.shape}; expected (2, depth, H, d / 2)"
            )
        options = _options(coordinates, offset, reference, "each_axis", order, pairing, dtype)
        return cls(
            lib.Handle(
                "rope_table",
                "vit_rope_mixed",
                rows,
                columns,
                values,
                *values.shape[1:],
                integer("layer", layer, 0),
                options,
            )
        )

    @classmethod
    def line(
        cls,
        positions: npt.ArrayLike,
        frequencies: npt.ArrayLike,
        *,
        pairing: Pairing = "neighbors",
        dtype: npt.DTypeLike = np.float32,
    ) -> RopeTable:
        """One-dimensional encoding (L, F) of L `positions`."""
        places, values = _doubles("positions", positions, 1), _doubles("frequencies", frequencies, 1)
        options = _options(pairing=pairing, dtype=dtype)
        return cls(
            lib.Handle(
                "rope_table",
                "vit_rope_line",
                places,
                places.size,
                values,
                values.size,
                options,
            )
        )

    def rotate(
        self, x: npt.ArrayLike, num_prefix_tokens: int = 0, *, out: npt.NDArray[Any] | None = None
    ) -> npt.NDArray[Any]:
        """Rotated queries or keys (B, L, d) or (B, L, H, d), as a new array of the table's dtype, or in `out`.

        The first `num_prefix_tokens` of the L tokens stay as they are, the others must be the patches of the table.
        `out=x` rotates in place, without a copy.
        """
        out = _rotated_in(x, self.cos.dtype, out)
        shape = (ctypes.c_size_t * max(1, out.ndim))(*out.shape)
        lib.call(
            "vit_rope_rotate", self._handle, out, shape, out.ndim, integer("num_prefix_tokens", num_prefix_tokens, 0)
        )
        return out


def conventions() -> list[dict[str, Any]]:
    """The published conventions of rotary positions, as `vit rope --list` has them: name, families, coordinates, offset, order,
    pairing, frequencies and formula of each."""
    text = ctypes.c_char_p()
    lib.call("vit_rope_conventions", ctypes.byref(text))
    found: list[dict[str, Any]] = json.loads(text.value or b"[]")
    return found


class RopeForm:
    """A published convention on a grid, by its name or that of a family ("dinov3", "EVA-02", "Qwen2.5-VL"), in float64: its tables,
    its normal form, and its rotation. Never changes; threads may share it.

    In the normal form the angle of pair j is w_x column + w_y row + w_t frame + phase, and the pair of channels (p, q) becomes
    (p cos - q sin, q cos + p sin), after a change of basis if there is one. A = angles of a head.

    Attributes:
        coordinates: (N, 2) as x, y, or (N, 3) as x, y, t.
        angles, cos, sin: (N, A), or (H, N, A) if heads differ.
        frequencies: (A, 3) or (H, A, 3), w_x, w_y, w_t in radians per patch and frame.
        phases: (A) or (H, A).
        pairs: (pairs, 2), the channels of each; with an angle per channel (V-JEPA 2) A is twice as many.
        basis: (d, d), orthogonal, an example of a learned one (STRING, ComRoPE), or None.
    """

    def __init__(
        self,
        convention: str,
        grid: tuple[int, int],
        head_dim: int,
        *,
        num_frames: int = 1,
        num_heads: int = 1,
        reference: tuple[int, int] = (0, 0),
    ) -> None:
        """`num_frames` of a clip, for conventions with time; `num_heads`, for those whose heads differ; `reference`, the native grid
        of the model, for those that have one. Positions of a sequence are a grid of one row. Raises ArgumentError with the known
        names for another convention, and if it fits neither grid nor head."""
        rows, columns = _grid(grid)
        reference_rows, reference_columns = pair("reference", reference)
        options = lib.RopeFormOptions(
            rows=rows,
            columns=columns,
            reference_rows=reference_rows,
            reference_columns=reference_columns,
            head_dim=integer("head_dim", head_dim, 1),
            num_frames=integer("num_frames", num_frames, 1),
            num_heads=integer("num_heads", num_heads, 1),
        )
        self._handle = lib.Handle("rope_form", "vit_rope_form_create", lib.encoded(convention), ctypes.byref(options))
        self.coordinates: Doubles = self._array(0)
        self.angles: Doubles = self._array(1)
        self.cos: Doubles = self._array(2)
        self.sin: Doubles = self._array(3)
        self.frequencies: Doubles = self._array(4)
        self.phases: Doubles = self._array(5)
        self.pairs: npt.NDArray[np.int32] = self._array(6)
        try:
            self.basis: Doubles | None = self._array(7)
        except ArgumentError:
            self.basis = None

    def _array(self, name: int) -> npt.NDArray[Any]:
        array = lib.Array()
        lib.call("vit_rope_form_get", self._handle, name, ctypes.byref(array))
        found = as_numpy(self._handle, array)
        found.flags.writeable = False
        return found

    def rotate(self, x: npt.ArrayLike, num_prefix_tokens: int = 0, *, out: Doubles | None = None) -> Doubles:
        """Rotated queries or keys (B, L, H, d), as a new float64 array, or in `out`; `out=x` rotates without a copy. The first
        `num_prefix_tokens` of the L tokens are not rotated, the others must be the N patches."""
        out = _rotated_in(x, np.dtype(np.float64), out)
        shape = (ctypes.c_size_t * max(1, out.ndim))(*out.shape)
        lib.call(
            "vit_rope_form_rotate", self._handle, out, shape, out.ndim, integer("num_prefix_tokens", num_prefix_tokens, 0)
        )
        return out


Source = Union[str, "os.PathLike[str]", Mapping[str, npt.ArrayLike]]


def identify(
    source: Source,
    *,
    grid: tuple[int, int] | None = None,
    num_prefix_tokens: int | None = None,
    against: str | None = None,
) -> dict[str, Any]:
    """Which convention rotary factors follow: what `vit rope identify --format json` prints, as a dictionary; "convention" is a name,
    or None if no published one fits all numbers within their rounding.

    `source` is a file (.npz, .npy, .safetensors), or arrays by name: "cos" and "sin", "angles", (T, d / 2) or (T, d) or with heads in
    front; complex "freqs_cis"; or "q" and "q_rotated", "k" and "k_rotated", (B, T, H, d) or (B, H, T, d), with a "basis" (d, d)
    if they are rotated in one. `against` names a convention to compare with instead of the nearest one.
    """
    options = lib.RopeIdentifyOptions(against=None if against is None else lib.encoded(against))
    if grid is not None:
        options.rows, options.columns = _grid(grid)
    if num_prefix_tokens is not None:
        options.has_prefix, options.num_prefix_tokens = 1, integer("num_prefix_tokens", num_prefix_tokens, 0)
    if isinstance(source, Mapping):
        values = {name: _factors(name, x) for name, x in source.items()}
        arrays = (lib.Array * max(1, len(values)))()
        for array, x in zip(arrays, values.values()):
            array.data, array.dtype, array.ndim = x.ctypes.data, 1, x.ndim
            array.shape[: x.ndim] = x.shape
        names = (ctypes.c_char_p * max(1, len(values)))(*(lib.encoded(name) for name in values))
        handle = lib.Handle(
            "rope_identity", "vit_rope_identify_arrays", names, arrays, len(values), ctypes.byref(options)
        )
    else:
        handle = lib.Handle("rope_identity", "vit_rope_identify", lib.encoded(source), ctypes.byref(options))
    text = ctypes.c_char_p()
    lib.call("vit_rope_identity_json", handle, ctypes.byref(text))
    found: dict[str, Any] = json.loads(text.value or b"{}")
    return found


def _factors(name: str, x: npt.ArrayLike) -> Doubles:
    """Numbers in float64, which keep the rounding of their own type; complex ones as real and imaginary part."""
    try:
        values = np.asarray(x)
    except (RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"[vitcpp.position] {name}: {error}") from None
    if np.iscomplexobj(values):
        values = np.stack([values.real, values.imag], -1)
    if not 1 <= values.ndim <= 5:
        raise ArgumentError(f"[vitcpp.position] {name} has shape {values.shape}; expected 1 to 5 dimensions")
    return _doubles(name, values)


def sinusoidal(
    size: int | tuple[int, int],
    dim: int,
    base: float = 10000.0,
    layout: Literal["grid", "quarters"] = "grid",
    dtype: npt.DTypeLike = np.float32,
) -> npt.NDArray[Any]:
    """Fixed sine-cosine rows: (L, dim) of a line of `size` tokens, (N, dim) of a grid.

    Of a grid, "grid" has the column in the first half of the channels and the row in the second; "quarters" has
    sin x, cos x, sin y, cos y, as big_vision and SimpleViT.
    """
    is_line = isinstance(size, int)
    rows, columns = _grid((size, 1) if isinstance(size, int) else size)
    width = integer("dim", dim, 1)
    rule = 0 if is_line else _number("layout", _LAYOUTS, layout)
    kind = _dtype(dtype)
    out = np.empty((rows * columns, width), np.dtype(dtype).newbyteorder("="))
    lib.call("vit_sinusoidal", rule, rows, columns, width, base, kind, out)
    return out


def resample_table(
    table: npt.ArrayLike,
    from_grid: tuple[int, int],
    to_grid: tuple[int, int],
    num_prefix_rows: int = 0,
    resampling: Resampling = "bicubic_antialias",
) -> npt.NDArray[np.float32]:
    """A learned table (p + N, C) of a grid, as the library that is named resamples it to another grid: float32, the first p rows copied.

    "bicubic_antialias": timm. "bicubic": transformers' ViT, DINOv2, CLIP. "bicubic_plus_tenth": Meta's DINOv2. "bilinear": Perception
    Encoder. "bilinear_antialias": SigLIP 2 NaFlex. "bilinear_aligned": Qwen3-VL. "tiled": SAM 3. "bucketed": Idefics 2 and 3.
    "bilinear_plus_tenth": Hy4. "bilinear_zeros": Muse, zeros around the table.
    """
    values = numbers("table", table, np.float32)
    (rows, columns), (to_rows, to_columns) = _grid(from_grid), _grid(to_grid)
    prefix = integer("num_prefix_rows", num_prefix_rows, 0)
    if values.ndim != 2 or values.shape[0] != prefix + rows * columns:
        raise ArgumentError(
            f"[vitcpp.position] table of shape {values.shape}; expected ({prefix} + {rows} {columns}, C) for the grid"
        )
    rule = _number("resampling", _RESAMPLINGS, resampling)
    sizes = (prefix, rows, columns, values.shape[1], to_rows, to_columns, rule)
    out = np.empty((prefix + to_rows * to_columns, values.shape[1]), np.float32)
    lib.call("vit_resample_table", values, *sizes, out)
    return out


def relative_index(num_tokens: int, max_distance: int) -> npt.NDArray[np.int64]:
    """Row of the tables of relative_attention() for every query i and key j, (L, L): clip(j - i, -R, R) + R."""
    tokens = np.arange(integer("num_tokens", num_tokens, 1), dtype=np.int64)
    distance = integer("max_distance", max_distance, 0)
    index: npt.NDArray[np.int64] = np.clip(tokens - tokens[:, None], -distance, distance) + distance
    return index


def nezha_rows(max_distance: int, dim: int) -> Doubles:
    """NEZHA's fixed rows (2R + 1, dim) of relative distances, for keys and values alike (Wei et al. 2019)."""
    distance, width = integer("max_distance", max_distance, 0), integer("dim", dim, 1)
    out = np.empty((2 * distance + 1, width), np.float64)
    lib.call("vit_nezha_rows", distance, width, out)
    return out


def relative_attention(
    q: npt.ArrayLike,
    k: npt.ArrayLike,
    v: npt.ArrayLike,
    keys: npt.ArrayLike,
    values: npt.ArrayLike,
    *,
    scale: float | None = None,
    threads: int = 0,
) -> tuple[Doubles, Doubles]:
    """Attention of Shaw et al. 2018 with vectors of clipped distances, in float64: the output (B, H, L, d) and the probabilities
    (B, H, L, L).

    score_ij = scale q_i . (k_j + keys[r]), out_i = sum_j p_ij (v_j + values[r]), r = clip(j - i, -R, R) + R.

    Args:
        q, k, v: (B, H, L, d).
        keys, values: (2R + 1, d).
        scale: None = 1 / sqrt(d).

    Raises:
        ArgumentError: the shapes do not match.
    """
    arrays = [_doubles(name, x) for name, x in (("q", q), ("k", k), ("v", v))]
    tables = [_doubles("keys", keys), _doubles("values", values)]
    shape = arrays[0].shape
    if len(shape) != 4 or 0 in shape or any(x.shape != shape for x in arrays):
        shapes = ", ".join(str(x.shape) for x in arrays)
        raise ArgumentError(f"[vitcpp.position] q, k and v of shapes {shapes}; expected (B, H, L, d) three times")
    rows = tables[0].shape
    if len(rows) != 2 or rows[0] % 2 == 0 or rows[1] != shape[3] or tables[1].shape != rows:
        shapes = ", ".join(str(x.shape) for x in tables)
        raise ArgumentError(f"[vitcpp.position] keys and values of shapes {shapes}; expected (2R + 1, {shape[3]}) twice")
    if scale is not None and not number("scale", scale) > 0.0:
        raise ArgumentError(f"[vitcpp.position] scale={scale!r}; expected a positive number")
    options = lib.RelativeOptions(scale=scale or 0.0, threads=integer("threads", threads, 0))
    out, probabilities = np.empty(shape), np.empty((*shape[:3], shape[2]))
    lib.call(
        "vit_relative_attention",
        *arrays,
        (ctypes.c_size_t * 4)(*shape),
        *tables,
        rows[0] // 2,
        ctypes.byref(options),
        out,
        probabilities,
    )
    return out, probabilities
