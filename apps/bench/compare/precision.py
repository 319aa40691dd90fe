"""What bfloat16 and int8 change, and save: `vit` next to OpenVINO with NNCF's quantization, ONNX Runtime and PyTorch.

    python precision.py --vit build/release/vit --work ~/compare --models deit_tiny/ dinov2_small/ --photos PHOTOS
    python precision.py --work ~/compare --rounds 0                  # the table of what was measured
    python precision.py --vit build/release/vit --work ~/compare --models dinov2_small/ --photos PHOTOS --kernels [--old another/vit]

Prints one row for each model, engine and precision: milliseconds per image (median of rounds by turns, quartiles); of a
classifier the photographs whose best class stays, and cosines of logits; cosines of patch tokens, how many are below 0.998,
and the worst cosine of class tokens, all with the float32 result of vit. All engines get the pixels that `vit preprocess`
makes; float32 results must agree. A seeded third of the photographs (of --calibration, if given) calibrates NNCF and is not
measured. Rounds and cosines are added to WORK/precision.jsonl. A model is a folder of transformers (ViT, DeiT, DINOv2) or timm.

With --kernels the rows are of vit, bfloat16 and int8, for every kernel table of this machine, without times.
"""

import argparse
import datetime
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

TABLES = ["avx512_amx", "avx512_bf16", "avx512_vnni", "avx512", "avx2_vnni", "avx2", "sse4", "neon_i8mm", "neon_dot", "neon"]
PRECISIONS = ("float32", "bfloat16", "int8")
KEPT = 0.998  # cosine of a patch token that counts as kept
TOLERANCE = 1e-4  # of cosines in float32 with 1
SEED = 1
MOST_CALIBRATION = 300  # photographs: as many as NNCF takes by default
SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff")


def cosines(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))


def compare(found, exact):
    """What is kept of float32: arrays `patches`, `cls` and, of a classifier, `logits`."""
    patches, classes = cosines(found["patches"], exact["patches"]), cosines(found["cls"], exact["cls"])
    kept = {"patches_worst": patches.min(), "patches_median": np.median(patches), "patches_below": int((patches < KEPT).sum()),
            "patches": patches.size, "class_token_worst": classes.min()}
    if "logits" in exact:
        logits = cosines(found["logits"], exact["logits"])
        same = found["logits"].argmax(-1) == exact["logits"].argmax(-1)
        kept |= {"classes_kept": int(same.sum()), "classes": same.size, "logits_worst": logits.min(), "logits_median": np.median(logits)}
    return {name: value if isinstance(value, int) else float(value) for name, value in kept.items()}


def vit(options, *words, program=None):
    command = [program or options.vit, *words]
    return subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True).stdout


class Model:
    """A folder, and photographs as it sees them: some to calibrate with, others to measure."""

    def __init__(self, folder, options):
        self.folder, self.name = folder, folder.resolve().name
        config = json.loads((folder / "config.json").read_text())
        architectures = config.get("architectures") or []
        self.is_classifier = config.get("num_classes", 0) > 0 or any("Classification" in name for name in architectures)
        self.work = options.work / "precision" / self.name
        self.work.mkdir(parents=True, exist_ok=True)
        measured, calibration = photographs(options)
        self.pixels = self.preprocess(options, measured, self.work / "pixels.npy")
        if calibration:
            self.calibrate(options, calibration)

    def calibrate(self, options, calibration):
        path = self.work / "calibration.npy"
        before = np.load(path) if path.exists() else None
        self.calibration = self.preprocess(options, calibration, path)
        if not np.array_equal(before, self.calibration):
            for file in self.work.glob("*.nncf.*"):  # quantized with other photographs
                file.unlink()

    def preprocess(self, options, files, path):
        vit(options, "preprocess", "--quiet", "--model", self.folder, "--output", path, *files)
        return np.load(path)

    def embed(self, options, *words, program=None):
        """cls, patches and logits as vit computes them."""
        features = ["cls", "patches", *(["logits"] if self.is_classifier else [])]
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "features.npz"
            vit(options, "embed", "--quiet", "--model", self.folder, "--features", ",".join(features), "-o", file, *words,
                self.work / "pixels.npy", program=program)
            with np.load(file) as arrays:
                found = {name: arrays[name] for name in features}
        found["patches"] = found["patches"].reshape(len(found["cls"]), -1, found["cls"].shape[-1])
        return found


