"""Columns of tables and data frames: each row is an image or an error by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import DATA, IMAGES

import vitcpp
from vitcpp import _columns, ray

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 5, 3), np.uint8)


def rows_of(array: np.ndarray, leaf: Callable[[np.ndarray], Any] = lambda row: row, dimensions: int = 1) -> np.ndarray:
    """Arrays of arrays, as pandas keeps lists of lists."""
    out = np.empty(len(array), object)
    for index, part in enumerate(array):
        out[index] = leaf(part) if part.ndim <= dimensions else rows_of(part, leaf, dimensions)
    return out


def listed(array: np.ndarray) -> list[Any]:
    return [listed(part) if part.ndim > 1 else part for part in array]


FORMS: dict[str, Any] = {
    "array": PIXELS,
    "arrays of arrays": rows_of(PIXELS),
    "arrays of arrays of lists": rows_of(PIXELS, np.ndarray.tolist),
    "arrays of rows": rows_of(PIXELS, dimensions=2),
    "array of numbers": PIXELS.astype(object),
    "lists": PIXELS.tolist(),
    "lists of arrays": listed(PIXELS),
    "tuples": tuple(map(tuple, PIXELS.tolist())),
}


@pytest.mark.parametrize("name", FORMS)
def test_nested_pixels(model: vitcpp.Model, name: str) -> None:
    expected = model.embed([PIXELS])
    vectors, errors = _columns.embed(model, [FORMS[name]], False)
    assert errors == [None] and vectors.tobytes() == expected.tobytes()


SHARES = PIXELS / 255.0
REFUSED: dict[str, tuple[Any, str]] = {
    "shares": (rows_of(SHARES), "dtype float64"),
    "shares in rows": (rows_of(SHARES, dimensions=2), "dtype float64"),
    "shares as lists": (SHARES.tolist(), "dtype float64"),
    "float32": (rows_of(SHARES.astype(np.float32)), "dtype float32"),
    "int64": (rows_of(PIXELS.astype(np.int64)), "dtype int64"),
    "bool": (rows_of(PIXELS > 100), "dtype bool"),
    "too large": ((PIXELS.astype(int) + 256).tolist(), "dtype int64"),
    "negative": ((-PIXELS.astype(int)).tolist(), "dtype int64"),
    "mixed": ([PIXELS[0].tolist(), SHARES[1].tolist()], "dtype float64"),
    "ragged": ([PIXELS[0].tolist(), PIXELS[1][:2].tolist()], "rows of pixels of shapes (2, 3), (5, 3)"),
    "empty rows": ([[], []], ""),
    "null": ([[[1, None, 3]] * 2] * 2, "an object"),
    "deep": ([[[[[[1]]]]]], "lists"),
    "texts": (rows_of(PIXELS.astype(str)), "an object"),
    "missing": (float("nan"), "no image"),
    "none": (None, "no image"),
    "row": ({"bytes": None, "path": None}, "no image"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_rows_that_are_refused(model: vitcpp.Model, name: str) -> None:
    wrong, text = REFUSED[name]
    vectors, errors = _columns.embed(model, [IMAGES[0], wrong, rows_of(PIXELS)], False)
    assert [error is None for error in errors] == [True, False, True] and text in str(errors[1])
    assert np.isnan(vectors[1]).all()
    assert vectors[[0, 2]].tobytes() == model.embed([IMAGES[0], PIXELS]).tobytes()


def test_rows_with_members(model: vitcpp.Model) -> None:
    data = IMAGES[0].read_bytes()
    rows: list[Any] = [
        {"bytes": data, "path": "/no.jpg"},
        {"bytes": None, "path": str(IMAGES[0])},
        {"bytes": float("nan"), "path": str(IMAGES[0])},
        {"bytes": b"", "path": str(IMAGES[0])},
        {"bytes": PIXELS},
    ]
    vectors, errors = _columns.embed(model, rows, False)
    assert errors == [None] * 5
    assert vectors.tobytes() == model.embed([data] * 4 + [PIXELS]).tobytes()


def test_batches_of_ray(model: vitcpp.Model) -> None:
    embedder = ray.Embedder(DATA / "model", threads=1)
    column = np.empty(3, object)
    column[:] = [rows_of(PIXELS), rows_of(SHARES), str(IMAGES[0])]
    batch = embedder({"image": column, "id": np.arange(3)})
    assert sorted(batch) == ["embedding", "error", "id"] and "float64" in batch["error"][1]
    assert batch["embedding"][[0, 2]].tobytes() == model.embed([PIXELS, IMAGES[0]]).tobytes()


def test_tables_of_arrow(model: vitcpp.Model) -> None:
    pa = pytest.importorskip("pyarrow")
    embedder = ray.Embedder(DATA / "model", threads=1)
    expected = model.embed([PIXELS]).tobytes()
    for kind in (pa.list_(pa.list_(pa.list_(pa.uint8()))), pa.list_(pa.list_(pa.list_(pa.uint8(), 3)))):
        table = pa.table({"image": pa.array([PIXELS.tolist(), None], kind)})
        for batch in (embedder(table).to_pydict(), embedder({"image": table.to_pandas()["image"].to_numpy()})):
            assert batch["error"][0] is None and batch["error"][1] == "no image"
            assert np.asarray(batch["embedding"][0], np.float32).tobytes() == expected
    shares = pa.table({"image": pa.array([SHARES.tolist()])})
    assert "float64" in embedder(shares).to_pydict()["error"][0]


def test_clips_in_columns() -> None:
    model = vitcpp.load(DATA / "model", threads=1)
    paths = np.empty(2, object)
    paths[:] = [str(IMAGES[0]), str(IMAGES[1])]
    frames = np.empty(2, object)
    frames[:] = [PIXELS, PIXELS[:4]]
    rows: list[Any] = [paths, list(paths), frames, [{"path": str(IMAGES[0])}, {"bytes": IMAGES[1].read_bytes()}]]
    for row in rows:  # a list of images, to a model that takes no clips
        assert isinstance(_columns.image_of(row), list) and len(_columns.image_of(row)) == 2
        with pytest.raises(vitcpp.ArgumentError, match="clip_frames"):
            model.embed([_columns.image_of(row)])
