"""Vectors of pages and questions: those of the library in float64, and the errors of wrong arguments."""

from pathlib import Path

import numpy as np
import pytest

import vitcpp

GOLDEN = Path(__file__).resolve().parents[2] / "data" / "golden"
IMAGES = [GOLDEN / "pages/images" / f"{name}.png" for name in ("square", "tall", "wide")]


@pytest.fixture(scope="module")
def model():
    return vitcpp.PageModel(GOLDEN / "pages/colmodernvbert", threads=1)


def test_scores_are_sums_of_best_matches(model):
    pages, questions = model.encode_pages(IMAGES), model.encode_queries(["revenue by quarter", "two cats"])
    assert len({len(page) for page in pages}) > 1
    for vectors in (*pages, *questions):
        assert vectors.dtype == np.float32 and vectors.shape[1] == model.dim
        np.testing.assert_allclose(np.linalg.norm(vectors.astype(np.float64), axis=1), 1, atol=1e-6)
    scores = model.score(questions, pages)
    wanted = [[(q.astype(np.float64) @ p.astype(np.float64).T).max(1).sum() for p in pages] for q in questions]
    np.testing.assert_allclose(scores, wanted, rtol=1e-5)


def test_the_same_bits_in_any_thread_and_form(model):
    from concurrent.futures import ThreadPoolExecutor

    expected = model.encode_pages([IMAGES[0]])[0]
    with ThreadPoolExecutor(3) as pool:
        for found in pool.map(lambda _: model.encode_pages([IMAGES[0].read_bytes()])[0], range(3)):
            np.testing.assert_array_equal(found, expected)
    several = vitcpp.PageModel(GOLDEN / "pages/colmodernvbert", threads=2)
    np.testing.assert_array_equal(several.encode_queries(["two cats"])[0], model.encode_queries(["two cats"])[0])


def test_wrong_arguments_are_named(model):
    page = model.encode_pages([IMAGES[0]])[0]
    with pytest.raises(vitcpp.UnsupportedError, match="ColModernVBERT"):
        vitcpp.PageModel(GOLDEN / "models/hf-siglip")
    with pytest.raises(vitcpp.ArgumentError, match="texts"):
        model.encode_queries("a question")
    with pytest.raises(vitcpp.ArgumentError, match="<image>"):
        model.encode_queries(["what is <image>"])
    with pytest.raises(vitcpp.ArgumentError, match="queries of shape"):
        model.score([page[:, 1:]], [page])
    with pytest.raises(vitcpp.ArgumentError, match=r"\(0, "):
        model.score([page], [page[:0]])
    with pytest.raises(vitcpp.Error, match="none.png"):
        model.encode_pages([GOLDEN / "pages/images/none.png"])
    assert model.score([], [page]).shape == (0, 1)
