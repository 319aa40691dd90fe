"""Dense heads from Python: the numbers of the goldens, in the forms of transformers' pipelines."""

import numpy as np
import pytest
import vitcpp
from conftest import DATA, IMAGES, json_lines, program

BOXES = DATA / "golden/boxes"
WORDS = ["a cat", "the remote control", "dog"]


def test_depth():
    model = vitcpp.load(DATA / "golden/dense/hf-depth-anything", threads=1)
    image = np.random.default_rng(1).integers(0, 256, (17, 23, 3), dtype=np.uint8)
    found = model.depth(image)
    assert model.depth_unit == "metre" and found["predicted_depth"].shape == (17, 23)
    assert found["depth"].dtype == np.uint8 and found["depth"].min() == 0 and found["depth"].max() == 255
    several = model.depth([image, image[:10]])
    assert np.array_equal(several[0]["predicted_depth"], found["predicted_depth"])
    assert several[1]["predicted_depth"].shape == (10, 23)


@pytest.mark.parametrize("subtask", ["semantic", "instance", "panoptic"])
def test_segments_are_those_of_the_program(subtask, tmp_path):
    folder = DATA / "golden/dense/hf-eomt"
    model = vitcpp.load(folder, threads=1)
    shares = {"threshold": 0.05, "mask_threshold": 0.4, "overlap_mask_area_threshold": 0.1}
    options = {"semantic": {}, "instance": {"threshold": 0.05}, "panoptic": shares}[subtask]
    words = [word for name, value in options.items()
             for word in (f"--{name.removesuffix('_mask_area_threshold').replace('_', '-')}", value)]  # fmt: skip
    line = json_lines(program("segment", "--model", folder, "--task", subtask, *words, "--output", tmp_path / "x.npz",
                              IMAGES[0]))[0]  # fmt: skip
    found = model.segment(IMAGES[0], subtask, **options)
    ids = np.load(tmp_path / "x.npz")["segmentation.0"]
    assert len(found) == len(line["segments"]) > 0
    for segment, expected in zip(found, line["segments"]):
        assert segment["label"] == expected["label"] and segment["score"] == expected["score"]
        assert segment["mask"].dtype == np.uint8 and (segment["mask"] == 255).sum() == expected["area"]
        assert np.array_equal(segment["mask"] == 255, ids == expected["id"])
    assert len(model.segment([IMAGES[0]] * 2, subtask, **options)) == 2
    if subtask == "panoptic":  # what the files are made for, by the thresholds of the pipeline
        assert [s["score"] for s in model.segment(IMAGES[0])] == [s["score"] for s in found if s["score"] > 0.9]
        merged = model.segment(IMAGES[0], subtask, stuff_classes=[0, 1, 2], **options)
        assert len(merged) == len({segment["label"] for segment in merged})


def test_boxes_of_words_are_those_of_the_program():
    model = vitcpp.load(BOXES / "owlv2", threads=1)
    picture = BOXES / "owlv2/wide.png"
    found = model.detect(picture, candidate_labels=WORDS, threshold=0.3)
    line = json_lines(program("detect", "--model", BOXES / "owlv2", "--classes", ",".join(WORDS), "--threshold", 0.3,
                              "--format", "json", picture))[0]  # fmt: skip
    assert [d["label"] for d in found] == [b["label"] for b in line["boxes"]] and found
    numbers = [[d["score"], *d["box"].values()] for d in found]
    assert np.array_equal(np.float32(numbers), np.float32([[b["score"], *b["box"]] for b in line["boxes"]]))
    assert len(model.detect([picture, picture], candidate_labels=["dog"])) == 2
    assert model.detect(picture, candidate_labels=WORDS, threshold=1.0) == []


def test_boxes_of_classes():
    model = vitcpp.load(BOXES / "yolos", threads=1)
    found = model.detect(BOXES / "yolos/high.png", threshold=0.0)
    assert model.head_labels == ["person", "bicycle", "car"] and len(found) == 5
    assert set(found[0]) == {"score", "label", "box"} and set(found[0]["box"]) == {"xmin", "ymin", "xmax", "ymax"}
    assert {d["label"] for d in found} <= set(model.head_labels)


def test_poses():
    model = vitcpp.load(BOXES / "vitpose", threads=1)
    picture, boxes = BOXES / "vitpose/wide.png", [[10.5, 4.25, 31.5, 34.25], [-6.0, 15.0, 24.0, 27.5]]
    found = model.pose(picture, boxes)
    lines = json_lines(program("pose", "--model", BOXES / "vitpose", "--format", "json", picture))
    assert len(found) == 2 and found[0]["keypoints"].shape == (4, 2) and found[0]["labels"][0] == "nose"
    whole = model.pose(picture)[0]
    points = np.array(lines[0]["poses"][0]["keypoints"], np.float32)
    assert np.array_equal(np.column_stack([whole["keypoints"], whole["scores"]]), points)
    nested = model.pose([picture, picture], [[], [{"box": dict(zip(("xmin", "ymin", "xmax", "ymax"), boxes[0]))}]])
    assert nested[0] == [] and np.array_equal(nested[1][0]["keypoints"], found[0]["keypoints"])
    some = model.pose(picture, [boxes[0], [900, 0, 920, 9]])
    assert np.array_equal(some[0]["keypoints"], found[0]["keypoints"])
    assert np.isnan(some[1]["keypoints"]).all() and (some[1]["scores"] == 0).all() and len(some[1]["scores"]) == 4


def test_what_does_not_fit_is_named():
    model = vitcpp.load(BOXES / "yolos", threads=1)
    with pytest.raises(vitcpp.MismatchError, match="depth"):
        model.depth(BOXES / "yolos/high.png")
    with pytest.raises(vitcpp.MismatchError, match="classes"):
        model.segment(BOXES / "yolos/high.png")
    eomt = vitcpp.load(DATA / "golden/dense/hf-eomt")
    for options, words in (({"subtask": "thing"}, "panoptic"), ({"threshold": 2}, "threshold"),
                           ({"stuff_classes": [3]}, "3"), ({"stuff_classes": [-1]}, "stuff_classes")):  # fmt: skip
        with pytest.raises(vitcpp.ArgumentError, match=words):
            eomt.segment(IMAGES[0], **options)
    with pytest.raises(vitcpp.MismatchError, match="compared with texts"):
        vitcpp.load(BOXES / "owlv2").detect(BOXES / "yolos/high.png")
    with pytest.raises(vitcpp.FileError, match="missing.png"):
        model.detect("missing.png")
    pose = vitcpp.load(BOXES / "vitpose")
    with pytest.raises(vitcpp.ArgumentError, match="empty"):
        pose.pose(BOXES / "vitpose/wide.png", [[5, 5, 5, 9]])
    with pytest.raises(vitcpp.ArgumentError, match="for 1"):
        pose.pose([BOXES / "vitpose/wide.png"], [[], []])
