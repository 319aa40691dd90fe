"""Embeds a folder of images with Ray Data into a folder of Parquet files.

    python embed_ray.py MODEL IMAGES OUTPUT [--workers 2] [--threads 1] [--format binary|paths|parquet|tar]

With `ray start --head` on one machine and `ray start --address=...` on others, the same program uses them all; MODEL and
IMAGES must be readable on each, under one path. A run that was interrupted goes on where Ray Data's checkpoint ends.
"""

from __future__ import annotations

import argparse
import os
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import ray
from ray.data.datasource import FileBasedDatasource

import vitcpp.ray


# The files that `vit embed` takes for images, in any case.
IMAGES = (".jpg", ".jpeg", ".jpe", ".jfif", ".mpo", ".jp2", ".j2k", ".j2c", ".jpf", ".jpx", ".png", ".apng", ".bmp", ".dib",
          ".tif", ".tiff", ".webp", ".ppm", ".pgm", ".pbm", ".pnm", ".pfm", ".gif", ".avif", ".avifs", ".heic", ".heif",
          ".hif", ".ico")


def is_image(name: str) -> bool:
    return name.lower().endswith(IMAGES) and not Path(name).name.startswith(".")


class Shards(FileBasedDatasource):  # type: ignore[misc]
    """Rows of the images in tar files, named as `vit embed` names them. Ray's reader of WebDataset gives no Arrow tables,
    which checkpoints need, and keys that two shards may share."""

    def _read_stream(self, file: Any, path: str) -> Iterator[pa.Table]:
        others = 0
        with tarfile.open(fileobj=file, mode="r|") as archive:
            for member in archive:
                data = archive.extractfile(member) if is_image(member.name) else None
                if data:
                    yield pa.table({"path": [f"{path}/{member.name}"], "bytes": [data.read()]})
                elif member.isfile():
                    others += 1
        if others:
            print(f"{path}: {others} members are skipped, not images", file=sys.stderr)


def read(images: str, kind: str, blocks: int) -> Any:
    """Rows in so many blocks: what workers share out, and what a checkpoint counts."""
    if kind == "parquet":  # columns path and bytes
        return ray.data.read_parquet(images, override_num_blocks=blocks)
    if kind == "tar":  # shards of WebDataset
        return ray.data.read_datasource(Shards(images, file_extensions=["tar"]), override_num_blocks=blocks)
    if kind == "paths":
        files = [str(path) for path in sorted(Path(images).rglob("*")) if path.is_file()]
        paths = [path for path in files if is_image(path)]
        if len(paths) < len(files):
            print(f"{images}: {len(files) - len(paths)} files are skipped, not images", file=sys.stderr)
        return ray.data.from_items([{"path": path} for path in paths], override_num_blocks=blocks)
    return ray.data.read_binary_files(images, include_paths=True, override_num_blocks=blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("images")
    parser.add_argument("output")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--format", choices=("binary", "paths", "parquet", "tar"), default="binary")
    parser.add_argument("--checkpoint", help="folder: rows that are in it are not computed again")
    options = parser.parse_args()
    if options.checkpoint and options.format == "paths":  # Ray would compute and write them a second time
        parser.error("--checkpoint: Ray leaves out only rows that it reads from files; use --format binary")

    if "RAY_ADDRESS" not in os.environ:
        # No cluster: this machine, with a CPU in addition to the workers for what reads and writes, and one that the filter of a
        # checkpoint keeps as long as the run lasts; without it a run that goes on would wait for ever.
        others = 2 if options.checkpoint else 1
        ray.init(num_cpus=options.workers * options.threads + others)
    if options.checkpoint:
        from ray.data.checkpoint import CheckpointConfig

        context = ray.data.DataContext.get_current()
        context.checkpoint_config = CheckpointConfig(id_column="path", checkpoint_path=options.checkpoint)
    images = read(options.images, options.format, 8 * options.workers)
    # Some readers of Ray make one block of many small files, which one worker would get.
    rows = images.repartition(target_num_rows_per_block=256).map_batches(
        vitcpp.ray.Embedder,
        fn_constructor_kwargs={"model": options.model, "drop": options.format != "paths"},  # the path stays
        batch_format="pyarrow",
        batch_size=64,
        num_cpus=options.threads,
        compute=ray.data.ActorPoolStrategy(size=options.workers),
        max_restarts=-1,
    )
    rows.write_parquet(options.output)


if __name__ == "__main__":
    main()
