"""Every public name of the package once, with the type that it is said to have: mypy --strict reads this file, test_names.py runs it and
checks that no name is missing. `data` is the folder data of a checkout."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import vitcpp
from vitcpp import position

Floats = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


def vectors(model: vitcpp.Model, picture: Path) -> None:
    one: Floats = model.embed(picture, normalize=True)
    both, failures = model.embed_or_errors([picture, b"no image"])
    reasons: list[str | None] = failures
    streamed: list[Floats] = list(model.embed_stream([picture], batch_size=2))
    same: Floats = model.encode_image([picture], normalize=True)
    assert one.shape == (model.embedding_dim,) and np.isnan(both[1]).all() and reasons[1] and len(streamed) == len(same) == 1
    pixels: Any = model.preprocess([picture])
    tokens: Floats = model.forward_features(pixels)
    last: Any = model.forward_intermediates(pixels, indices=1)
    assert tokens.shape[0] == 1 and last
    facts: tuple[dict[str, Any], dict[str, Any] | None] = model.config, model.preprocess_config
    texts: tuple[str, str, str] = model.fingerprint, model.precision, model.kernels
    assert all(facts) and all(texts)


def steps(model: vitcpp.Model, picture: Path) -> None:
    patches: Floats = vitcpp.patchify(np.zeros((1, 3, 8, 8)), 4)
    heads = patches.reshape(1, 4, 3, 16)
    table = position.RopeTable.axial((2, 2), position.frequencies(4))
    attended: Floats = vitcpp.parts.attention(heads, heads, heads, table)
    same: Floats = vitcpp.attention(heads, heads, heads)
    features: Floats = model.patches(picture)
    probabilities: Floats = model.attention(str(picture), block=0)
    row: Floats = model.rollout(picture)
    assert attended.shape == same.shape and features.ndim == probabilities.ndim == 3 and row.ndim == 1


def positions() -> None:
    resampled: Floats = position.resample_table(np.zeros((4, 2)), (2, 2), (3, 3))
    rows: Doubles = position.nezha_rows(1, 4)
    index: npt.NDArray[np.int64] = position.relative_index(2, 1)
    q = np.zeros((1, 1, 2, 4))
    out, probabilities = position.relative_attention(q, q, q, rows, rows)
    scaled = position.RopeTable.axial((2, 2), position.frequencies(4), trained=(1, 1), scaling="ntk")
    factor: float = scaled.logit_factor
    both: tuple[Doubles, Doubles] = (out, probabilities)
    assert resampled.shape == (9, 2) and index.shape == (2, 2) and factor == 1.0 and len(both) == 2


def classes(model: vitcpp.Model, picture: Path) -> None:
    best: list[vitcpp.Score] = model.classify(picture, top=1)
    label: str = best[0]["label"]
    score: float = best[0]["score"]
    names: list[str] = model.labels
    assert label in names and 0 < score <= 1


def words(folder: Path, picture: Path) -> None:
    assert vitcpp.load().labels
    with vitcpp.load(folder) as model:
        of_texts: Floats = model.encode_text(["a cat", "a dog"])
        ids: npt.NDArray[np.int32] = model.tokenize("a cat")
        found: list[vitcpp.Score] = model.classify(str(picture), candidate_labels=["a cat", "a dog"], template="a photo of {}.")
        assert of_texts.shape[0] == len(found) == 2 and ids.size
    tokenizer = vitcpp.Tokenizer(folder, library="auto")
    several: list[int] = tokenizer("a cat")
    token: str = tokenizer.token(several[0])
    assert isinstance(token, str)


def maps(golden: Path, picture: Path) -> None:
    deep = vitcpp.load(golden / "dense/hf-depth-anything")
    depth: vitcpp.Depth = deep.depth(picture)
    metres: Floats = depth["predicted_depth"]
    unit: str = deep.depth_unit
    assert metres.ndim == 2 and unit == "metre"
    classes_of_pixels: list[vitcpp.Segment] = vitcpp.load(
        golden / "dense/dinov2-heads/model.safetensors", head=golden / "dense/dinov2-heads/voc2012_ms_head.safetensors"
    ).segment(picture)
    mask: npt.NDArray[np.uint8] = classes_of_pixels[0]["mask"]
    yolos = vitcpp.load(golden / "boxes/yolos")
    boxes: list[vitcpp.Detection] = yolos.detect(golden / "boxes/yolos/high.png", threshold=0.0)
    box: vitcpp.BoxEdges = boxes[0]["box"]
    left: float = box["xmin"]
    names: list[str] = yolos.head_labels
    poses: list[vitcpp.Pose] = vitcpp.load(golden / "boxes/vitpose").pose(picture)
    points: Floats = poses[0]["keypoints"]
    assert mask.ndim == 2 and isinstance(left, float) and len(names) == 3 and points.shape[1] == 2


def visual_tokens(golden: Path, folder: Path) -> None:
    shutil.copytree(golden, folder)
    processor = {"image_processor_type": "Qwen2VLImageProcessor", "patch_size": 4, "merge_size": 2, "temporal_patch_size": 2}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    model = vitcpp.load(folder)
    tokens: Any = model.merged(np.zeros((112, 112, 3), np.uint8))
    assert tokens.ndim == 3
    model.close()


def anomalies(model: vitcpp.Model, pictures: Sequence[Path], folder: Path) -> None:
    bank = vitcpp.AnomalyModel.fit(model, pictures, coreset=0.5, score="maximum")
    bank.save(folder / "bank.safetensors")
    found: vitcpp.AnomalyResult = vitcpp.AnomalyModel.load(model, folder / "bank.safetensors").score(pictures[0])
    threshold: float | None = bank.threshold
    answer: bool | None = found.anomalous
    distances: Floats = found.distances
    assert found.score >= 0 and threshold is not None and answer is not None and distances.ndim == 2


def classes_of_pixels(model: vitcpp.Model, folder: Path) -> None:
    image = np.zeros((24, 24, 3), np.uint8)
    image[:, 12:] = 200
    labels = np.full((24, 24), -1)
    labels[2:22, 2:8], labels[2:22, 16:22] = 3, 7
    pixels = vitcpp.PixelClassifier(model, method="logistic", layers=[0], size="native", scales=[1.0], upsample="guided", strength=1.0)
    pixels.fit(image, labels, names=["dark", "bright"]).save(folder / "pixels.safetensors")
    found: Any = pixels.predict(image)
    probabilities: Any = vitcpp.PixelClassifier.load(model, folder / "pixels.safetensors").predict_proba(image)
    iou: float | None = pixels.cross_validated_iou_
    held_out: str = pixels.held_out_
    assert found.shape == (24, 24) and probabilities.shape == (24, 24, 2) and list(pixels.classes_) == [3, 7]
    assert iou is None and held_out == "nothing"


def prompts(golden: Path) -> None:
    sam = vitcpp.PromptModel(golden / "prompts/sam3", threads=1, prompt_rule="library")
    image: vitcpp.PromptImage = sam.encode(golden / "prompts/images/drawing.png")
    size: tuple[int, int] = image.size
    found: vitcpp.Instances = sam.segment(image, "a cat", threshold=0.05)
    several: list[vitcpp.Instances] = sam.segment(image, ["a cat", "a dog"])
    masks: npt.NDArray[np.bool_] = found["masks"]
    boxes: vitcpp.FoundBoxes = sam.detect(image, input_boxes=[[10, 8, 40, 30]], threshold=0.05)
    probabilities: Floats = sam.pixels(image, "a cat")
    cup: vitcpp.ObjectMasks = sam.segment_object(image, [[20, 15]], input_mask=None)
    quality: Floats = cup["iou_scores"]
    assert sam.takes_phrases and sam.takes_objects and image.nbytes > 0 and len(several) == 2
    assert masks.shape[1:] == size == probabilities.shape and boxes["boxes"].shape[1] == 4 and quality.shape == (3,)


def pages(golden: Path) -> None:
    model = vitcpp.PageModel(golden / "pages/colmodernvbert", threads=1)
    found: list[Floats] = model.encode_pages([golden / "pages/images/wide.png", golden / "pages/images/tall.png"])
    questions: list[Floats] = model.encode_queries(["revenue by quarter"])
    scores: Floats = model.score(questions, found)
    assert scores.shape == (1, 2) and found[0].shape[1] == model.dim


def rotations() -> None:
    rates: Doubles = position.frequencies(4, "theta", 100.0)
    t_x, t_y = position.grid_coordinates((2, 3), "centered")
    axial = vitcpp.RopeTable.axial((2, 3), rates, coordinates="centered", order="yx", pairing="halves")
    line = position.RopeTable.line(t_x, rates)
    mixed = position.RopeTable.mixed((2, 3), np.ones((2, 1, 4, 8)))
    turned: npt.NDArray[Any] = axial.rotate(np.ones((1, 7, 16), np.float32), num_prefix_tokens=1)
    rows: npt.NDArray[Any] = position.sinusoidal((2, 3), 16)
    form = position.RopeForm("vjepa2.1", (2, 3), 20, num_frames=2)
    identity: dict[str, Any] = position.identify({"cos": form.cos, "sin": form.sin}, grid=(2, 3), against="vjepa2")
    assert identity["convention"] == "vjepa2.1" and len(position.conventions()) >= 29
    basis: Doubles | None = form.basis
    assert form.angles.shape == (12, 10) and form.frequencies.shape == (10, 3) and form.phases.shape == (10,)
    assert form.pairs.shape == (10, 2) and form.coordinates.shape == (12, 3) and basis is None
    assert form.rotate(np.ones((1, 13, 2, 20)), num_prefix_tokens=1).shape == (1, 13, 2, 20)
    assert axial.cos.shape == axial.sin.shape == (6, 8) and line.cos.shape == (6, 4) and mixed.cos.shape == (4, 6, 8)
    assert turned.shape == (1, 7, 16) and rows.shape == (6, 16) and t_y.size == 6


def errors(folder: Path) -> None:
    try:
        vitcpp.load(folder / "nothing")
    except (vitcpp.FormatError, vitcpp.UnsupportedError, vitcpp.MismatchError, vitcpp.ArgumentError, vitcpp.InternalError):
        raise
    except vitcpp.FileError as error:
        found: vitcpp.Error = error
        kind: str = found.kind
        assert kind == "io"


def main(data: Path, folder: Path) -> None:
    version: str = vitcpp.version()
    assert version
    pictures = [data / "images" / name for name in ("cat_tabby.jpg", "cat_siamese.png", "dog_retriever.jpg")]
    pictures = [picture for picture in pictures if picture.exists()]
    model: vitcpp.Model = vitcpp.load(data / "model", threads=1)
    vectors(model, pictures[0])
    steps(model, pictures[0])
    classes(model, pictures[0])
    words(data / "golden/text/openclip-siglip", pictures[0])
    maps(data / "golden", pictures[0])
    visual_tokens(data / "golden/towers/qwen3-vl", folder / "tower")
    anomalies(model, pictures, folder)
    classes_of_pixels(model, folder)
    prompts(data / "golden")
    pages(data / "golden")
    rotations()
    positions()
    errors(folder)
