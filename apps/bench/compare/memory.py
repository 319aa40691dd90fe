"""Compares the memory of `vit` with that of ONNX Runtime, OpenVINO and PyTorch: one process for each engine, which
loads the model of compare.py from the disk and gives the logits of one image some times.

    python memory.py --vit build/release/vit --work ~/compare --variants tiny base

MiB: resident at the end, the peak (weights are often twice in memory while they load), and of both what the empty
engine has after its import.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

from engines import export_onnx
from models import VARIANTS, Case, make_pixels, model_folder

PASSES = 5

MEMORY = """
def memory(*names):
    lines = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
    return [int(lines[name].split()[0]) // 1024 for name in names]
"""

# Each begins with its imports. ONNX, MODEL, PIXELS, SIZE, THREADS and PASSES are there; `run` gives logits.
ENGINES = {
    "ONNX Runtime": ("import numpy, onnxruntime", """
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = THREADS
session = onnxruntime.InferenceSession(ONNX, options, providers=["CPUExecutionProvider"])
feed = {session.get_inputs()[0].name: numpy.load(PIXELS)}
run = lambda: session.run(None, feed)
"""),
    "OpenVINO": ("import numpy, openvino", """
compiled = openvino.Core().compile_model(ONNX, "CPU", {
    "INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": THREADS, "NUM_STREAMS": 1})
request, pixels = compiled.create_infer_request(), numpy.load(PIXELS)
run = lambda: request.infer([pixels], share_inputs=True)
"""),
    "torch": ("import numpy, timm, torch", """
torch.set_num_threads(THREADS)
torch.set_grad_enabled(False)
model = timm.create_model("local-dir:" + MODEL, pretrained=True, img_size=SIZE).eval()
pixels = torch.from_numpy(numpy.load(PIXELS))
run = lambda: model(pixels)
"""),
}


def of_python(name, values):
    imports, code = ENGINES[name]
    program = "\n".join([imports, *(f"{key} = {value!r}" for key, value in values.items()), MEMORY,
                         "empty = memory('VmRSS')", code, "for _ in range(PASSES): run()",
                         "print(*memory('VmRSS', 'VmHWM'), *empty)"])
    finished = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True)
    return [int(word) for word in finished.stdout.split()[-3:]]


def of_vit(options, values, dtype):
    """The peak alone: the program ends with its work. `vit bench` holds the model and one session."""
    command = [options.vit, "bench", "--model", values["MODEL"], "--sizes", values["SIZE"], "--seconds", 0.5,
               "--threads", values["THREADS"], "--batch", 1, "--dtype", dtype]
    program = ("import os, sys; pid = os.spawnv(os.P_NOWAIT, sys.argv[1], sys.argv[1:]); "
               "print(os.wait4(pid, 0)[2].ru_maxrss)")
    finished = subprocess.run([sys.executable, "-c", program, *(str(word) for word in command)],
                              stdout=subprocess.PIPE, text=True, check=True)
    return int(finished.stdout.split()[-1]) // 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", type=Path, required=True)
    parser.add_argument("--work", type=Path, required=True, help="folder for weights and exports")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=["tiny", "base"])
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print("| ViT | engine | at the end | peak | after import |\n|---|---|---|---|---|")
    for variant in options.variants:
        case = Case(variant, options.size, 1, "float32")
        folder, pixels = model_folder(options.work, variant), make_pixels(case)
        np.save(folder / "pixels.npy", pixels)
        values = {"ONNX": str(export_onnx(case, folder, pixels)), "MODEL": str(folder.resolve()), "SIZE": options.size,
                  "PIXELS": str(folder / "pixels.npy"), "THREADS": options.threads, "PASSES": PASSES}
        for dtype in ("float32", "bfloat16", "int8"):
            print(f"| {variant} {options.size} | vit, {dtype} | | {of_vit(options, values, dtype)} | |", flush=True)
        for name in ENGINES:
            end, peak, empty = of_python(name, values)
            print(f"| {variant} {options.size} | {name} | {end} | {peak} | {empty} |", flush=True)


if __name__ == "__main__":
    main()
