"""Threads share a model; memory does not grow."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, IMAGES

import vitcpp
from vitcpp import _library


def resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_threads_share_a_model(model: vitcpp.Model) -> None:
    expected = model.embed(IMAGES).tobytes()
    labels = model.classify(IMAGES)
    with ThreadPoolExecutor(4) as pool:
        vectors = list(pool.map(lambda _: model.embed(IMAGES).tobytes(), range(20)))
        found = list(pool.map(lambda _: model.classify(IMAGES), range(20)))
    assert set(vectors) == {expected} and all(one == labels for one in found)


def test_texts_of_several_threads(clip: vitcpp.Model) -> None:
    texts = [f"a photo of {number} cats" for number in range(8)]
    expected = [clip.encode_text(text).tobytes() for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda text: clip.encode_text(text).tobytes(), texts)) == expected
        scores = list(pool.map(lambda text: clip.classify(IMAGES[0], candidate_labels=[text, "x"]), texts))
    assert all(len(score) == 2 for score in scores)


def test_closing_under_running_calls() -> None:
    for _ in range(5):
        model = vitcpp.load(DATA / "model", threads=1)
        failures = []

        def work(model: vitcpp.Model = model) -> None:
            try:
                while True:
                    model.embed(IMAGES)
            except vitcpp.ArgumentError as error:
                failures.append(error)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        model.embed(IMAGES)
        model.close()
        for thread in threads:
            thread.join()
        assert len(failures) == 3


LABELS = np.repeat([[0, 1]], 16, 1).repeat(32, 0)
STROKES = np.repeat(LABELS[:, :, None] * 200, 3, 2).astype(np.uint8)


def fitted(model: vitcpp.Model) -> vitcpp.PixelClassifier:
    return vitcpp.PixelClassifier(model, "centroid", threads=1).fit(STROKES, LABELS)


def bank_of(model: vitcpp.Model) -> vitcpp.AnomalyModel:
    return vitcpp.AnomalyModel.fit(model, IMAGES[:2])


def score_of(model: vitcpp.Model) -> Callable[[], Any]:
    bank = bank_of(model)
    return lambda: bank.score(IMAGES[2])


def threshold_of(model: vitcpp.Model, folder: Path) -> Any:
    bank_of(model).save(folder / "bank")
    return lambda: vitcpp.AnomalyModel.load(model, folder / "bank").threshold


def classes_of(model: vitcpp.Model, folder: Path) -> Any:
    fitted(model).save(folder / "pixels")
    return lambda: vitcpp.PixelClassifier.load(model, folder / "pixels").predict(STROKES)


# function of the library in which the model is closed -> checkpoint, and what makes the call of a model
CLOSED_IN: dict[str, tuple[str, Callable[[vitcpp.Model, Path], Callable[[], Any]]]] = {
    "vit_session_run": ("model", lambda m, _: lambda: m.embed(IMAGES)),
    "vit_session_create": ("model", lambda m, _: lambda: m.attention(IMAGES)),
    "vit_preprocessor_run": ("model", lambda m, _: lambda: m.preprocess(IMAGES)),
    "vit_classifier_run": ("model", lambda m, _: lambda: m.classify(IMAGES)),
    "vit_classifier_top": ("model", lambda m, _: lambda: m.classify(IMAGES[0])),
    "vit_classifier_create_zero_shot": ("golden/text/openclip-siglip", lambda m, _: lambda: m._classes_of(("a", "b"), ()) and 1),
    "vit_text_encoder_run": ("golden/text/openclip-siglip", lambda m, _: lambda: m.encode_text("a cat")),
    "vit_tokenizer_run": ("golden/text/openclip-siglip", lambda m, _: lambda: m.tokenize("a cat")),
    "vit_session_depth": ("golden/dense/hf-depth-anything", lambda m, _: lambda: m.depth(IMAGES[0])),
    "vit_model_depth_unit": ("golden/dense/hf-depth-anything", lambda m, _: lambda: m.depth_unit),
    "vit_session_segment": ("golden/dense/hf-eomt", lambda m, _: lambda: m.segment(IMAGES[0], threshold=0.0)),
    "vit_model_num_head_labels": ("golden/boxes/vitpose", lambda m, _: lambda: m.head_labels),
    "vit_model_head_label": ("golden/dense/hf-eomt", lambda m, _: lambda: m.head_labels),
    "vit_detector_run": ("golden/boxes/yolos", lambda m, _: lambda: m.detect(IMAGES[0], threshold=0.0)),
    "vit_session_pose": ("golden/boxes/vitpose", lambda m, _: lambda: m.pose(IMAGES[0])),
    "vit_anomaly_fit": ("model", lambda m, _: lambda: bank_of(m).threshold),
    "vit_anomaly_run": ("model", lambda m, _: score_of(m)),
    "vit_anomaly_load": ("model", threshold_of),
    "vit_pixels_fit": ("model", lambda m, _: lambda: fitted(m).predict(STROKES)),
    "vit_pixels_load_upsampled": ("model", classes_of),
}


class Closing:
    """The library, where one function first closes a model, as another thread may at that moment."""

    def __init__(self, library: Any, name: str, model: vitcpp.Model) -> None:
        self._library, self._name, self._model = library, name, model
        self.reached = False

    def __getattr__(self, name: str) -> Any:
        function = getattr(self._library, name)
        if name != self._name:
            return function

        def closing(*arguments: Any) -> Any:
            self.reached = True
            self._model.close()
            return function(*arguments)

        closing.argtypes = function.argtypes  # type: ignore[attr-defined]
        return closing


def equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=True))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, (list, tuple)):
        return len(one) == len(other) and all(map(equal, one, other))
    return bool(one == other)


@pytest.mark.parametrize("name", CLOSED_IN)
def test_closing_during_a_call(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    checkpoint, make = CLOSED_IN[name]
    expected = make(vitcpp.load(DATA / checkpoint, threads=1), tmp_path)()
    model = vitcpp.load(DATA / checkpoint, threads=1)
    call = make(model, tmp_path)
    library = Closing(_library.library, name, model)
    with monkeypatch.context() as patch:
        patch.setattr(_library, "library", library)
        try:
            found = call()
        except vitcpp.ArgumentError as error:  # what follows the function needs the model
            assert "is closed" in str(error)
            found = expected
    assert library.reached and equal(found, expected)
    assert not vars(model._local) and model._text is None and not model._zero_shot and not model._detectors


def test_the_library_takes_no_pointers() -> None:
    table = vitcpp.RopeTable.axial((2, 3), vitcpp.position.frequencies(4))
    address = table._handle._pointer
    for pointer in (address, address.value, None):
        with pytest.raises(vitcpp.ArgumentError, match="Handle"):
            _library.call("vit_rope_table_get", pointer, None, None)
    for numbers in (np.zeros(4).ctypes.data, np.zeros(8)[::2], np.zeros(4, ">f8")):
        with pytest.raises(vitcpp.ArgumentError, match="array"):
            _library.call("vit_rope_frequencies", 0, 4, 100.0, 0.0, numbers)


@pytest.mark.parametrize("call", ["depth", "anomaly", "fit"])
def test_closing_under_running_heads(call: str) -> None:
    image = np.random.default_rng(0).integers(0, 255, (300, 300, 3), np.uint8)
    labels = np.repeat([[0, 1]], 150, 1).repeat(300, 0)
    for _ in range(10):
        model = vitcpp.load(DATA / ("golden/dense/hf-depth-anything" if call == "depth" else "model"), threads=1)
        started, failures = threading.Event(), []

        def work(model: vitcpp.Model = model, started: threading.Event = started, failures: list[Any] = failures) -> None:
            try:
                bank = vitcpp.AnomalyModel.fit(model, [image]) if call == "anomaly" else None
                classes = vitcpp.PixelClassifier(model, "centroid", threads=1)
                started.set()
                while True:
                    model.depth([image] * 4) if call == "depth" else bank.score([image] * 4) if bank else classes.fit(image, labels)
            except vitcpp.ArgumentError as error:
                failures.append(error)

        thread = threading.Thread(target=work)
        thread.start()
        started.wait()
        model.close()
        thread.join()
        assert "is closed" in str(failures)


def test_fitting_under_running_calls(model: vitcpp.Model) -> None:
    classes = fitted(model)
    expected = classes.predict(STROKES)
    with ThreadPoolExecutor(2) as pool:
        fits = pool.submit(lambda: [classes.fit(STROKES, LABELS) for _ in range(20)])
        while not fits.done():
            assert np.array_equal(classes.predict(STROKES), expected)
        fits.result()


def test_memory_does_not_grow(model: vitcpp.Model) -> None:
    pixels = np.zeros((32, 32, 3), np.uint8)

    def calls(count: int) -> None:
        for index in range(count):
            model.embed(pixels)
            if index % 10 == 0:
                model.classify(pixels)
                model.embed_or_errors([pixels, b"no image"])
                model.preprocess([pixels] * (index % 7 + 1))

    calls(200)
    before = resident_bytes()
    calls(int(os.environ.get("VIT_TEST_CALLS", "1000")))
    assert resident_bytes() - before < 4 << 20