def photographs(options):
    """Those to measure, and those to calibrate with."""
    def listed(folder):
        return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)
    random = np.random.default_rng(SEED)
    measured = listed(options.photos)
    if options.kernels:
        return measured, []
    if options.calibration:
        others = listed(options.calibration)
        chosen = random.permutation(len(others))[:MOST_CALIBRATION]
        return measured, [others[i] for i in sorted(chosen)]
    chosen = set(random.permutation(len(measured))[:min(len(measured) // 3, MOST_CALIBRATION)].tolist())
    split = [[file for i, file in enumerate(measured) if (i in chosen) == calibrates] for calibrates in (False, True)]
    if not all(split):
        raise SystemExit(f"{options.photos}: {len(measured)} photographs are too few to measure with some and calibrate with others")
    return split


class VitProgram:
    """The program of this repository: it times itself, on pixels of its own."""
    package, precisions = None, PRECISIONS

    def __init__(self, model, precision, batch, options):
        self.model, self.options, self.batch = model, options, batch
        self.words = ["--dtype", precision, "--threads", options.threads]

    def embed(self, exact):
        return self.model.embed(self.options, *self.words)

    def milliseconds(self, seconds):
        height, width = self.model.pixels.shape[2:]
        report = json.loads(vit(self.options, "bench", "--model", self.model.folder, *self.words, "--batch", self.batch,
                                "--sizes", f"{height}x{width}", "--seconds", seconds, "--json", "--quiet"))
        return report["results"][0]["ms_per_image"]


def prepare(model, kinds, options):
    """All that is timed, by batch and "engine precision", and what is kept at batch 1."""
    exact = model.embed(options)
    timed, kept = {batch: {} for batch in options.batches}, {}
    for precision in PRECISIONS:
        for engine, kind in kinds.items():
            if precision not in kind.precisions:
                continue
            label = f"{engine} {precision}"
            made = {batch: kind(model, precision, batch, options) for batch in sorted({1, *options.batches})}
            kept[label] = compare(made[1].embed(exact), exact)
            print(f"{model.name}, {label}: {kept[label]}", flush=True)
            worst = min(value for name, value in kept[label].items() if name.endswith("worst"))
            if precision == "float32" and not worst >= 1 - TOLERANCE:
                raise SystemExit(f"{model.name}, {label}: a cosine with vit's float32 is {worst:.6f}: not the same function")
            for batch in options.batches:
                timed[batch][label] = made[batch]
    return timed, kept


def measure(options):
    import token_engines
    # tokenizers.py of this folder has the name of a package that transformers needs.
    sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]
    kinds = {"vit": VitProgram, **{name: kind for name, kind in token_engines.ENGINES.items() if name in options.engines}}
    bench = ["bench", "--architecture", "vit_tiny_patch16_224", "--sizes", "16", "--seconds", "0", "--json", "--quiet"]
    facts = {"day": datetime.date.today().isoformat(), "machine": json.loads(vit(options, *bench))["machine"],
             "threads": options.threads, "versions": token_engines.versions(kinds)}

    def keep(line):
        with (options.work / "precision.jsonl").open("a", encoding="utf-8") as out:
            out.write(json.dumps(facts | line) + "\n")

    prepared = {}
    for folder in options.models:
        model = Model(folder, options)
        prepared[model.name], kept = prepare(model, kinds, options)
        keep({"model": model.name, "photographs": len(model.pixels), "calibration": len(model.calibration), "kept": kept})
    for number in range(options.rounds):
        for name, batches in prepared.items():
            for batch, made in batches.items():
                labels = list(made) if number % 2 == 0 else list(reversed(made))
                milliseconds = {label: made[label].milliseconds(options.seconds) for label in labels}
                keep({"model": name, "batch": batch, "milliseconds": milliseconds})
        print(f"round {number + 1} of {options.rounds}", flush=True)


def measure_kernels(options):
    """What every kernel table keeps, and that of another build."""
    listed = vit(options, "info", "--kernels").replace("*", " ").split()
    programs = {"vit": options.vit} | ({"old": options.old} if options.old else {})
    lines = []
    for folder in options.models:
        model = Model(folder, options)
        exact = model.embed(options)
        kept = {f"{name}, {table} {precision}": compare(model.embed(options, "--dtype", precision, "--kernels", table, program=program), exact)
                for table in TABLES if table in listed for precision in PRECISIONS[1:] for name, program in programs.items()}
        lines.append({"model": model.name, "photographs": len(model.pixels), "kept": kept})
    return lines


def row(model, label, kept, times):
    def pair(name):
        return f"{kept[name + '_worst']:.5f}, {kept[name + '_median']:.5f}" if name + "_worst" in kept else "-"
    engine, _, precision = label.rpartition(" ")
    classes = f"{kept['classes_kept']} of {kept['classes']}" if "classes" in kept else "-"
    return [model, engine, precision, *times, classes, pair("logits"), pair("patches"),
            f"{kept['patches_below']} of {kept['patches']}", f"{kept['class_token_worst']:.5f}"]


def write_table(lines, cell=None):
    """Markdown: the latest `kept` of each model and engine, of the same photographs, and the times of all lines as cell(times)."""
    latest = {}
    for line in (line for line in lines if "kept" in line):
        before = latest.get(line["model"], {})
        is_same = all(before.get(key) == line.get(key) for key in ("photographs", "calibration"))
        latest[line["model"]] = line | {"kept": (before["kept"] if is_same else {}) | line["kept"]}
    timed = [line for line in lines if "milliseconds" in line]
    batches = sorted({line["batch"] for line in timed})
    header = ["model", "engine", "type", *(f"ms, batch {batch}" for batch in batches), "classes kept", "logits: worst, median",
              "patches: worst, median", f"below {KEPT}", "class token: worst"]
    rows = [header, ["---"] * len(header)]
    for model, line in latest.items():
        for label, kept in line["kept"].items():
            times = [cell([one["milliseconds"][label] for one in timed if (one["model"], one["batch"]) == (model, batch)
                           and label in one["milliseconds"]]) for batch in batches]
            rows.append(row(model, label, kept, times))
    notes = [f"{model}: {line['photographs']} photographs" +
             (f"; NNCF's quantization is calibrated with {line['calibration']} others." if "calibration" in line else ".")
             for model, line in latest.items()]
    return "\n".join(["| " + " | ".join(cells) + " |" for cells in rows] + [""] + notes) + "\n"


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, help="the program, of the release preset")
    parser.add_argument("--work", type=Path, required=True, help="folder for exports, pixels and rounds")
    parser.add_argument("--models", type=Path, nargs="+", default=[])
    parser.add_argument("--photos", type=Path, help="folder of photographs, searched recursively")
    parser.add_argument("--calibration", type=Path, help="folder of others to calibrate with")
    parser.add_argument("--engines", nargs="+", default=["OpenVINO", "ONNX Runtime", "torch"], help="next to vit")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="spent on each engine, precision, batch and round")
    parser.add_argument("--kernels", action="store_true", help="cosines of vit with every kernel table instead")
    parser.add_argument("--old", type=Path, help="with --kernels: another build, measured as well")
    options = parser.parse_args()
    if (options.rounds > 0 or options.kernels) and not (options.vit and options.models and options.photos):
        parser.error("measuring needs --vit, --models and --photos")
    return options


def main():
    options = parse_options()
    if options.kernels:
        print(write_table(measure_kernels(options)), end="")
        return
    from table import cell, machine_line, read_rounds
    if options.rounds > 0:
        measure(options)
    path = options.work / "precision.jsonl"
    rounds = read_rounds(path)
    print(write_table(rounds, cell) + "\n" + machine_line(rounds, path), end="")


if __name__ == "__main__":
    main()
