"""Compares vit with the library of each published checkpoint, on images of this project.

    apps/verify-published --list                      the checkpoints, with family, license and size
    apps/verify-published --small                     the small ones (1.2 GB of downloads)
    apps/verify-published --only dinov2               those whose name has this word
    apps/verify-published --folder NAME=FOLDER ...    a checkpoint that is there, NAME as in the list; nothing is downloaded

For each: are the preprocessed pixels equal, how far are tokens, logits, vectors of images and texts or depths from those of the
library in float32, and how long did both take. All of it is written to build/verify/report.json; the last line is to be sent.
"""

import argparse
import datetime
import json
import platform
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
from PIL import Image

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("checkpoints.json")
NUM_IMAGES = 20
# Of the largest value. Both sides round in float32: each is within 3e-6 of float64 for models of a few hundred megabytes, and
# errors grow with depth and outlier channels.
TOLERANCE = 3e-5
TEXTS = ["a photo of a cat", "a deer in a forest", "two airplanes", "the bow of a ship"]
FILES = ["*.json", "*.safetensors", "*.txt", "*.model"]


def run_vit(options, *words):
    start = time.perf_counter()
    done = subprocess.run([str(word) for word in (options.vit, *words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
    return done.stdout, time.perf_counter() - start


def arrays_of_vit(options, *words):
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "out.npz"
        _, seconds = run_vit(options, *words, "--quiet", "--output", file)
        with np.load(file) as arrays:
            return {name: arrays[name] for name in arrays.files if arrays[name].dtype == np.float32}, seconds


def numbers(tensor):
    return tensor.detach().to(torch.float32).numpy()


class Transformers:
    """A folder of transformers, by the classes that its configuration names."""

    def __init__(self, folder):
        import transformers
        config = transformers.AutoConfig.from_pretrained(folder)
        names = config.architectures or []
        self.processor = transformers.AutoImageProcessor.from_pretrained(folder)
        self.has_texts = hasattr(config, "text_config")
        self.has_classes = any(name.endswith(("ForImageClassification", "ForImageClassificationWithTeacher")) for name in names)
        self.has_depth = any(name.endswith("ForDepthEstimation") for name in names)
        kind = ("AutoModelForImageClassification" if self.has_classes else
                "AutoModelForDepthEstimation" if self.has_depth else "AutoModel")
        self.model = getattr(transformers, kind).from_pretrained(folder, dtype=torch.float32).eval()
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder) if self.has_texts else None

    def pixels(self, image):
        return numbers(self.processor(images=image, return_tensors="pt")["pixel_values"])

    def compute(self, pixels):
        if self.has_texts:
            found = self.model.get_image_features(pixel_values=pixels)
            return {"projected": numbers(getattr(found, "pooler_output", found))}
        if self.has_depth:
            return {"depth": numbers(self.model(pixel_values=pixels).predicted_depth)}
        found = self.model(pixel_values=pixels, output_hidden_states=self.has_classes)
        return {"logits": numbers(found.logits)} if self.has_classes else {"tokens": numbers(found.last_hidden_state)}

    def texts(self, texts):
        length = self.model.config.text_config.max_position_embeddings
        words = self.tokenizer(texts, padding="max_length", max_length=length, truncation=True, return_tensors="pt")
        found = self.model.get_text_features(**words)
        return numbers(getattr(found, "pooler_output", found))


class Timm:
    """A folder of timm: config.json and model.safetensors."""

    def __init__(self, folder):
        import timm
        self.model = timm.create_model(f"local-dir:{folder}", pretrained=True).eval()
        self.transform = timm.data.create_transform(**timm.data.resolve_model_data_config(self.model), is_training=False)
        self.has_texts = False
        self.has_classes = self.model.num_classes > 0

    def pixels(self, image):
        return numbers(self.transform(image)[None])

    def compute(self, pixels):
        found = self.model.forward_features(pixels)
        logits = {"logits": numbers(self.model.forward_head(found))} if self.has_classes else {}
        return {"tokens": numbers(found)} | logits


def error_of(found, expected):
    """Largest difference, of the largest value."""
    if found.shape != expected.shape and found.size == expected.size:
        found = found.reshape(expected.shape)
    if found.shape != expected.shape:
        raise RuntimeError(f"shapes differ: {found.shape} of vit, {expected.shape} of the library")
    return float(np.abs(found.astype(np.float64) - expected).max() / max(np.abs(expected).max(), 1e-30))


def verify(options, folder, library, files):
    """Facts about one checkpoint."""
    reference = (Transformers if library == "transformers" else Timm)(folder)
    images = [Image.open(file).convert("RGB") for file in files]
    start = time.perf_counter()
    pixels = [reference.pixels(image) for image in images]
    with torch.no_grad():
        expected = [reference.compute(torch.from_numpy(values)) for values in pixels]
    facts = {"seconds_library": time.perf_counter() - start, "errors": {}}
    features = list(expected[0])
    equal, found = 0, []
    for file, values in zip(files, pixels):
        with tempfile.TemporaryDirectory() as work:
            own = Path(work) / "pixels.npy"
            run_vit(options, "preprocess", "--quiet", "--model", folder, "--output", own, file)
            equal += np.array_equal(np.load(own), values)
            exact = Path(work) / "library.npy"
            np.save(exact, values)  # an error of pixels is no error of the model
            found.append(arrays_of_vit(options, "embed", "--model", folder, "--features", ",".join(features), exact)[0])
    seconds = run_vit(options, "embed", "--quiet", "--model", folder, "--features", ",".join(features), "--output",
                      options.work / "timed.npz", *files)[1]
    for name in features:
        facts["errors"][name] = max(error_of(ours[name], theirs[name]) for ours, theirs in zip(found, expected))
    if "logits" in features:
        facts["top1_equal"] = sum(int(ours["logits"].argmax() == theirs["logits"].argmax()) for ours, theirs in zip(found, expected))
    if reference.has_texts:
        with torch.no_grad():
            theirs = reference.texts(TEXTS)
        words = [word for text in TEXTS for word in ("--text", text)]
        ours = arrays_of_vit(options, "embed", "--model", folder, *words)[0]
        facts["errors"]["text"] = error_of(next(iter(ours.values())), theirs)
    facts |= {"images": len(files), "pixels_equal": equal, "seconds_vit": seconds}
    facts["agrees"] = equal == len(files) and max(facts["errors"].values()) <= TOLERANCE
    return facts


def download(entry):
    """The folder in the cache of Hugging Face, and the commit."""
    from huggingface_hub import snapshot_download
    folder = Path(snapshot_download(entry["repository"], revision=entry.get("revision"), allow_patterns=FILES))
    return folder, folder.name


def machine(options):
    facts = json.loads(run_vit(options, "info", "--json")[0])
    chosen = facts["kernels"]["chosen"]
    packages = {}
    for name in ("torch", "transformers", "timm", "pillow"):
        try:
            packages[name] = version(name)
        except Exception:  # a library that no checkpoint of this run needs
            packages[name] = None
    return {"vit": facts["version"], "processor": facts["cpu"]["name"], "kernels": chosen, "system": platform.platform(), "packages": packages}


def described(name, facts):
    if "failure" in facts:
        return f"{name}: FAILED: {facts['failure']}"
    errors = ", ".join(f"{feature} {error:.1e}" for feature, error in facts["errors"].items())
    top = f", top-1 {facts['top1_equal']} of {facts['images']}" if "top1_equal" in facts else ""
    return (f"{name}: {'agrees' if facts['agrees'] else 'DIFFERS'}: pixels {facts['pixels_equal']} of {facts['images']} equal, {errors}{top}, "
            f"{facts['seconds_vit']:.1f} s (library {facts['seconds_library']:.1f} s)")


def main():
    parser = argparse.ArgumentParser(prog="apps/verify-published", description=__doc__.split("\n")[0])
    parser.add_argument("--vit", type=Path, default=ROOT / "build/release/vit", help="the program (default: build/release/vit)")
    parser.add_argument("--small", action="store_true", help="only the small checkpoints")
    parser.add_argument("--only", default="", metavar="WORD", help="only checkpoints whose name has this word")
    parser.add_argument("--folder", action="append", default=[], metavar="NAME=FOLDER", help="a checkpoint that is there; repeatable")
    parser.add_argument("--work", type=Path, default=ROOT / "build/verify", help="place of report.json (default: build/verify)")
    parser.add_argument("--images", type=int, default=NUM_IMAGES, metavar="N", help=f"how many images (default: {NUM_IMAGES})")
    parser.add_argument("--list", action="store_true", help="print the checkpoints and end")
    options = parser.parse_args()
    entries = json.loads(LIST.read_text())
    if options.list:
        for e in entries:
            print(f"{e['repository']:55} {e['family']:22} {e['library']:13} {e['license']:28} {e['megabytes']:5} MB{'  small' if e.get('small') else ''}")
        return 0
    if not options.vit.exists():
        parser.error(f"there is no program {options.vit}; apps/quickstart builds it, --vit names another")
    known = {entry["repository"]: entry for entry in entries}
    given = dict(word.split("=", 1) for word in options.folder)
    if unknown := sorted(set(given) - set(known)):
        parser.error(f"--folder: not in the list: {', '.join(unknown)}; --list prints it")
    chosen = [known[name] for name in given] or [
        e for e in entries if options.only in e["repository"] and (e.get("small") or not options.small)]
    if not chosen:
        parser.error(f"no checkpoint has {options.only!r} in its name; --list prints them")
    options.work.mkdir(parents=True, exist_ok=True)
    files = sorted(p for p in (ROOT / "data/images").iterdir() if p.suffix in (".jpg", ".png"))[:options.images]
    report = {"date": datetime.date.today().isoformat(), "machine": machine(options), "tolerance": TOLERANCE, "checkpoints": {}}
    for entry in chosen:
        name = entry["repository"]
        try:
            folder, commit = (Path(given[name]), None) if name in given else download(entry)
            facts = {"family": entry["family"], "library": entry["library"], "commit": commit}
            facts |= verify(options, folder, entry["library"], files)
        except Exception as failure:  # the others are still verified
            facts = {"failure": f"{type(failure).__name__}: {failure}", "agrees": False}
        report["checkpoints"][name] = facts
        print(described(name, facts), flush=True)
        (options.work / "report.json").write_text(json.dumps(report, indent=1) + "\n")
    results = list(report["checkpoints"].values())
    agreeing = sum(facts["agrees"] for facts in results)
    worst = max((error for facts in results for error in facts.get("errors", {}).values()), default=float("nan"))
    m = report["machine"]
    print(f"vit {m['vit']}: {agreeing} of {len(results)} checkpoints agree, largest error {worst:.1e}; {m['processor']}, {m['kernels']}, "
          f"transformers {m['packages']['transformers']}, timm {m['packages']['timm']}, {report['date']}; report: {options.work / 'report.json'}")
    return 0 if agreeing == len(results) else 1


if __name__ == "__main__":
    sys.exit(main())
