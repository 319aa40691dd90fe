"""Banks of good patches from Python."""

import numpy as np
import pytest
import vitcpp
from conftest import DATA


def part(shade, defect=False):
    rows, columns = np.mgrid[:64, :64]
    image = np.repeat((((rows // 8 + columns // 8) % 2) * 60 + 100 - shade)[..., None], 3, 2).astype(np.uint8)
    if defect:
        image[16:32, 16:32] = 255
    return image


def test_fit_score_save_load(model, tmp_path):
    bank = vitcpp.AnomalyModel.fit(model, [part(shade) for shade in range(4)], coreset=0.5)
    assert bank.threshold > 0
    bad = bank.score(part(1, defect=True))
    good = bank.score([part(1), part(2)])
    assert bad.anomalous and bad.score > good[0].score
    assert bad.distances.dtype == np.float32 and bad.distances.ndim == 2
    bank.save(tmp_path / "bank.safetensors")
    again = vitcpp.AnomalyModel.load(model, tmp_path / "bank.safetensors")
    assert again.threshold == bank.threshold
    assert again.score(part(1, defect=True)).score == bad.score


def test_one_image_has_no_threshold(model):
    bank = vitcpp.AnomalyModel.fit(model, [part(0)])
    assert bank.threshold is None
    assert bank.score(part(0)).anomalous is None


def test_what_is_wrong_is_named(model, tmp_path):
    with pytest.raises(vitcpp.ArgumentError, match="median"):
        vitcpp.AnomalyModel.fit(model, [part(0)], score="median")
    with pytest.raises(vitcpp.FileError, match="missing.jpg"):
        vitcpp.AnomalyModel.fit(model, [tmp_path / "missing.jpg"])
    with pytest.raises(vitcpp.ArgumentError, match="layer 99"):
        vitcpp.AnomalyModel.fit(model, [part(0)], layers=[99])


def test_what_cannot_be_scored_is_named(model, tmp_path):
    bank = vitcpp.AnomalyModel.fit(model, [part(0), part(1)])
    with pytest.raises(vitcpp.FileError, match="missing.jpg"):
        bank.score([part(0), tmp_path / "missing.jpg"])
    assert bank.score([]) == []
    bank._model = vitcpp.load(DATA / "golden/models/rope-axial")
    with pytest.raises(vitcpp.MismatchError, match="bank"):
        bank.score(part(0))
