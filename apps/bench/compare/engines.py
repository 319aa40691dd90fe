"""The engines that are compared. Each computes the logits of one case and times its passes; all get the same
number of threads. bfloat16 is what each engine makes of being asked for it; int8 quantises float32 weights while
they load, and inputs as they come. Rounds and tables are compare.py's."""

import json
import statistics
import subprocess
import time
from dataclasses import replace
from importlib.metadata import version

import numpy as np
import torch

from models import load_model


class InProcess:
    """An engine that Python calls: a subclass sets run, a function from pixels to logits."""
    dtypes = ("float32",)

    def logits(self):
        """(batch, classes)"""
        return self.run()

    def milliseconds(self, seconds):
        """Per image: median of passes that fill the given time, after some that wake threads and caches."""
        self.pass_seconds(2, seconds / 5)
        return statistics.median(self.pass_seconds(3, seconds)) * 1e3 / self.batch

    def pass_seconds(self, least_passes, seconds):
        passes = []
        while len(passes) < least_passes or sum(passes) < seconds:
            start = time.perf_counter()
            self.run()
            passes.append(time.perf_counter() - start)
        return passes


class Torch(InProcess):
    package = "torch"
    dtypes = ("float32", "bfloat16")

    def __init__(self, case, folder, pixels, options):
        torch.set_num_threads(options.threads)
        self.batch = case.batch
        self.bfloat16 = case.dtype == "bfloat16"
        self.model = self.prepare(load_model(folder, case.size))
        self.pixels = torch.from_numpy(pixels)

    def prepare(self, model):
        return model

    @torch.no_grad()
    def run(self):
        with torch.autocast("cpu", torch.bfloat16, enabled=self.bfloat16):
            return self.model(self.pixels).float().numpy()


class TorchCompile(Torch):

    def prepare(self, model):
        return torch.compile(model, dynamic=False)


def export_onnx(case, folder, pixels):
    """The case's ONNX file, beside the weights; made where it is missing. Fixed shapes let engines fold more."""
    path = folder / f"{case.size}-{case.batch}.onnx"
    if not path.exists():
        exported = torch.onnx.export(load_model(folder, case.size), (torch.from_numpy(pixels),), dynamo=True,
                                     verbose=False)
        exported.save(path, external_data=True)
    return path


def quantised(path):
    """An ONNX file beside `path` whose products are of bytes; made where it is missing."""
    import onnx
    from onnxruntime.quantization import quantize_dynamic
    made = path.with_suffix(".int8.onnx")
    if not made.exists():
        model = onnx.load(path)
        del model.graph.value_info[:]  # shapes that the export got wrong and the quantizer would trip over
        quantize_dynamic(model, made)
    return made


def onnx_session(path, threads):
    import onnxruntime
    session_options = onnxruntime.SessionOptions()
    session_options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(path, session_options, providers=["CPUExecutionProvider"])


class OnnxRuntime(InProcess):
    package = "onnxruntime"
    dtypes = ("float32", "int8")

    def __init__(self, case, folder, pixels, options):
        path = export_onnx(case, folder, pixels)
        session = onnx_session(quantised(path) if case.dtype == "int8" else path, options.threads)
        feed = {session.get_inputs()[0].name: pixels}
        self.batch = case.batch
        self.run = lambda: session.run(None, feed)[0]


def quantised_by_nncf(path, samples):
    """An OpenVINO file with the products of bytes that NNCF's transformer preset makes of an ONNX file, calibrated with the pixels that
    samples() lists; made where it is missing."""
    import nncf
    import openvino
    made = path.with_suffix(".nncf.xml")
    if not made.exists():
        calibration = samples()
        model = nncf.quantize(openvino.Core().read_model(path), nncf.Dataset(calibration), model_type=nncf.ModelType.TRANSFORMER,
                              subset_size=len(calibration))
        openvino.save_model(model, made, compress_to_fp16=False)
    return made


def noise_like(pixels):
    """Samples like the pixels that are timed."""
    random = np.random.default_rng(1)
    return [random.standard_normal(pixels.shape, np.float32) for _ in range(max(1, 32 // len(pixels)))]


def openvino_request(path, dtype, threads):
    import openvino
    compiled = openvino.Core().compile_model(path, "CPU", {
        "INFERENCE_PRECISION_HINT": "bf16" if dtype == "bfloat16" else "f32",
        "INFERENCE_NUM_THREADS": threads,
        "NUM_STREAMS": 1,
    })
    return compiled.create_infer_request()


class OpenVino(InProcess):
    package = "openvino"
    dtypes = ("float32", "bfloat16", "int8")

    def __init__(self, case, folder, pixels, options):
        path = export_onnx(case, folder, pixels)
        if case.dtype == "int8":
            path = quantised_by_nncf(path, lambda: noise_like(pixels))
        request = openvino_request(path, case.dtype, options.threads)
        self.batch = case.batch
        self.run = lambda: request.infer([pixels], share_inputs=True)[0]


class OpenCv(InProcess):
    """OpenCV's own network runner, release 5."""
    package = "opencv-python-headless"

    def __init__(self, case, folder, pixels, options):
        import cv2
        cv2.setNumThreads(options.threads)
        network = cv2.dnn.readNetFromONNX(str(export_onnx(case, folder, pixels)))

        def run():
            network.setInput(pixels)
            return network.forward()

        self.batch = case.batch
        self.run = run


class Vit:
    """The program of this repository. It times itself, on pixels of its own."""
    package = None
    dtypes = ("float32", "bfloat16", "int8")

    def __init__(self, case, folder, pixels, options):
        self.case, self.folder, self.options, self.pixels = case, folder, options, pixels

    def output(self, *arguments):
        command = [self.options.vit, *arguments, "--model", self.folder, "--threads", self.options.threads,
                   "--batch", self.case.batch, "--dtype", self.case.dtype]
        finished = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True)
        return finished.stdout

    def logits(self):
        prepared = self.folder / "pixels.npy"
        np.save(prepared, self.pixels)
        lines = self.output("classify", prepared, "--size", self.case.size, "--top", 1000, "--format", "json")
        rows = [json.loads(line)["top"] for line in lines.splitlines()]
        return np.array([[entry["logit"] for entry in sorted(row, key=lambda entry: entry["index"])]
                         for row in rows])

    def milliseconds(self, seconds):
        report = json.loads(self.output("bench", "--sizes", self.case.size, "--seconds", seconds, "--json"))
        self.machine = report["machine"]
        self.percent_of_peak = report["results"][0]["percent_of_peak"]
        self.percent_of_tile = report["results"][0]["percent_of_tile"]
        return report["results"][0]["ms_per_image"]


class VitFloat32(Vit):
    """Beside fewer bits, to say how much they save."""
    dtypes = ("bfloat16", "int8")

    def __init__(self, case, *others):
        super().__init__(replace(case, dtype="float32"), *others)


ENGINES = {
    "vit": Vit,
    "vit float32": VitFloat32,
    "ONNX Runtime": OnnxRuntime,
    "OpenVINO": OpenVino,
    "OpenCV": OpenCv,
    "torch": Torch,
    "torch.compile": TorchCompile,
}


def versions(names):
    """Package versions of the named engines; the program states its own."""
    packages = {ENGINES[name].package for name in names} - {None}
    return {package: version(package) for package in sorted(packages | {"timm"})}
