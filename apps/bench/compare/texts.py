"""Texts per second of `vit embed --text-file` and of the libraries that publish text towers, in one run.

    python apps/bench/compare/texts.py --vit build/release/vit --work ~/compare-texts --model FOLDER
    python apps/bench/compare/texts.py --vit build/release/vit --work ~/compare-texts --random clip --tokenizer FOLDER

FOLDER holds a CLIP or SigLIP of transformers, as downloaded. With --random, weights are drawn for a model of the size of
CLIP B/32 or SigLIP B/16 and written to WORK with the tokenizer of another folder. Tokens and vectors are compared
first. Rounds alternate; medians count. vit's time is that of the whole program less that of a run on one text. The others are
given their token ids and load before the clock starts. `padded` is transformers with each batch as long as its longest text,
`full` with all places of the context, `onnx` ONNX Runtime with the same input as `full`.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

os.environ["TOKENIZERS_PARALLELISM"] = "false"
# tokenizers.py next to this file has the name of a package that transformers needs.
sys.path = [p for p in sys.path if Path(p or ".").resolve() != Path(__file__).resolve().parent]

import torch  # noqa: E402
import transformers  # noqa: E402

BATCH = 32
THINGS = "cat dog ship truck horse frog deer airplane car bird house tree mountain guitar bicycle teapot".split()
KINDS = "small old red blue wooden striped running sleeping broken shiny".split()
PLACES = ["on a beach", "at night", "in the snow", "in a garden", "under a bridge", "on a table near a window", ""]


def prompts(count):
    """All different, 6 to 16 words."""
    for i in range(count):
        words = ["a photo of", KINDS[i % 10], KINDS[i // 10 % 10], THINGS[i // 7 % 16], PLACES[i % 7], f"number {i}"]
        yield "a " * (i % 3 == 0) + " ".join(word for word in words if word)


def random_folder(kind, tokenizer, folder):
    """A dual tower with drawn weights; the image tower is as small as it may be, since it computes nothing here."""
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(tokenizer))
    torch.manual_seed(0)
    image = {"hidden_size": 64, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 1,
             "image_size": 32, "patch_size": 32}
    if kind == "clip":
        text = {"vocab_size": vocabulary, "eos_token_id": vocabulary - 1, "bos_token_id": vocabulary - 2}
        config = transformers.CLIPConfig(text_config=text, vision_config=image)
        model = transformers.CLIPModel(config)
        processor = transformers.CLIPImageProcessor()
    else:
        text = {"vocab_size": vocabulary, "hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12,
                "projection_size": 64}
        config = transformers.SiglipConfig(text_config=text, vision_config=image)
        model = transformers.SiglipModel(config)
        processor = transformers.SiglipImageProcessor()
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    for file in Path(tokenizer).iterdir():
        if "token" in file.name or file.name in ("vocab.json", "merges.txt", "spiece.model"):
            shutil.copy(file, folder)


class Reference:
    """The text tower of transformers, and its export to ONNX Runtime."""

    def __init__(self, options, folder):
        torch.set_num_threads(options.threads)
        self.model = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        self.places = self.model.config.text_config.max_position_embeddings
        self.is_clip = self.model.config.model_type == "clip"

    def tokens(self, texts, full):
        lengths = {"padding": "max_length", "max_length": self.places} if full else {"padding": True}
        return [self.tokenizer(texts[i:i + BATCH], truncation=True, return_tensors="pt", **lengths)
                for i in range(0, len(texts), BATCH)]

    @torch.inference_mode()
    def encode(self, batches):
        rows = []
        for batch in batches:
            mask = {"attention_mask": batch["attention_mask"]} if self.is_clip else {}
            out = self.model.get_text_features(input_ids=batch["input_ids"], **mask)
            rows.append(getattr(out, "pooler_output", out).numpy())
        return np.concatenate(rows)

    def export(self, file, threads):
        import onnxruntime

        class Tower(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, input_ids):
                out = self.model.get_text_features(input_ids=input_ids)
                return getattr(out, "pooler_output", out)

        ids = torch.randint(3, 90, (BATCH, self.places))
        batch = torch.export.Dim("batch")
        torch.onnx.export(Tower(self.model).eval(), (ids,), str(file), input_names=["input_ids"], output_names=["text"],
                          dynamic_shapes={"input_ids": {0: batch}}, dynamo=True, verbose=False)
        settings = onnxruntime.SessionOptions()
        settings.intra_op_num_threads = threads
        session = onnxruntime.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
        return lambda batches: np.concatenate([session.run(None, {"input_ids": b["input_ids"].numpy()})[0]
                                               for b in batches])


def run_vit(options, folder, texts, output):
    """Seconds of the program; its vectors are in output."""
    command = [options.vit, "embed", "--model", folder, "--text-file", texts, "--output", output,
               "--threads", str(options.threads), "--quiet"]
    start = time.perf_counter()
    subprocess.run([str(part) for part in command], check=True)
    return time.perf_counter() - start


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def check_equal(name, vectors, expected):
    apart = np.abs(vectors - expected).max() / np.abs(expected).max()
    print(f"{name}: vectors at most {apart:.1e} of the largest value apart", flush=True)
    if not apart < 1e-4:
        raise SystemExit(f"{name} gives other vectors")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--random", choices=["clip", "siglip"])
    parser.add_argument("--tokenizer", type=Path)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    folder = options.model or options.work / options.random
    if not folder.exists():
        random_folder(options.random, options.tokenizer, folder)
    texts = list(prompts(options.texts))
    many, one, output = options.work / "prompts.txt", options.work / "one.txt", options.work / "texts.npy"
    many.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
    one.write_text(f"{texts[0]}\n", encoding="utf-8")

    reference = Reference(options, folder)
    full = reference.tokens(texts, full=True)
    onnx = reference.export(options.work / f"{folder.name}.onnx", options.threads)
    calls = {"full": lambda: reference.encode(full), "onnx": lambda: onnx(full)}
    if reference.is_clip:  # SigLIP is trained with all places
        padded = reference.tokens(texts, full=False)
        calls["padded"] = lambda: reference.encode(padded)
    run_vit(options, folder, many, output)
    expected = np.load(output)
    for name, call in calls.items():
        check_equal(name, call(), expected)

    rounds = []
    for _ in range(options.rounds):
        line = {"vit": run_vit(options, folder, many, output) - run_vit(options, folder, one, output)}
        line.update({name: seconds_of(call) for name, call in calls.items()})
        rounds.append(line)
        print("  ".join(f"{name} {options.texts / s:.0f}/s" for name, s in line.items()), flush=True)
    table = {name: {"texts_per_second": options.texts / statistics.median(r[name] for r in rounds),
                    "times_slower_than_vit": statistics.median(r[name] / r["vit"] for r in rounds)} for name in rounds[0]}
    print(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
