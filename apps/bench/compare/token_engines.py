"""The engines of precision.py: tokens and logits of real checkpoints in float32, bfloat16 and int8, from the same pixels. Each is
made for a model (precision.py's), a precision and a batch. Graphs, threads and hints are those of engines.py."""

import json
from importlib.metadata import version

import numpy as np
import torch

import engines
from models import load_model


class FromTimm(torch.nn.Module):
    """From pixels to all tokens after the last norm and, of a classifier, logits."""

    def __init__(self, folder, config):
        super().__init__()
        self.model = load_model(folder, config["pretrained_cfg"]["input_size"][-1])

    def forward(self, pixels):
        tokens = self.model.forward_features(pixels)
        return (tokens, self.model.forward_head(tokens)) if self.model.num_classes else (tokens,)


class FromTransformers(torch.nn.Module):
    """The same of a folder of transformers."""

    def __init__(self, folder, config):
        super().__init__()
        import transformers
        [name] = config["architectures"]
        if "Classification" in name and name not in ("ViTForImageClassification", "DeiTForImageClassification"):
            raise SystemExit(f"{folder}: what {name} does after the tokens is not known here")
        self.model = getattr(transformers, name).from_pretrained(folder).eval()
        self.classifier = getattr(self.model, "classifier", None)

    def forward(self, pixels):
        tokens = self.model.base_model(pixels).last_hidden_state
        return (tokens, self.classifier(tokens[:, 0])) if self.classifier is not None else (tokens,)


def load_module(folder):
    config = json.loads((folder / "config.json").read_text())
    return (FromTransformers if "architectures" in config else FromTimm)(folder, config).eval()


def exported(model, batch):
    """The ONNX file for a batch; made where it is missing."""
    path = model.work / f"model-{batch}.onnx"
    if not path.exists():
        pixels = torch.from_numpy(model.pixels[:1].repeat(batch, 0))
        torch.onnx.export(load_module(model.folder), (pixels,), dynamo=True, verbose=False).save(path, external_data=True)
    return path


class Engine(engines.InProcess):
    """A subclass makes `outputs`, a function from the pixels of a batch to [tokens] or [tokens, logits]."""

    def __init__(self, model, precision, batch, options):
        self.model, self.batch = model, batch
        self.outputs = self.prepare(precision, options)
        pixels = np.resize(model.pixels, (batch, *model.pixels.shape[1:]))
        self.run = lambda: self.outputs(pixels)

    def embed(self, exact):
        """Of the photographs, one by one, the arrays that `exact` has: cls, patches and perhaps logits."""
        rows = [self.outputs(self.model.pixels[i:i + 1]) for i in range(len(self.model.pixels))]
        tokens = np.concatenate([row[0] for row in rows])
        found = {"cls": tokens[:, 0], "patches": tokens[:, -exact["patches"].shape[1]:]}
        return found | ({"logits": np.concatenate([row[1] for row in rows])} if "logits" in exact else {})


class OpenVino(Engine):
    package = "openvino"
    precisions = ("float32", "bfloat16", "int8")

    def prepare(self, precision, options):
        path, photographs = exported(self.model, self.batch), self.model.calibration
        if precision == "int8":
            def samples():
                count = -(-len(photographs) // self.batch)
                return list(np.resize(photographs, (count, self.batch, *photographs.shape[1:])))
            path = engines.quantised_by_nncf(path, samples)
        request = engines.openvino_request(path, precision, options.threads)
        return lambda pixels: list(request.infer([pixels], share_inputs=True).values())


class OnnxRuntime(Engine):
    package = "onnxruntime"
    precisions = ("float32", "int8")

    def prepare(self, precision, options):
        path = exported(self.model, self.batch)
        session = engines.onnx_session(engines.quantised(path) if precision == "int8" else path, options.threads)
        name = session.get_inputs()[0].name
        return lambda pixels: session.run(None, {name: pixels})


class Torch(Engine):
    package = "torch"
    precisions = ("float32", "bfloat16", "int8")

    def prepare(self, precision, options):
        torch.set_num_threads(options.threads)
        module = load_module(self.model.folder)
        if precision == "int8":
            module = torch.ao.quantization.quantize_dynamic(module, {torch.nn.Linear}, dtype=torch.qint8)

        @torch.no_grad()
        def run(pixels):
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bfloat16"):
                return [output.float().numpy() for output in module(torch.from_numpy(pixels))]
        return run


ENGINES = {"OpenVINO": OpenVino, "ONNX Runtime": OnnxRuntime, "torch": Torch}


def versions(names):
    packages = {ENGINES[name].package for name in names if name in ENGINES} | ({"nncf"} if "OpenVINO" in names else set())
    return {package: version(package) for package in sorted(packages)}
