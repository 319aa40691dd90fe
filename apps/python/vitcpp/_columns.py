"""Columns of Arrow tables and data frames as images, for the engines that run many machines."""

from __future__ import annotations

from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._model import Model


def images_of(values: Any) -> list[Any]:
    """The images of a column: paths, bytes of files, pixels, or rows with a member `bytes` or `path`."""
    return [_image_of(value) for value in values]


def _image_of(value: Any) -> Any:
    if isinstance(value, dict):
        return value.get("bytes") or value.get("path")
    if isinstance(value, np.ndarray) and value.dtype == object:  # rows of rows, as pandas keeps them
        return np.array(value.tolist(), np.uint8)
    return value


def embed(model: Model, values: Any, normalize: bool) -> tuple[npt.NDArray[np.float32], list[Optional[str]]]:
    """Vectors (n, E) and errors of a column; rows without an image are errors."""
    images = images_of(values)
    found = np.full((len(images), model.embedding_dim), np.nan, np.float32)
    errors: list[Optional[str]] = ["no image" if image is None else None for image in images]
    present = [index for index, image in enumerate(images) if image is not None]
    vectors, failures = model.embed_or_errors([images[index] for index in present], normalize)
    for index, vector, failure in zip(present, vectors, failures):
        found[index], errors[index] = vector, failure
    return found, errors
