"""Wrong calls and damaged inputs raise and say why; nothing crashes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, IMAGES

import vitcpp
from vitcpp import position

JPEG = IMAGES[0].read_bytes()


def check(kind: type[vitcpp.Error], text: str, call) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value) and isinstance(caught.value, vitcpp.Error)
    assert str(caught.value).startswith("[")


def test_models(tmp_path: Path) -> None:
    check(vitcpp.FileError, "/nonexistent", lambda: vitcpp.load("/nonexistent"))
    (tmp_path / "a.safetensors").write_bytes(b"x" * 100)
    check(vitcpp.Error, "a.safetensors", lambda: vitcpp.load(tmp_path / "a.safetensors"))
    check(vitcpp.ArgumentError, "float16", lambda: vitcpp.load(DATA / "model", precision="float16"))  # type: ignore[arg-type]
    check(vitcpp.ArgumentError, "threads", lambda: vitcpp.load(DATA / "model", threads=-1))
    for wrong in ("2", 2.5, -1, 10_000, 1 << 40):
        check(vitcpp.ArgumentError, "threads", lambda wrong=wrong: vitcpp.load(DATA / "model", threads=wrong).embed(JPEG))
        check(vitcpp.ArgumentError, "batch", lambda wrong=wrong: vitcpp.load(DATA / "model", batch=wrong))
    for wrong in ("white", (1, 2), (0, 0, 256), (0.5, 0, 0)):
        check(vitcpp.ArgumentError, "pad", lambda wrong=wrong: vitcpp.load(DATA / "model", pad=wrong))
    check(vitcpp.ArgumentError, "overrides", lambda: vitcpp.load(DATA / "model", overrides=["a"]))  # type: ignore[arg-type]
    check(vitcpp.ArgumentError, "nothing", lambda: vitcpp.load(DATA / "model", overrides={"nothing": True}))
    for wrong in ("huge", 32.5, (1, 2, 3), (32, "32"), 0, None):
        check(vitcpp.ArgumentError, "size", lambda wrong=wrong: vitcpp.load(DATA / "model", size=wrong))
    check(vitcpp.ArgumentError, "precision", lambda: vitcpp.load(DATA / "model", precision=[1]))  # type: ignore[arg-type]
    check(vitcpp.Error, "kernels", lambda: vitcpp.load(DATA / "model", kernels="abacus"))
    check(vitcpp.ArgumentError, "zero character", lambda: vitcpp.load("a\0b"))
    with pytest.raises(TypeError):
        vitcpp.load(DATA / "model", surprise=1)


def test_images(model: vitcpp.Model) -> None:
    check(vitcpp.FileError, "/no.jpg", lambda: model.embed("/no.jpg"))
    check(vitcpp.FileError, "/no.jpg", lambda: model.embed([IMAGES[0], "/no.jpg"]))
    check(vitcpp.FormatError, "", lambda: model.embed(JPEG[: len(JPEG) // 2]))
    check(vitcpp.Error, "", lambda: model.embed(b""))
    check(vitcpp.Error, "", lambda: model.embed(b"no image at all"))
    check(vitcpp.FileError, "", lambda: list(model.embed_stream([IMAGES[0], "/no.jpg"], batch_size=1)))
    for dtype in (np.float32, np.float64, np.int64, bool):
        check(vitcpp.ArgumentError, "dtype", lambda dtype=dtype: model.embed(np.zeros((8, 8, 3), dtype)))
    for shape in ((8,), (3, 8, 8), (8, 8, 5), (0, 8, 3), ()):
        check(vitcpp.ArgumentError, "shape", lambda shape=shape: model.embed([np.zeros(shape, np.uint8)]))
    check(vitcpp.ArgumentError, "permute(1, 2, 0)", lambda: model.embed(np.zeros((3, 8, 8), np.uint8)))
    for wrong in (None, object(), {1}):
        check(vitcpp.ArgumentError, "expected paths", lambda wrong=wrong: model.embed([wrong]))
    check(vitcpp.ArgumentError, "clip_frames", lambda: model.embed([[IMAGES[0], IMAGES[1]]]))
    for wrong in (str(IMAGES[0]), IMAGES[0], JPEG, np.zeros((8, 8, 3), np.uint8)):
        check(vitcpp.ArgumentError, "iterable", lambda wrong=wrong: model.embed_stream(wrong))
    for wrong in (None, 3.5, object(), {"a": 1}, [[IMAGES[0]]]):
        with pytest.raises(vitcpp.Error):
            model.embed([wrong])


def test_failures_beside_others(model: vitcpp.Model) -> None:
    vectors, errors = model.embed_or_errors([IMAGES[0], "/no.jpg", IMAGES[1], JPEG[:999]])
    assert [error is None for error in errors] == [True, False, True, False]
    assert vectors[[0, 2]].tobytes() == model.embed(IMAGES[:2]).tobytes()
    assert np.isnan(vectors[[1, 3]]).all() and "/no.jpg" in str(errors[1])
    vectors, errors = model.embed_or_errors(["/a.jpg", "/b.jpg"])
    assert vectors.shape == (2, model.embedding_dim) and np.isnan(vectors).all()


class Unreadable:
    """A file, and an array, whose own code raises."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def read(self) -> bytes:
        raise self._error


