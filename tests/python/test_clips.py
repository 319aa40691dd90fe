"""Clips: frames as arrays, paths and bytes give what the program gives of a folder of them."""

from __future__ import annotations

import io
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, program

import vitcpp

SIZES = {"patch_size": 4, "merge_size": 2, "temporal_patch_size": 2, "min_pixels": 64, "max_pixels": 4096}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    model = tmp_path / "model"
    shutil.copytree(DATA / "golden/towers/qwen3-vl", model)
    for file, key, name in (
        ("preprocessor_config.json", "image_processor_type", "Qwen2VLImageProcessor"),
        ("video_preprocessor_config.json", "video_processor_type", "Qwen2VLVideoProcessor"),
    ):
        (model / file).write_text(json.dumps({key: name, **SIZES}))
    return model


def test_clips_have_the_bits_of_the_program(folder: Path, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    frames = np.random.default_rng(3).integers(0, 256, (5, 20, 28, 3), np.uint8)
    clip = tmp_path / "clip"
    clip.mkdir()
    for number, frame in enumerate(frames):
        image.fromarray(frame).save(clip / f"{number}.png")
    paths = sorted(clip.iterdir())
    program("embed", "--model", folder, "--frames", 4, clip, "--output", tmp_path / "v.npy")
    expected = np.load(tmp_path / "v.npy")[0]
    model = vitcpp.load(folder, clip_frames=4)
    for form in (frames, list(frames), tuple(paths), [path.read_bytes() for path in paths]):
        found = model.merged([form, form])
        assert len(found) == 2
        assert found[0].shape == expected.shape == (2, *expected.shape[1:])
        assert found[0].tobytes() == found[1].tobytes() == expected.tobytes()


def test_clips_that_cannot_be_meant(folder: Path) -> None:
    frames = [np.zeros((20, 28, 3), np.uint8)] * 4
    with pytest.raises(vitcpp.Error, match="clip_frames"):
        vitcpp.load(folder).merged([frames])
    model = vitcpp.load(folder, clip_frames=8)
    with pytest.raises(vitcpp.Error, match="take fewer"):
        model.merged([frames])
    with pytest.raises(vitcpp.Error, match="list within a list"):
        model.merged([[frames]])
    with pytest.raises(vitcpp.Error, match="no image"):
        model.merged([[io]])
    with pytest.raises(vitcpp.Error):
        vitcpp.load(DATA / "model", clip_frames=2)
