"""Position encodings compared with their definitions in numpy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import vitcpp
from vitcpp import RopeTable
from vitcpp.position import RopeForm, conventions, frequencies, grid_coordinates, identify, sinusoidal

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