class NoArray:
    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise KeyError("no array")


NO_IMAGES = {
    "float32": np.zeros((4, 4, 3), np.float32),
    "missing": float("nan"),
    "none": None,
    "zero character": "a\0b",
    "surrogate": "\ud800",
    "planes": np.zeros((3, 8, 8), np.uint8),
    "objects": np.array([None, 1], object),
    "lists": [[1, 2], [3]],
    "gaps": memoryview(bytes(64))[::2],
    "disk": Unreadable(OSError(5, "Input/output error")),
    "memory": Unreadable(MemoryError()),
    "closed": Unreadable(ValueError("read of closed file")),
    "array": NoArray(),
}


@pytest.mark.parametrize("name", NO_IMAGES)
def test_no_images_beside_others(model: vitcpp.Model, name: str) -> None:
    wrong, expected = NO_IMAGES[name], model.embed(IMAGES[:2])
    for items in ([IMAGES[0], wrong, IMAGES[1]], [wrong, *IMAGES[:2]], [IMAGES[0], wrong, "/no.jpg", wrong, IMAGES[1]]):
        vectors, errors = model.embed_or_errors(items)
        failed = [not isinstance(item, Path) for item in items]
        assert [error is not None for error in errors] == failed and np.isnan(vectors).all(1).tolist() == failed
        assert vectors[np.logical_not(failed)].tobytes() == expected.tobytes()
        assert all(error is None or error.startswith("[") and "\n" not in error for error in errors)
        stream = model.embed_stream(items)
        assert items[0] is wrong or next(stream).tobytes() == expected[0].tobytes()
        with pytest.raises(vitcpp.Error):
            next(stream)
        with pytest.raises(vitcpp.Error):
            model.embed(items)
    vectors, errors = model.embed_or_errors([wrong])
    assert np.isnan(vectors).all() and errors[0] is not None
    kind = vitcpp.FileError if name in ("disk", "memory") else vitcpp.ArgumentError
    check(kind, "", lambda: model.preprocess([wrong]))


def test_pixels(model: vitcpp.Model) -> None:
    for wrong in (
        np.zeros((2, 3, 32, 32)),
        np.zeros((32, 32), np.float32),
        np.zeros((2, 4, 32, 32), np.float32),
        np.zeros((0, 3, 32, 32), np.float32),
        "photo.jpg",
        None,
    ):
        with pytest.raises(vitcpp.Error):
            model.forward_features(wrong)
    with pytest.raises(vitcpp.Error):
        model.forward_features(np.zeros((1, 3, 1, 1), np.float32))  # smaller than a patch
    check(vitcpp.ArgumentError, "finite", lambda: model.forward_features(np.full((1, 3, 32, 32), np.nan, np.float32)))
    x = np.zeros((1, 3, 32, 32), np.float32)
    depth = model.config["depth"]
    for indices in (0, depth + 1, [depth], [-depth - 1], []):
        check(vitcpp.ArgumentError, "block", lambda indices=indices: model.forward_intermediates(x, indices))
    for indices in (1.5, "1", [0.5], ["a"]):
        check(vitcpp.ArgumentError, "whole number", lambda indices=indices: model.forward_intermediates(x, indices))
    check(vitcpp.ArgumentError, "NHWC", lambda: model.forward_intermediates(x, output_fmt="NHWC"))  # type: ignore[arg-type]
    check(vitcpp.UnsupportedError, "norm", lambda: model.forward_intermediates(x, [0], norm=True))


