#!/usr/bin/env python3
"""Runs the libFuzzer programs of a build in turns, for a given time, and counts.

    tests/fuzz/campaign.py BUILD WORK --minutes 60 [--processes 2] [--turn 60] [--targets jpeg png ...]

WORK keeps a corpus for each target, what was found (findings/) and counts.json, to which later runs add. A target
starts from tests/fuzz/corpus/TARGET, with tests/fuzz/dictionaries/TARGET.dict where there is one.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent

# Longest inputs: short ones reach the cases of parsers, and run ten times as fast.
MAX_LENGTH = {"decode": 4096, "jpeg": 2048, "png": 2048, "tiff": 4096, "webp": 2048, "bmp": 1024, "ico": 2048, "pnm": 256,
              "gif": 1024, "jpeg2000": 4096, "codestream": 2048, "avif": 4096, "heif": 4096, "metadata": 256,
              "json": 256, "safetensors": 512, "safetensors_header": 384, "pickle": 1536, "pickle_program": 512, "npz": 1024,
              "tokenizer_json": 2048, "sentencepiece": 1024, "vocabulary": 256, "merges": 256, "clean": 128,
              "tar": 4096, "npy": 256, "labels": 128, "paths": 64, "texts": 128, "rope_scaling": 64, "dense_config": 2048, "dense_head": 4096, "truth_map": 512, "tensor_names": 16384}
# What several targets share.
DICTIONARY = {"safetensors_header": "safetensors", "shards": "json", "head": "safetensors", "head_facts": "head", "bank": "safetensors", "bank_facts": "json",
              "class_vectors": "safetensors", "timm_config": "configs", "hf_config": "configs",
              "open_clip_config": "configs", "model_folder": "configs", "tensor_names": "configs", "timm_preprocess": "configs",
              "hf_preprocess": "configs", "layout": "configs", "dense_config": "configs", "dense_head": "safetensors", "truth_map": "npy", "jpeg2000": "codestream", "pickle": "pickle_program",
              "tokenizer_folder": "tokenizer_json", "avif": "boxes", "ico": "bmp", "heif": "boxes", "index_facts": "json",
              "index_files": "json", "index_partial": "json", "page_index": "json", "page_index_partial": "json", "jsonl_partial": "json", "run_facts": "json", "texts": "json"}


class Campaign:
    def __init__(self, arguments):
        self.build = arguments.build.resolve()
        self.work = arguments.work.resolve()
        self.turn = arguments.turn
        self.end = time.monotonic() + 60 * arguments.minutes
        self.lock = threading.Lock()
        self.counts_path = self.work / "counts.json"
        self.counts = json.loads(self.counts_path.read_text()) if self.counts_path.exists() else {}
        for folder in ("findings", "empty"):
            (self.work / folder).mkdir(parents=True, exist_ok=True)

    def targets(self):
        return sorted(path.name.removeprefix("fuzz_") for path in self.build.glob("fuzz_*")
                      if os.access(path, os.X_OK) and path.is_file())

    def run(self, target):
        left = self.end - time.monotonic()
        if left < 5:
            return
        corpus = self.work / "corpus" / target
        if not corpus.exists():
            corpus.mkdir(parents=True)
            subprocess.run([self.build / f"fuzz_{target}", "--write-seeds", corpus], check=True)
        command = [self.build / f"fuzz_{target}", f"-max_total_time={int(min(self.turn, left))}", "-timeout=20",
                   "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-print_final_stats=1", "-use_value_profile=0",
                   f"-max_len={MAX_LENGTH.get(target, 1024)}", f"-artifact_prefix={self.work}/findings/{target}-"]
        dictionary = HERE / "dictionaries" / f"{DICTIONARY.get(target, target)}.dict"
        if dictionary.exists():
            command.append(f"-dict={dictionary}")
        command.append(corpus)
        seeds = HERE / "corpus" / target
        if seeds.is_dir():
            command.append(seeds)
        started = time.monotonic()
        # A folder without files: a target may take a name of its input for one.
        result = subprocess.run(command, cwd=self.work / "empty", capture_output=True, text=True, errors="replace",
                                check=False)
        output = result.stdout + result.stderr
        executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
        # A run that ends in a finding prints no statistics; its last line with a number is close to them.
        lines = re.findall(r"^#(\d+)\s", output, re.MULTILINE)
        number = int(executed.group(1)) if executed else int(lines[-1]) if lines else 0
        coverage = re.findall(r"cov: (\d+)", output)
        with self.lock:
            count = self.counts.setdefault(target, {"executions": 0, "seconds": 0, "findings": 0})
            count["executions"] += number
            count["seconds"] = round(count["seconds"] + time.monotonic() - started, 1)
            count["findings"] += int(result.returncode != 0)
            count["coverage"] = int(coverage[-1]) if coverage else 0
            self.counts_path.write_text(json.dumps(self.counts, indent=1, sort_keys=True))
            print(f"{time.strftime('%H:%M:%S')} {target}: {number} executions, coverage {count['coverage']}, "
                  f"status {result.returncode}", flush=True)
        if result.returncode != 0:
            (self.work / "findings" / f"{target}.{int(time.time())}.log").write_text(output[-20000:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path, help="folder of the programs, build/fuzz/tests")
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--turn", type=float, default=60, help="seconds that a target runs at a time")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--targets", nargs="*")
    arguments = parser.parse_args()
    campaign = Campaign(arguments)
    targets = arguments.targets or campaign.targets()
    with concurrent.futures.ThreadPoolExecutor(arguments.processes) as pool:
        while time.monotonic() < campaign.end:
            list(pool.map(campaign.run, targets))


if __name__ == "__main__":
    main()
