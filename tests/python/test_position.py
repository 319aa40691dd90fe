"""Position encodings compared with their definitions in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vitcpp
from vitcpp import RopeTable
from vitcpp.position import (
    RopeForm,
    conventions,
    frequencies,
    grid_coordinates,
    identify,
    nezha_rows,
    relative_attention,
    relative_index,
    resample_table,
    sinusoidal,
)

RNG = np.random.default_rng(3)


def rotated(x: np.ndarray, cos: np.ndarray, sin: np.ndarray, halves: bool) -> np.ndarray:
    """x (..., d), factors (..., d / 2)."""
    half = x.shape[-1] // 2
    p, q = (x[..., :half], x[..., half:]) if halves else (x[..., ::2], x[..., 1::2])
    a, b = p * cos - q * sin, q * cos + p * sin
    return np.concatenate([a, b], -1) if halves else np.stack([a, b], -1).reshape(x.shape)


def test_frequencies() -> None:
    assert np.allclose(frequencies(4, a=100.0), 100.0 ** (-np.arange(4) / 4))
    assert np.allclose(frequencies(4, "exp_pi"), np.exp(-np.pi * np.arange(4) / 4))
    assert np.allclose(frequencies(3, "periods", 0.5, 90.0), 1 / np.geomspace(0.5, 90.0, 3))
    assert np.allclose(frequencies(5, "pixels", 16.0), np.pi * np.linspace(1, 8, 5))


def test_coordinates() -> None:
    t_x, t_y = grid_coordinates((2, 3))
    assert t_x.tolist() == [0, 1, 2, 0, 1, 2] and t_y.tolist() == [0, 0, 0, 1, 1, 1]
    t_x, t_y = grid_coordinates((2, 4), "centered")
    assert np.allclose(t_x[:4], [-0.75, -0.25, 0.25, 0.75]) and np.allclose(t_y[[0, 4]], [-0.5, 0.5])
    t_x, _ = grid_coordinates((2, 4), "scaled", offset=1.0, reference=(14, 14))
    assert np.allclose(t_x[:4], (np.arange(4) + 1) / 4 * 14)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("pairing", ["neighbors", "halves"])
@pytest.mark.parametrize("order", ["xy", "yx"])
def test_axial(dtype: type, pairing: str, order: str) -> None:
    f = frequencies(4, a=100.0)
    table = RopeTable.axial((3, 5), f, coordinates="centered", order=order, pairing=pairing, dtype=dtype)
    t_x, t_y = grid_coordinates((3, 5), "centered")
    axes = (t_x, t_y) if order == "xy" else (t_y, t_x)
    angles = np.concatenate([np.outer(axis, f) for axis in axes], 1)
    assert table.cos.dtype == dtype and table.cos.shape == (15, 8)
    assert np.array_equal(table.cos, np.cos(angles).astype(dtype))
    assert np.array_equal(table.sin, np.sin(angles).astype(dtype))
    x = RNG.standard_normal((2, 17, 3, 16)).astype(dtype)
    found = table.rotate(x, num_prefix_tokens=2)
    cos, sin = table.cos[:, None], table.sin[:, None]
    assert np.array_equal(found[:, :2], x[:, :2])
    assert np.allclose(found[:, 2:], rotated(x[:, 2:], cos, sin, pairing == "halves"), atol=1e-6)


def test_mixed_and_line() -> None:
    f = RNG.standard_normal((2, 3, 4, 8))
    table = RopeTable.mixed((2, 3), f, layer=1, dtype=np.float64)
    t_x, t_y = grid_coordinates((2, 3))
    angles = np.einsum("n,hk->hnk", t_x, f[0, 1]) + np.einsum("n,hk->hnk", t_y, f[1, 1])
    assert table.cos.shape == (4, 6, 8) and np.allclose(table.cos, np.cos(angles), atol=1e-12)
    line = RopeTable.line([0.0, 1.0, 5.5], frequencies(8), dtype=np.float64)
    assert np.allclose(line.sin, np.sin(np.outer([0.0, 1.0, 5.5], frequencies(8))), atol=1e-12)


def test_sinusoidal() -> None:
    rows = sinusoidal(7, 8, dtype=np.float64)
    angles = np.outer(np.arange(7), 10000.0 ** (-np.arange(4) / 4))
    assert np.allclose(rows[:, ::2], np.sin(angles)) and np.allclose(rows[:, 1::2], np.cos(angles))
    grid = sinusoidal((2, 3), 16)
    assert grid.shape == (6, 16) and np.array_equal(grid[0, :8], grid[3, :8])  # one column
    assert np.array_equal(grid[0, 8:], grid[2, 8:])  # one row
    assert sinusoidal((2, 3), 16, layout="quarters").shape == (6, 16)


def test_errors() -> None:
    for call in (
        lambda: frequencies(0),
        lambda: frequencies(4, "sawtooth"),  # type: ignore[arg-type]
        lambda: frequencies(4, a=-1.0),
        lambda: grid_coordinates((0, 3)),
        lambda: grid_coordinates((2, 2), "scaled"),
        lambda: RopeTable.axial((2, 2), []),
        lambda: RopeTable.axial((2, 2), [np.nan]),
        lambda: RopeTable.axial((2, 2), [1.0], dtype=np.float16),
        lambda: RopeTable.mixed((2, 2), np.zeros((2, 3, 4))),
        lambda: RopeTable.mixed((2, 2), np.zeros((2, 3, 4, 8)), layer=3),
        lambda: RopeTable.line([], [1.0]),
        lambda: RopeTable.axial((2, 2), [1.0]).rotate(np.zeros((1, 5, 4))),
        lambda: RopeTable.axial((2, 2), [1.0]).rotate(np.zeros((1, 1, 4, 1, 1, 4))),
        lambda: sinusoidal((2, 2), 6),
        lambda: sinusoidal(0, 4),
    ):
        with pytest.raises(vitcpp.Error):
            call()


def test_every_convention_by_name_has_a_form_and_is_identified(tmp_path: Path) -> None:
    for listed in conventions():
        name, is_line, has_time = listed["name"], listed["order"] == "x", listed["order"] == "tyx"
        grid, frames, d = (1, 40) if is_line else (6, 9), 2 if has_time else 1, 48
        form = RopeForm(listed["families"][0], grid, d, num_frames=frames, num_heads=3)
        assert np.array_equal(form.cos, np.cos(form.angles)) or np.abs(form.cos - np.cos(form.angles)).max() < 1e-15
        column, row = np.tile(np.arange(grid[1]), grid[0]), np.repeat(np.arange(grid[0]), grid[1])
        frame = np.repeat(np.arange(frames), len(row))
        where = np.stack([np.tile(column, frames), np.tile(row, frames), frame], -1)
        if name != "sam3-windows":  # there columns and rows are those in a window
            angles = where @ np.moveaxis(form.frequencies, -1, -2) + form.phases[..., None, :]
            assert np.abs(angles - form.angles).max() <= 1e-12 * max(1.0, np.abs(form.angles).max()), name
        x = RNG.standard_normal((2, 1 + len(where), 3, d))
        y = form.rotate(x, 1)
        assert np.array_equal(y[:, 0], x[:, 0])
        if name != "vjepa2":
            assert np.allclose((y**2).sum(-1), (x**2).sum(-1))
        if name in ("mlcd", "rope-vit-mixed"):
            continue  # no class token here; its start is a formula
        arrays = {"q": x, "q_rotated": y}
        if form.basis is not None:
            arrays["basis"] = form.basis
        found = identify(arrays, num_prefix_tokens=1)
        # Llama 4 differs by its class token, which is last; windows of 24 hold the grid.
        same = {"llama4": "perception-encoder", "sam3-windows": "sam2"}.get(name, name)
        assert found["convention"] == same and listed["families"][0] in found["families"]
        np.savez(tmp_path / "x.npz", **arrays)
        assert identify(tmp_path / "x.npz", num_prefix_tokens=1) == found
        half = identify({key: x.astype(np.float16) for key, x in arrays.items() if key != "basis"})
        if form.basis is None and name != "golden-gate-nd":  # whose angles are thousands
            assert half["convention"] == found["convention"], name


def test_identify_says_what_differs() -> None:
    form = RopeForm("qwen2-vl", (6, 9), 64)
    factors = {"freqs_cis": (form.cos + 1j * form.sin).astype(np.complex64)}
    found = identify(factors, against="Pixtral")
    assert found["convention"] == "qwen2-vl" and found["pairing"] is None and found["grid"] == [6, 9]
    assert found["differs"] == ["frequencies", "rule"]
    none = identify({"angles": RNG.standard_normal((54, 32))})
    assert none["convention"] is None and none["notes"]
    with pytest.raises(vitcpp.ArgumentError, match="dinov3"):
        RopeForm("dinov9", (2, 2), 16)
    with pytest.raises(vitcpp.FormatError):
        identify({"weight": np.ones((4, 8))})
    with pytest.raises(vitcpp.ArgumentError):
        identify({"angles": np.float64(1.0)})
    with pytest.raises(vitcpp.MismatchError):
        identify({"cos": np.ones((4, 8)), "sin": np.ones((4, 8))})


def test_tables_of_other_grids_are_scaled_and_resampled() -> None:
    f = frequencies(4)
    plain = RopeTable.axial((4, 6), f, dtype=np.float64)
    same = RopeTable.axial((4, 6), f, dtype=np.float64, trained=(4, 6), scaling="yarn")
    assert np.array_equal(same.cos, plain.cos) and same.logit_factor == 1.0
    linear = RopeTable.axial((4, 6), f, dtype=np.float64, trained=(2, 2), scaling="linear")
    t_x, t_y = grid_coordinates((4, 6))
    angles = np.concatenate([np.outer(t_x / 3, f), np.outer(t_y / 2, f)], 1)
    assert np.allclose(linear.cos, np.cos(angles), atol=1e-14)
    assert RopeTable.axial((4, 6), f, trained=(2, 2), scaling="yarn").logit_factor > 1.0
    counted = RopeTable.axial((4, 6), f, dtype=np.float64, trained=(2, 2))  # none: the rule of "index"
    assert np.array_equal(counted.sin, plain.sin)

    table = RNG.standard_normal((1 + 4, 3)).astype(np.float32)
    assert np.array_equal(resample_table(table, (2, 2), (2, 2), 1), table)
    larger = resample_table(table, (2, 2), (2, 6), 1, "tiled")
    assert np.array_equal(larger[1:].reshape(2, 6, 3), np.tile(table[1:].reshape(2, 2, 3), (1, 3, 1)))
    assert np.array_equal(larger[0], table[0])
    aligned = resample_table(table, (2, 2), (3, 2), 1, "bilinear_aligned")
    assert np.allclose(aligned[3], (table[1] + table[3]) / 2)


def test_relative_attention_is_its_formula() -> None:
    q, k, v = RNG.standard_normal((3, 2, 3, 5, 4))
    keys, values = RNG.standard_normal((2, 5, 4))
    out, probabilities = relative_attention(q, k, v, keys, values)
    index = relative_index(5, 2)
    assert index[0].tolist() == [2, 3, 4, 4, 4] and index[4, 0] == 0
    scores = (np.einsum("bhid,bhjd->bhij", q, k) + np.einsum("bhid,ijd->bhij", q, keys[index])) / 2.0
    expected = np.exp(scores - scores.max(-1, keepdims=True))
    expected /= expected.sum(-1, keepdims=True)
    assert np.allclose(probabilities, expected, atol=1e-14)
    weighed = np.einsum("bhij,bhjd->bhid", expected, v) + np.einsum("bhij,ijd->bhid", expected, values[index])
    assert np.allclose(out, weighed, atol=1e-14)
    rows = nezha_rows(2, 4)
    assert np.allclose(rows[:, 0], np.sin(np.arange(5))) and np.allclose(rows[:, 3], np.cos(np.arange(5) / 100))


def test_rotation_in_place() -> None:
    form = RopeForm("dinov3", (2, 3), 16)
    x = RNG.standard_normal((1, 6, 2, 16))
    expected = form.rotate(x)
    assert form.rotate(x, out=x) is x and np.array_equal(x, expected)
    table = RopeTable.axial((2, 3), frequencies(4))
    y = x.astype(np.float32)
    rotated = table.rotate(y)
    assert table.rotate(y, out=y) is y and np.array_equal(y, rotated)


def test_more_errors() -> None:
    ones, table = np.ones((1, 1, 2, 4)), RopeTable.axial((2, 2), [1.0])
    for call in (
        lambda: RopeTable.axial((2, 2), [1.0], scaling="ntk"),
        lambda: RopeTable.axial((2, 2), [1.0], trained=(0, 2)),
        lambda: RopeTable.axial((2, 2), [1.0], trained=(2, 2), scaling="sideways"),
        lambda: resample_table(np.ones((5, 3)), (2, 2), (3, 3)),
        lambda: resample_table(np.ones(4), (2, 2), (3, 3)),
        lambda: resample_table(np.ones((4, 3)), (2, 2), (0, 3)),
        lambda: resample_table(np.ones((4, 3)), (2, 2), (3, 3), resampling="cubic"),  # type: ignore[arg-type]
        lambda: resample_table(np.ones((4, 3)), (2, 2), (3, 3), -1),
        lambda: relative_attention(ones, ones, ones, np.ones((2, 4)), np.ones((2, 4))),
        lambda: relative_attention(ones, ones, ones[0], np.ones((3, 4)), np.ones((3, 4))),
        lambda: relative_attention(ones, ones, ones, np.ones((3, 4)), np.ones((3, 4)), scale=np.nan),
        lambda: relative_attention(ones, ones, ones, np.ones((3, 4)), np.ones((3, 4)), threads=-1),
        lambda: relative_index(0, 2),
        lambda: relative_index(2, -1),
        lambda: nezha_rows(-1, 4),
        lambda: nezha_rows(1, 3),
        lambda: table.rotate(np.zeros((1, 4, 4)), out=np.zeros((1, 4, 4))),
        lambda: table.rotate(np.zeros((1, 4, 4)), out=np.zeros((1, 5, 4), np.float32)),
        lambda: table.rotate(np.zeros((1, 4, 4)), out=[]),  # type: ignore[arg-type]
    ):
        with pytest.raises(vitcpp.ArgumentError):
            call()