def test_classes_and_texts(model: vitcpp.Model, clip: vitcpp.Model) -> None:
    check(vitcpp.UnsupportedError, "text", lambda: model.encode_text("a cat"))
    check(vitcpp.Error, "text", lambda: model.classify(IMAGES[0], candidate_labels=["a cat"]))
    check(vitcpp.MismatchError, "classifier", lambda: clip.classify(IMAGES[0]))
    for top in (0, 2.5, "3"):
        check(vitcpp.ArgumentError, "top", lambda top=top: model.classify(IMAGES[0], top=top))
    check(vitcpp.ArgumentError, "threshold", lambda: model.classify(IMAGES[0], threshold="0.5"))
    check(vitcpp.ArgumentError, "list", lambda: clip.classify(IMAGES[0], candidate_labels="cat"))
    check(vitcpp.ArgumentError, "template", lambda: model.classify(IMAGES[0], template="{}"))
    check(vitcpp.ArgumentError, "{}", lambda: clip.classify(IMAGES[0], candidate_labels=["a"], template="no"))
    check(vitcpp.ArgumentError, "classes", lambda: clip.classify(IMAGES[0], candidate_labels=[]))
    check(vitcpp.ArgumentError, "twice", lambda: clip.classify(IMAGES[0], candidate_labels=["a", "a"]))
    check(vitcpp.ArgumentError, "Unicode", lambda: clip.encode_text("\ud800"))
    check(vitcpp.ArgumentError, "Unicode", lambda: clip.encode_text([b"bytes"]))  # type: ignore[list-item]
    check(vitcpp.ArgumentError, "no texts", lambda: clip.encode_text([]))
    check(vitcpp.FileError, "/none", lambda: vitcpp.Tokenizer("/none"))


GRADIENT = RuntimeError("Can't call numpy() on Tensor that requires grad.")


class Tensor:
    def __array__(self, *_: object, **__: object) -> np.ndarray:
        raise GRADIENT


def test_numbers_keep_their_values(model: vitcpp.Model) -> None:
    table = position.RopeTable.axial((1, 2), position.frequencies(2))
    x = np.arange(16.0).reshape(1, 2, 8)
    expected = table.rotate(x)
    for same in (x.astype(">f8"), x.astype(np.float16), x.astype(object), x.astype(np.int64), x[..., ::-1][..., ::-1], x.tolist()):
        assert table.rotate(same).tobytes() == expected.tobytes()
    for dates in (x * 1j, x.astype(str), x.astype("M8[s]"), np.full((1, 2, 8), None), Tensor()):
        check(vitcpp.ArgumentError, "x", lambda dates=dates: table.rotate(dates))
    check(vitcpp.ArgumentError, "real", lambda: vitcpp.patchify(np.full((1, 3, 4, 4), 1j), 2))
    for dtype in ("float32", "float64"):
        swapped = position.sinusoidal((3, 4), 8, dtype=np.dtype(dtype).newbyteorder())
        assert np.array_equal(swapped, position.sinusoidal((3, 4), 8, dtype=dtype)) and swapped.dtype == dtype
    pixels = np.random.default_rng(0).integers(0, 256, (32, 32, 3), np.uint8)
    for view in (pixels[::-1], pixels[:, ::-1], pixels[..., ::-1], np.broadcast_to(pixels[:1], pixels.shape), pixels.transpose(1, 0, 2)):
        assert np.array_equal(model.embed(view), model.embed(view.copy()))


