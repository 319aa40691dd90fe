"""Classes, texts, features and facts are those of the program."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, IMAGES, json_lines, program

import vitcpp


def test_classes(model: vitcpp.Model) -> None:
    lines = json_lines(program("classify", *IMAGES, "--model", DATA / "model", "--format", "json", "--top", 3))
    found = model.classify(IMAGES, top=3)
    for line, scores in zip(lines, found):
        assert [score["label"] for score in scores] == [best["label"] for best in line["top"]]
        assert [np.float32(score["score"]) for score in scores] == [np.float32(b["probability"]) for b in line["top"]]
    assert model.classify(str(IMAGES[0]), top=3) == found[0]
    assert len(model.classify(IMAGES[0])) == 5 and len(model.classify(IMAGES[0], top=99)) == 10
    assert set(score["label"] for score in model.classify(IMAGES[0], top=10)) == set(model.labels)


def test_several_classes_at_once() -> None:
    path, image = DATA / "golden/tagger", DATA / "golden/tagger/wide.png"
    model = vitcpp.load(path)
    line = json_lines(program("classify", image, "--model", path, "--format", "json", "--threshold", "0.4"))[0]
    found = model.classify(image, threshold=0.4)
    assert [np.float32(s["score"]) for s in found] == [np.float32(b["probability"]) for b in line["top"]]
    assert sum(score["score"] for score in model.classify(image, top=99)) > 1.1  # sigmoids, no softmax


def test_padding_and_channels(tmp_path: Path) -> None:
    options = ["--pad", "white", "--channels", "bgr", "--model", DATA / "model", "--output", tmp_path / "p.npy"]
    program("preprocess", *IMAGES, *options)
    model = vitcpp.load(DATA / "model", pad=(255, 255, 255), channels="bgr")
    assert model.preprocess(IMAGES).tobytes() == np.load(tmp_path / "p.npy").tobytes()
    with pytest.raises(vitcpp.ArgumentError):
        vitcpp.load(DATA / "model", pad=(256, 0, 0))


def test_classes_in_words(clip: vitcpp.Model) -> None:
    path = DATA / "golden/text/openclip-siglip"
    labels, templates = ["a cat", "a dog", "a tree"], ["a photo of {}.", "{} in the rain"]
    command = ["classify", IMAGES[0], "--model", path, "--format", "json", "--classes", ",".join(labels)]
    for chosen in ([], templates[:1], templates):
        line = json_lines(program(*command, *(part for t in chosen for part in ("--template", t))))[0]
        found = clip.classify(IMAGES[0], candidate_labels=labels, template=chosen or None)
        assert [score["label"] for score in found] == [best["label"] for best in line["top"]]
        assert [np.float32(s["score"]) for s in found] == [np.float32(b["probability"]) for b in line["top"]]
    assert clip.classify([IMAGES[0]], candidate_labels=labels, template=templates) == [found]
    assert len(clip.classify(IMAGES[0], top=1, candidate_labels=labels)) == 1


def test_texts_and_tokens(clip: vitcpp.Model, tmp_path: Path) -> None:
    path, texts = DATA / "golden/text/openclip-siglip", ["two cats", "a dog in the snow", ""]
    arguments = [part for text in texts for part in ("--text", text)]
    program("embed", *arguments, "--model", path, "--output", tmp_path / "t.npy")
    assert clip.encode_text(texts).tobytes() == np.load(tmp_path / "t.npy").tobytes()
    assert clip.encode_text(texts[0]).shape == (1, clip.embedding_dim)
    assert np.allclose(np.linalg.norm(clip.encode_text(texts, normalize=True), axis=1), 1, atol=1e-6)
    lines = json_lines(program("tokenize", *arguments, "--model", path))
    assert clip.tokenize(texts).tolist() == [line["ids"] for line in lines]
    tokenizer = vitcpp.Tokenizer(DATA / "golden/tokenizers/clip")
    lines = json_lines(program("tokenize", *arguments, "--tokenizer", DATA / "golden/tokenizers/clip"))
    for text, line in zip(texts, lines):
        assert tokenizer(text) == line["ids"]
        assert [tokenizer.token(index) for index in line["ids"]] == line["tokens"]


def test_preprocessing(model: vitcpp.Model, tmp_path: Path) -> None:
    for stage in ("pixels", "cropped"):
        file = tmp_path / f"{stage}.npy"
        program("preprocess", *IMAGES, "--model", DATA / "model", "--stage", stage, "--output", file)
        expected, found = np.load(file), model.preprocess(IMAGES, stage=stage)
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes()
        assert model.preprocess(IMAGES[0], stage).tobytes() == expected[0].tobytes()
    native = vitcpp.load(DATA / "model", size="native").preprocess(IMAGES)
    assert isinstance(native, list) and len({image.shape for image in native}) > 1


def test_features(model: vitcpp.Model, tmp_path: Path) -> None:
    pixels = model.preprocess(IMAGES)
    np.save(tmp_path / "x.npy", pixels)
    names = "tokens,block.0,block.-2"
    program("embed", tmp_path / "x.npy", "--model", DATA / "model", "--features", names, "--output", tmp_path / "f.npz")
    expected = np.load(tmp_path / "f.npz")
    depth = model.config["depth"]
    assert model.forward_features(pixels).tobytes() == expected["tokens"].tobytes()
    tokens, (first, last) = model.forward_intermediates(pixels, indices=[-2, 0], output_fmt="NLC")
    prefix = expected["tokens"].shape[1] - first.shape[1]
    assert tokens.tobytes() == expected["tokens"].tobytes()
    assert np.array_equal(first, expected["block.0"][:, prefix:])
    assert np.array_equal(last, expected[f"block.{depth - 2}"][:, prefix:])
    assert model.encode_image(pixels).tobytes() == model.embed(IMAGES).tobytes()
    one = model.preprocess(IMAGES[0])
    assert one.ndim == 3
    assert model.forward_features(one).tobytes() == expected["tokens"][:1].tobytes()
    assert model.forward_features(one).ndim == 3


def test_sizes(tmp_path: Path) -> None:
    small = [DATA / "golden/tagger" / name for name in ("wide.png", "tall.png")]
    for size, text in ((48, "48"), ((32, 64), "32x64"), ("native", "native")):
        found = vitcpp.load(DATA / "model", size=size).embed(small)
        program("embed", *small, "--model", DATA / "model", "--size", text, "--output", tmp_path / "s.npy")
        assert found.tobytes() == np.load(tmp_path / "s.npy").tobytes()


def test_facts(model: vitcpp.Model) -> None:
    facts = json.loads(program("info", "--model", DATA / "model", "--json"))
    expected = facts["model"]["config"] if "model" in facts else facts["config"]
    assert model.config == expected
    assert model.precision == "float32" and len(model.fingerprint) == 16 and len(model.labels) == 10
    assert vitcpp.version() == vitcpp.__version__ and "vitcpp.Model" in repr(model)
    assert model.preprocess_config is not None and "mean" in model.preprocess_config
    assert "Usage" in program("--help") or "usage" in program("--help").lower()


def test_an_import_loads_nothing_heavy() -> None:
    code = "import sys, vitcpp; print({'numpy', 'ctypes', 'PIL', 'torch', 'vitcpp._library'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize("name", ["rope-axial", "rope-mixed", "timm-vit", "hf-dinov3", "hf-siglip", "open-clip"])
def test_layouts_load(name: str) -> None:
    model = vitcpp.load(DATA / "golden/models" / name)
    config = model.config
    pixels = np.zeros((2, 3, config["image_height"], config["image_width"]), np.float32)
    assert model.encode_image(pixels).shape == (2, model.embedding_dim)


def test_rope_scaling_is_that_of_the_program(tmp_path: Path) -> None:
    output = tmp_path / "out.npy"
    arguments = ["--size", 60, "--rope-scaling", "ntk,temperature=log", "--model", DATA / "model"]
    program("embed", IMAGES[0], *arguments, "--output", output)
    model = vitcpp.load(DATA / "model", size=60, rope_scaling="ntk,temperature=log")
    assert np.array_equal(model.embed(IMAGES[0]), np.load(output)[0])
    with pytest.raises(vitcpp.ArgumentError):
        vitcpp.load(DATA / "model", rope_scaling="dynamic")


def test_without_a_path_the_included_model(model: vitcpp.Model) -> None:
    assert vitcpp.load().fingerprint == model.fingerprint
