"""Embeds a folder of images with Spark into a folder of Parquet files.

    python embed_spark.py MODEL IMAGES OUTPUT [--master local[2]]

With `--master spark://...` or `yarn` the same program uses a cluster; MODEL and IMAGES must be readable on each machine,
under one path.
"""

from __future__ import annotations

import argparse
import os
import sys

from pyspark.sql import SparkSession

import vitcpp.spark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("images")
    parser.add_argument("output")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers of this machine see the same packages
    builder = SparkSession.builder.master(options.master).appName("vitcpp")
    # images are small: by default Spark counts 4 MiB for the opening of each, and makes a task of a few dozen
    spark = builder.config("spark.sql.files.openCostInBytes", 1 << 16).getOrCreate()
    images = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(options.images)
    embed = vitcpp.spark.embed_udf(options.model)
    results = images.select("path", embed("content").alias("result")).select("path", "result.*")
    results.write.mode("overwrite").parquet(options.output)
    spark.stop()


if __name__ == "__main__":
    main()
