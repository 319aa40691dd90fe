"""Prompts from Python: results are those of the program, in the forms and the order of transformers."""

import threading

import numpy as np
import pytest
import vitcpp
from conftest import DATA, json_lines, program

MODEL = DATA / "golden/prompts/sam3"
DRAWING = DATA / "golden/prompts/images/drawing.png"


@pytest.fixture(scope="module")
def sam():
    return vitcpp.PromptModel(MODEL, threads=1)


@pytest.fixture(scope="module")
def image(sam):
    return sam.encode(DRAWING)


def printed(folder, *arguments):
    return json_lines(
        program("segment", "--model", MODEL, DRAWING, "--format", "json", "--output", folder / "out.npz", *arguments)
    )[0]["segments"]


def test_phrases_are_those_of_the_program(sam, image, tmp_path):
    assert image.size == (52, 75) and image.nbytes > 1000
    found = sam.segment(image, "a cat", threshold=0.05)
    expected = printed(tmp_path, "--classes", "a cat", "--threshold", "0.05")
    arrays = np.load(tmp_path / "out.npz")
    order = np.argsort(-found["scores"], kind="stable")
    assert len(expected) > 1 and [s["score"] for s in expected] == [pytest.approx(x) for x in found["scores"][order]]
    assert np.array_equal(found["masks"][order], arrays["masks.0"] != 0)
    assert found["masks"].dtype == np.bool_ and np.array_equal(found["boxes"][order], arrays["boxes.0"])
    both = sam.segment(DRAWING, ["a cat", "a dog"], threshold=0.05)
    assert np.array_equal(both[0]["masks"], found["masks"]) and not np.array_equal(both[1]["scores"], found["scores"])
    boxes = sam.detect(image, "a cat", threshold=0.05)
    assert np.array_equal(boxes["boxes"], found["boxes"]) and np.array_equal(boxes["scores"], found["scores"])
    assert len(sam.segment(image, "a cat", threshold=1)["scores"]) == 0


def test_results_are_in_the_order_of_queries(sam, image):
    """As transformers' post-processing keeps them; all queries are kept at threshold 0."""
    everything = sam.segment(image, "a cat", threshold=0)
    some = sam.segment(image, "a cat", threshold=float(np.median(everything["scores"])))
    places = [np.flatnonzero((everything["boxes"] == box).all(-1))[0] for box in some["boxes"]]
    assert 0 < len(places) < len(everything["scores"]) and places == sorted(places)


def test_boxes_pixels_and_objects(sam, image, tmp_path):
    (tmp_path / "boxes.jsonl").write_text(
        f'{{"file": "{DRAWING}", "boxes": [{{"box": [10, 8, 40, 30]}}, {{"box": [50, 5, 70, 20], "positive": false}}]}}'
    )
    shown = sam.segment(image, input_boxes=[[10, 8, 40, 30], [50, 5, 70, 20]], input_boxes_labels=[1, 0], threshold=0.05)
    expected = printed(tmp_path, "--boxes", tmp_path / "boxes.jsonl", "--threshold", "0.05")
    assert sorted(shown["scores"], reverse=True) == [pytest.approx(s["score"]) for s in expected]
    pixels = sam.pixels(image, "a cat")
    area = next((s["area"] for s in printed(tmp_path, "--classes", "a cat", "--task", "semantic")), 0)
    assert pixels.shape == (52, 75) and np.count_nonzero(pixels > 0.5) == area
    cup = sam.segment_object(image, [[20, 15], [60, 40]], [1, 0])
    best = printed(tmp_path, "--points", "20,15", "--points", "60,40,-")[0]
    assert cup["masks"].shape == (3, 52, 75) and float(cup["iou_scores"].max()) == pytest.approx(best["score"])
    assert cup["masks"][cup["iou_scores"].argmax()].sum() == best["area"]
    again = sam.segment_object(image, [[20, 15]], input_mask=cup["pred_masks"][0], multimask_output=False)
    assert again["masks"].shape == (1, 52, 75) and np.isfinite(again["object_score_logits"])
    assert sam.segment_object(image, input_box=[10, 8, 40, 30])["masks"].any()


def test_threads_share_a_model_and_an_image(sam, image):
    expected = sam.segment(image, "a dog", threshold=0.05)
    found = [None] * 3

    def work(index):
        found[index] = sam.segment(image, "a dog", threshold=0.05)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(found))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(one["masks"], expected["masks"]) for one in found)


def test_what_is_wrong_is_named(sam, image, tmp_path):
    with pytest.raises(vitcpp.UnsupportedError):
        vitcpp.PromptModel(DATA / "golden/dense/hf-eomt")
    with pytest.raises(vitcpp.FileError):
        sam.encode(tmp_path / "missing.png")
    with pytest.raises(vitcpp.ArgumentError, match="text or at least one box"):
        sam.segment(image)
    with pytest.raises(vitcpp.ArgumentError, match="threshold"):
        sam.segment(image, "a cat", threshold=2)
    with pytest.raises(vitcpp.ArgumentError, match="3 numbers"):
        sam.segment(image, input_boxes=[[1, 2, 3]])
    with pytest.raises(vitcpp.ArgumentError, match="input_boxes_labels"):
        sam.segment(image, input_boxes=[[1, 2, 30, 40]], input_boxes_labels=[1, 0])
    with pytest.raises(vitcpp.ArgumentError, match="outside of the image"):
        sam.segment(image, input_boxes=[[900, 2, 950, 40]])
    with pytest.raises(vitcpp.ArgumentError, match="point, a box or a mask|points"):
        sam.segment_object(image)
    with pytest.raises(vitcpp.ArgumentError, match="expected logits"):
        sam.segment_object(image, [[1, 2]], input_mask=np.zeros(3))
    with pytest.raises(vitcpp.ArgumentError, match="prompt_rule"):
        vitcpp.PromptModel(MODEL, prompt_rule="mine")
