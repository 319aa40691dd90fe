"""Columns of Arrow tables and data frames as images, for the engines that run many machines."""

from __future__ import annotations

import math
import os
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._errors import ArgumentError, Error
from ._inputs import as_array
from ._model import Model

_MAX_DEPTH = 4  # frames, rows, columns, channels
_NO_ROWS = (str, bytes, bytearray, memoryview, os.PathLike, dict)


def _is_missing(value: Any) -> bool:
    """None, or what pandas has in its place."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in ("NAType", "NaTType")


def image_of(value: Any) -> Any:
    """The image of a row: a path, bytes of a file, pixels, or a row with a member `bytes` or `path`; None if it has none.

    Raises:
        ArgumentError: rows of pixels that make no array.
    """
    if isinstance(value, dict):
        data = value.get("bytes")
        has_data = not _is_missing(data) and not (isinstance(data, (bytes, bytearray)) and not data)
        return image_of(data if has_data else value.get("path"))
    if isinstance(value, (list, tuple)) or (isinstance(value, np.ndarray) and value.dtype == object):
        items = list(value)
        if items and all(_is_row(item, isinstance(value, np.ndarray)) for item in items):
            return _stacked(items, 1)
        return [image_of(item) for item in items]  # the frames of a clip
    return None if _is_missing(value) else value


def _is_row(item: Any, in_array: bool) -> bool:
    """Whether an item of a sequence is a row of pixels, as pandas and Arrow keep them, and no image by itself."""
    if isinstance(item, np.ndarray):
        return item.ndim == 1 or (in_array and item.ndim < 3)
    return not isinstance(item, _NO_ROWS) and isinstance(item, (list, tuple)) and bool(item) and not isinstance(item[0], _NO_ROWS)


def _stacked(items: list[Any], depth: int) -> npt.NDArray[Any]:
    """Rows of rows as one array of the type that their numbers have. Python's whole numbers, which have none, are bytes if they
    fit."""
    if depth > _MAX_DEPTH:
        raise ArgumentError(f"[vitcpp] pixels in more than {_MAX_DEPTH} lists in each other")
    if all(type(item) is int for item in items):
        return np.array(items, np.uint8 if all(0 <= item <= 255 for item in items) else None)
    parts = [_stacked(list(item), depth + 1) if _has_parts(item) else as_array(item) for item in items]
    if len({part.shape for part in parts}) > 1:
        raise ArgumentError(f"[vitcpp] rows of pixels of shapes {', '.join(sorted({str(part.shape) for part in parts})[:4])}")
    return np.stack(parts)


def _has_parts(item: Any) -> bool:
    return (isinstance(item, (list, tuple)) or (isinstance(item, np.ndarray) and item.dtype == object and item.ndim > 0)) and len(item) > 0


def embed(model: Model, values: Any, normalize: bool) -> tuple[npt.NDArray[np.float32], list[Optional[str]]]:
    """Vectors (n, E) and errors of a column; rows without an image are errors."""
    found = np.full((len(values), model.embedding_dim), np.nan, np.float32)
    errors: list[Optional[str]] = ["no image"] * len(values)
    images: dict[int, Any] = {}
    for index, value in enumerate(values):
        try:
            image = image_of(value)
        except Error as error:
            errors[index] = str(error)
            continue
        if image is not None:
            images[index] = image
    vectors, failures = model.embed_or_errors(list(images.values()), normalize)
    for index, vector, failure in zip(images, vectors, failures):
        found[index], errors[index] = vector, failure
    return found, errors
