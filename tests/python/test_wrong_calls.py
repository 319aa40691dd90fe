"""Every parameter of every public function and method with wrong values of its kind: none, empty, of another type, shape or rank, not
finite, zero, negative, huge. Each call ends in a vitcpp.Error or is listed in ACCEPTED; a function without a right call fails the test."""

from __future__ import annotations

import inspect
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, IMAGES
from test_names import public_names

import vitcpp
from vitcpp import position

HUGE = 1 << 80
NAN = float("nan")

# What is wrong by the annotation of a parameter; the first pattern that is found decides.
KINDS: list[tuple[str, list[Any]]] = [
    (r"^Model$|Callable|Progress", []),
    (r"RopeTable", [3, "table"]),
    (r"Literal|^str$|^'str'$|Size|Precision|Library|Coordinates|CenteredBy|AxisOrder|Pairing|Resampling|str \| None", ["", "nonsense", 3, b"\0"]),
    (r"Mapping\[str, Any\]", [3, {"nonsense": 1}, {3: 4}]),
    (r"tuple\[int, int\]", [3, (1,), (0, 1), (-1, 1), (HUGE, 1), ("a", "b"), (1.5, 2)]),
    (r"^Sequence\[int\]|int \| Sequence", [["x"], [HUGE], [99], "x", 1.5]),
    (r"^Sequence\[float\]", [["x"], [NAN], [-1.0], 3]),
    (r"^bool", []),
    (r"float", ["x", NAN, -1.0, [1.0]]),
    (r"int", ["x", 1.5, -1, HUGE, [1]]),
    (r"PathLike", [3, "", "/no/such/file", "a\0b", [1]]),
    (r"Image", [None, 3, "", "/no/such.jpg", b"", b"no image", np.zeros((0, 4, 3), np.uint8), np.zeros((2, 2, 2, 2, 2)), np.full((8, 8, 3), NAN),
                np.zeros((8, 8), complex), {"a": 1}, object()]),
    (r"str", [3, "", [3], "\ud800", None, [""]]),
    (r"ArrayLike|NDArray|Doubles|Any", [None, "x", [], object(), np.zeros(0), np.zeros((1,) * 7), np.full((1, 3, 8, 8), NAN), [[1], [1, 2]]]),
]  # fmt: skip


def wrong_values(annotation: str) -> list[Any]:
    for pattern, values in KINDS:
        if re.search(pattern, annotation):
            return values
    return [object()]


