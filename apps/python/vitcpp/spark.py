"""Embeddings by Spark, on one machine or many: `pip install vitcpp[spark]`.

    images = spark.read.format("binaryFile").load("photos/")
    embed = vitcpp.spark.embed_udf("dinov2/")
    images.select("path", embed("content").alias("result")).select("path", "result.*").write.parquet("embeddings/")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

__all__ = ["embed_udf"]


def embed_udf(
    model: str | os.PathLike[str],
    precision: Literal["float32", "bfloat16", "int8"] = "float32",
    threads: int = 1,
    normalize: bool = False,
    batch_size: int = 64,
    **options: Any,
) -> Any:
    """A function of a column (binary content of image files, or paths) for `DataFrame.select`.

    Every Python worker loads the weights once, with Spark's `predict_batch_udf`. The result is a struct of `embedding`, an
    array of E floats, and `error`, why an image has none (its vector is NaN), else null.

    Args:
        model: Folder or file of a checkpoint, on every machine under this path.
        precision: As in `vitcpp.load`.
        threads: Of a task; leave it at `spark.task.cpus`, which is 1 by default.
        normalize: Divide vectors by their length.
        batch_size: Images for each call.
        **options: As in `vitcpp.load`.
    """
    from pyspark.ml.functions import predict_batch_udf
    from pyspark.sql.types import ArrayType, FloatType, StringType, StructField, StructType

    path = os.path.abspath(os.fspath(model))  # workers have a folder of their own

    def make_predict() -> Callable[[Any], dict[str, Any]]:
        from vitcpp._columns import embed
        from vitcpp._model import Model

        loaded = Model(path, precision, threads, **options)

        def predict(values: Any) -> dict[str, Any]:
            vectors, errors = embed(loaded, values, normalize)
            return {"embedding": vectors, "error": np.array(errors, object)}

        return predict

    result = StructType([StructField("embedding", ArrayType(FloatType())), StructField("error", StringType())])
    return predict_batch_udf(make_predict, return_type=result, batch_size=batch_size)