def test_labels_keep_their_values(model: vitcpp.Model) -> None:
    pixels, labels = np.zeros((32, 32, 3), np.uint8), np.repeat([[0, 1]], 16, 1).repeat(32, 0)
    pixels[:, 16:] = 200
    for dtype in ("int8", "uint16", ">i4", "uint64", bool):
        found = vitcpp.PixelClassifier(model, "centroid").fit(pixels, labels.astype(dtype)).predict(pixels)
        assert found[0, [0, -1]].tolist() == [0, 1]
    far = vitcpp.PixelClassifier(model, "centroid").fit(pixels, (labels << 40)[:, ::-1]).predict(pixels)
    assert far[0, [0, -1]].tolist() == [1 << 40, 0]
    beyond = labels.astype(np.uint64)
    beyond[0] = (1 << 64) - 1  # -1 of another type
    check(vitcpp.ArgumentError, "a label", lambda: vitcpp.PixelClassifier(model, "centroid").fit(pixels, beyond))


def test_arguments_of_other_types(model: vitcpp.Model) -> None:
    layers = vitcpp.AnomalyModel.fit(model, [IMAGES[0]], layers=[-2, -1]).score(IMAGES[1]).score
    assert vitcpp.AnomalyModel.fit(model, [IMAGES[0]], layers=(x for x in [-2, -1])).score(IMAGES[1]).score == layers  # type: ignore[arg-type]
    vitcpp.PixelClassifier(model, layers=(x for x in [-1]), scales=(x for x in [1.0]))  # type: ignore[arg-type]
    assert len(model.classify(IMAGES[0], top=(1 << 31) - 1)) == len(model.labels)
    pose = vitcpp.load(DATA / "golden/boxes/vitpose", threads=1)
    calls = [
        lambda: model.embed(IMAGES[0], normalize="yes"),  # type: ignore[arg-type]
        lambda: model.embed(IMAGES[0], normalize=0.5),  # type: ignore[arg-type]
        lambda: vitcpp.AnomalyModel.fit(model, [IMAGES[0]], foreground="yes"),  # type: ignore[arg-type]
        lambda: vitcpp.AnomalyModel.fit(model, [IMAGES[0]], score=[1]),  # type: ignore[arg-type]
        lambda: vitcpp.PixelClassifier(model, [1]),  # type: ignore[arg-type]
        lambda: vitcpp.load(DATA / "model", size=np.array([32, 32])),  # type: ignore[arg-type]
        lambda: vitcpp.load(DATA / "model", std=10**400),
        lambda: vitcpp.load(DATA / "model", mean="123"),  # type: ignore[arg-type]
        lambda: position.frequencies(3, a=10**400),
        lambda: position.RopeTable.axial((1, 2), [1.0], order=np.array(["xy", "yx"])),  # type: ignore[arg-type]
        lambda: position.identify({"cos": [[1], [1, 2]]}),
        lambda: pose.pose([IMAGES[0]], boxes=3),
        lambda: pose.pose(IMAGES[0], boxes=[{"box": {"xmin": 0}}]),
        lambda: pose.detect(IMAGES[0], threshold=10**400),
    ]
    for call in calls:
        check(vitcpp.ArgumentError, "", call)


def test_closed_models() -> None:
    with vitcpp.load(DATA / "model") as model:
        kept = model.embed(IMAGES[0])
        pixels = model.preprocess(IMAGES)
        stream = model.embed_stream(IMAGES)
    copy = kept.copy()
    for call in (
        lambda: model.embed(IMAGES[0]),
        lambda: model.preprocess(IMAGES),
        lambda: model.classify(IMAGES[0]),
        lambda: model.forward_features(pixels),
        lambda: model.encode_text("a"),
        lambda: next(stream),
        lambda: model.embed_stream(IMAGES),
    ):
        check(vitcpp.ArgumentError, "closed", call)
    model.close()
    assert "closed" in repr(model) and np.array_equal(kept, copy)  # arrays outlive the model


def test_program() -> None:
    command = [sys.executable, "-m", "vitcpp", "classify", "/no.jpg", "--model", str(DATA / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "/no.jpg" in done.stderr
    assert subprocess.run([*command[:3], "--no-such"], capture_output=True, check=False).returncode == 2
