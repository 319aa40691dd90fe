"""Embeds a folder of images with Spark into a folder of Parquet files.

    python embed_spark.py MODEL IMAGES OUTPUT [--master local[2]]

With `--master spark://...` or `yarn` the same program uses a cluster; MODEL and IMAGES must be readable on each machine,
under one path.
"""

from __future__ import annotations

import argparse

from pyspark.sql import SparkSession

import vitcpp.spark


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("images")
    parser.add_argument("output")
    parser.add_argument("--master", default="local[2]")
    options = parser.parse_args()

    spark = SparkSession.builder.master(options.master).appName("vitcpp").getOrCreate()
    images = spark.read.format("binaryFile").option("recursiveFileLookup", "true").load(options.images)
    embed = vitcpp.spark.embed_udf(options.model)
    results = images.select("path", embed("content").alias("result")).select("path", "result.*")
    results.write.mode("overwrite").parquet(options.output)
    spark.stop()


if __name__ == "__main__":
    main()
