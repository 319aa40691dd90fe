"""Threads share a model; memory does not grow."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from conftest import DATA, IMAGES

import vitcpp


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
