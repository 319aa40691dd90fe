"""Embeddings by Ray Data, on one machine or many: `pip install vitcpp[ray]`.

    images = ray.data.read_binary_files("photos/", include_paths=True)
    rows = images.map_batches(
        vitcpp.ray.Embedder, fn_constructor_kwargs={"model": "dinov2/"}, batch_format="pyarrow", batch_size=64,
        num_cpus=1, concurrency=8)
    rows.write_parquet("embeddings/")
"""

from __future__ import annotations

import os
from typing import Any, Literal

import numpy as np

from ._columns import embed
from ._errors import ArgumentError
from ._model import Model

__all__ = ["Embedder"]

_COLUMNS = ("bytes", "image", "path")  # as Ray's readers call them


class Embedder:
    """A class for `Dataset.map_batches`. Every actor loads the weights once and keeps to the CPUs that it was given.

    Args:
        model: Folder or file of a checkpoint, on every machine under this path.
        column: What holds the images: bytes of files, paths, or uint8 pixels; default the first of bytes, image, path.
        precision: As in `vitcpp.load`.
        threads: Default: the CPUs of the actor (`num_cpus`), at least 1.
        normalize: Divide vectors by their length.
        drop: Leave the column of the images out of the result.
        **options: As in `vitcpp.load`.

    A batch (Arrow table or dict of numpy arrays) comes back with two columns more: `embedding`, a fixed-size list of
    float32 (in a dict an array (n, E)), and `error`, why an image has none (its vector is NaN), else null.
    """

    def __init__(
        self,
        model: str | os.PathLike[str],
        column: str | None = None,
        precision: Literal["float32", "bfloat16", "int8"] = "float32",
        threads: int | None = None,
        normalize: bool = False,
        drop: bool = True,
        **options: Any,
    ) -> None:
        self._model = Model(model, precision, _cpus() if threads is None else threads, **options)
        self._column, self._normalize, self._drop = column, normalize, drop

    def __call__(self, batch: Any) -> Any:
        return self._with_dict(batch) if isinstance(batch, dict) else self._with_table(batch)

    def _column_of(self, names: list[str]) -> str:
        for name in [self._column] if self._column else _COLUMNS:
            if name in names:
                return name
        raise ArgumentError(f"[vitcpp.ray] no column {self._column or ' or '.join(_COLUMNS)}; there are {', '.join(names)}")

    def _with_dict(self, batch: dict[str, Any]) -> dict[str, Any]:
        name = self._column_of(list(batch))
        vectors, errors = embed(self._model, batch[name], self._normalize)
        kept = {other: values for other, values in batch.items() if other != name or not self._drop}
        return {**kept, "embedding": vectors, "error": np.array(errors, object)}

    def _with_table(self, batch: Any) -> Any:
        import pyarrow as pa

        name = self._column_of(batch.column_names)
        vectors, errors = embed(self._model, _values(batch.column(name)), self._normalize)
        lists = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), vectors.shape[1])
        kept = batch.drop([name]) if self._drop else batch
        return kept.append_column("embedding", lists).append_column("error", pa.array(errors, pa.string()))


def _values(column: Any) -> Any:
    """A column of an Arrow table as Python objects; pixels as arrays."""
    if hasattr(column.type, "to_pandas_dtype") and column.type.__class__.__name__.startswith("ArrowTensor"):
        return [image for chunk in column.chunks for image in chunk.to_numpy(zero_copy_only=False)]
    if column.type.__class__.__name__.startswith("ArrowVariableShapedTensor"):
        return [image for chunk in column.chunks for image in chunk.to_numpy(zero_copy_only=False)]
    return column.to_pylist()


def _cpus() -> int:
    """The CPUs that Ray gave to this actor."""
    import ray

    if not ray.is_initialized():
        return 1
    context: Any = ray.get_runtime_context()
    return max(1, int(context.get_assigned_resources().get("CPU", 1)))