class Right:
    """Right calls: the function or bound method, and its arguments."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.model = vitcpp.load(DATA / "model", threads=1)
        self.pixels = self.model.preprocess([IMAGES[0]])
        self.table = position.RopeTable.axial((2, 3), position.frequencies(4))
        self.form = position.RopeForm("dinov3", (2, 3), 16)

    def of_positions(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        x = np.ones((1, 6, 1, 16), np.float32)
        q, rows = np.ones((1, 1, 2, 4)), np.ones((3, 4))
        angles = {"cos": self.form.cos, "sin": self.form.sin}
        return {
            "frequencies": (position.frequencies, {"count": 4}),
            "grid_coordinates": (position.grid_coordinates, {"grid": (2, 3)}),
            "RopeTable.axial": (position.RopeTable.axial, {"grid": (2, 3), "frequencies": [1.0, 0.5], "trained": (2, 2), "scaling": "ntk"}),
            "RopeTable.mixed": (position.RopeTable.mixed, {"grid": (2, 3), "frequencies": np.ones((2, 1, 2, 4))}),
            "RopeTable.line": (position.RopeTable.line, {"positions": [0.0, 1.0], "frequencies": [1.0, 0.5]}),
            "RopeTable.rotate": (self.table.rotate, {"x": x}),
            "RopeForm": (position.RopeForm, {"convention": "dinov3", "grid": (2, 3), "head_dim": 16}),
            "RopeForm.rotate": (self.form.rotate, {"x": x.astype(np.float64)}),
            "identify": (position.identify, {"source": angles, "grid": (2, 3)}),
            "sinusoidal": (position.sinusoidal, {"size": (2, 3), "dim": 8}),
            "resample_table": (position.resample_table, {"table": np.ones((4, 2)), "from_grid": (2, 2), "to_grid": (3, 3)}),
            "relative_index": (position.relative_index, {"num_tokens": 3, "max_distance": 1}),
            "nezha_rows": (position.nezha_rows, {"max_distance": 1, "dim": 4}),
            "relative_attention": (position.relative_attention, {"q": q, "k": q, "v": q, "keys": rows, "values": rows}),
            "patchify": (vitcpp.patchify, {"pixels": np.ones((1, 3, 8, 8)), "patch_size": 4}),
            "attention": (vitcpp.attention, {"q": x, "k": x, "v": x, "rope": self.table}),
        }

    def of_models(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        m, image = self.model, IMAGES[0]
        towers = vitcpp.load(DATA / "golden/text/openclip-siglip", threads=1)
        tokenizer = vitcpp.Tokenizer(DATA / "golden/text/openclip-siglip")
        tower = self.folder / "tower"
        if not tower.exists():
            shutil.copytree(DATA / "golden/towers/qwen3-vl", tower)
            processor = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 4, "merge_size": 2, "temporal_patch_size": 2}
            (tower / "preprocessor_config.json").write_text(json.dumps(processor), encoding="utf-8")
        merged = vitcpp.load(tower, threads=1)
        return {
            "Model": (vitcpp.Model, {"path": DATA / "model"}),
            "load": (vitcpp.load, {"path": DATA / "model"}),
            "Model.embed": (m.embed, {"x": image}),
            "Model.patches": (m.patches, {"x": image}),
            "Model.attention": (m.attention, {"x": image}),
            "Model.rollout": (m.rollout, {"x": image}),
            "Model.merged": (merged.merged, {"x": np.zeros((56, 56, 3), np.uint8)}),
            "Model.embed_or_errors": (m.embed_or_errors, {"x": [image]}),
            "Model.embed_stream": (lambda **k: list(m.embed_stream(**k)), {"iterable": [image]}),
            "Model.encode_image": (m.encode_image, {"image": image}),
            "Model.encode_text": (towers.encode_text, {"text": "a cat"}),
            "Model.tokenize": (towers.tokenize, {"text": "a cat"}),
            "Model.forward_features": (m.forward_features, {"pixels": self.pixels}),
            "Model.forward_intermediates": (m.forward_intermediates, {"pixels": self.pixels}),
            "Model.preprocess": (m.preprocess, {"x": image}),
            "Model.classify": (m.classify, {"x": image}),
            "Tokenizer": (vitcpp.Tokenizer, {"path": DATA / "golden/text/openclip-siglip"}),
            "Tokenizer.__call__": (tokenizer, {"text": "a cat"}),
            "Tokenizer.token": (tokenizer.token, {"index": 3}),
        }

    def of_heads(self) -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
        m, image, golden = self.model, IMAGES[0], DATA / "golden"
        bank = vitcpp.AnomalyModel.fit(m, [image])
        bank.save(self.folder / "bank.safetensors")
        pixels, labels = np.zeros((32, 32, 3), np.uint8), np.repeat([[0, 1]], 16, 1).repeat(32, 0)
        pixels[:, 16:] = 200
        learner = vitcpp.PixelClassifier(m, "centroid").fit(pixels, labels)
        learner.save(self.folder / "pixels.safetensors")
        prompts = vitcpp.PromptModel(golden / "prompts/sam3", threads=1)
        pages = vitcpp.PageModel(golden / "pages/colmodernvbert", threads=1)
        questions = pages.encode_queries(["a cat"])
        words = vitcpp.load(golden / "boxes/owlv2", threads=1)
        return {
            "AnomalyModel.fit": (vitcpp.AnomalyModel.fit, {"model": m, "good": [image]}),
            "AnomalyModel.load": (vitcpp.AnomalyModel.load, {"model": m, "path": self.folder / "bank.safetensors"}),
            "AnomalyModel.save": (bank.save, {"path": self.folder / "bank.safetensors"}),
            "AnomalyModel.score": (bank.score, {"x": image}),
            "PixelClassifier": (vitcpp.PixelClassifier, {"model": m, "method": "centroid"}),
            "PixelClassifier.fit": (learner.fit, {"X": pixels, "y": labels}),
            "PixelClassifier.load": (vitcpp.PixelClassifier.load, {"model": m, "path": self.folder / "pixels.safetensors"}),
            "PixelClassifier.save": (learner.save, {"path": self.folder / "pixels.safetensors"}),
            "PixelClassifier.predict": (learner.predict, {"X": pixels}),
            "PixelClassifier.predict_proba": (learner.predict_proba, {"X": pixels}),
            "Model.depth": (vitcpp.load(golden / "dense/hf-depth-anything", threads=1).depth, {"x": image}),
            "Model.segment": (vitcpp.load(golden / "dense/hf-eomt", threads=1).segment, {"x": image}),
            "Model.detect": (words.detect, {"x": image, "candidate_labels": ["a cat"]}),
            "Model.pose": (vitcpp.load(golden / "boxes/vitpose", threads=1).pose, {"x": image}),
            "PageModel": (vitcpp.PageModel, {"path": golden / "pages/colmodernvbert"}),
            "PageModel.encode_pages": (pages.encode_pages, {"images": [image]}),
            "PageModel.encode_queries": (pages.encode_queries, {"texts": ["a cat"]}),
            "PageModel.score": (pages.score, {"queries": questions, "pages": questions}),
            "PromptModel": (vitcpp.PromptModel, {"path": golden / "prompts/sam3"}),
            "PromptModel.encode": (prompts.encode, {"image": image}),
            "PromptModel.segment": (prompts.segment, {"image": image, "text": "cat"}),
            "PromptModel.detect": (prompts.detect, {"image": image, "text": "cat"}),
            "PromptModel.pixels": (prompts.pixels, {"image": image, "text": "cat"}),
            "PromptModel.segment_object": (prompts.segment_object, {"image": image, "input_points": [[20, 20]]}),
        }


# Not called: types of results and errors, what the library makes, what takes nothing, modules.
NOT_CALLED = re.compile(
    r".*Error|BoxEdges|Depth|Detection|FoundBoxes|Instances|ObjectMasks|Pose|Score|Segment|AnomalyResult|AnomalyModel|PromptImage|RopeTable|"
    r"parts|position|version|conventions|close"
)
# Wrong elsewhere, and right here.
ACCEPTED = [
    r"frequencies b=.*",  # of another rule
    r".* offset=-1\.0",
    r".* reference=\(0, 1\)",  # of other coordinates
    r"sinusoidal size=3",  # a line of three tokens
    r"patchify pixels=ndarray of shape \(1, 3, 8, 8\)",  # moves numbers, whatever they are
    r"Model size=3|PixelClassifier size=3",
    r"Model (architecture|layout|kernels|tokenizer|adapter|prefix|head)=''",  # the default
    r"Model tokenizer='/no/such/file'",  # read when a text comes
    r"Model (mean=-1\.0|mean=\[1\.0\]|std=\[1\.0\])",
    r"Model taps=\[99\]",  # of a head that is not given
    r"Model\.attention block=-1",  # the last one
    r"Model\.embed_or_errors x=.*",  # gives the errors
    r"Model\.encode_image image=(\[\]|ndarray of shape \(0,\))",
    r"Model\.classify threshold=-1\.0|Model\.detect threshold=-1\.0",
    r"Model\.encode_text text=\[?''\]?|Model\.tokenize text=\[?''\]?",
    r"Tokenizer\.__call__ text=.*|Tokenizer\.token index=-1",
    r"PixelClassifier (layers=\[99\]|scales=.*|strength=.*|neighbors=.*)",  # looked at by fit()
    r"Model\.pose boxes=(\[\]|ndarray of shape \(0,\))|PromptModel\..* input_boxes=(\[\]|ndarray of shape \(0,\))",
    r"PageModel\.encode_queries texts=\[''\]",
    r"PromptModel\.(detect|pixels|segment) text=('nonsense'|\[\])",
]


@pytest.fixture(scope="module")
def right(tmp_path_factory: pytest.TempPathFactory) -> Right:
    return Right(tmp_path_factory.mktemp("wrong"))


def outcome(call: Callable[..., Any], arguments: dict[str, Any]) -> str:
    try:
        call(**arguments)
    except vitcpp.Error:
        return "refused"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


@pytest.mark.parametrize("part", ["of_positions", "of_models", "of_heads"])
def test_wrong_calls(right: Right, part: str) -> None:
    found = []
    for name, (call, arguments) in getattr(right, part)().items():
        assert outcome(call, arguments) == "accepted", name
        signature = inspect.signature(call) if part != "of_models" or name != "Model.embed_stream" else inspect.signature(right.model.embed_stream)
        for parameter in signature.parameters.values():
            if parameter.kind is parameter.VAR_KEYWORD:
                continue
            optional = parameter.default is None
            for value in wrong_values(str(parameter.annotation).strip("'\"")):
                if value is None and optional:
                    continue
                what = outcome(call, {**arguments, parameter.name: value})
                shown = f"{type(value).__name__} of shape {value.shape}" if isinstance(value, np.ndarray) else repr(value)
                line = f"{name} {parameter.name}={shown[:40]}"
                if what != "refused" and not any(re.fullmatch(pattern, line) for pattern in ACCEPTED):
                    found.append(f"{line}: {what[:150]}")
        assert outcome(call, arguments) == "accepted", name  # right again
    assert found == []


def test_every_function_is_tried(right: Right) -> None:
    tried = {**right.of_positions(), **right.of_models(), **right.of_heads()}
    names = {name.rpartition(".")[2] for name in tried}
    left = [name for name, value in public_names() if callable(value) and name not in names and name not in tried and not NOT_CALLED.fullmatch(name)]
    assert left == []
