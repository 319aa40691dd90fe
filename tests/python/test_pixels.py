"""Classes of pixels from Python, in the manner of scikit-learn."""

import numpy as np
import pytest
import vitcpp
from conftest import DATA


def picture(left=20, top=12, edge=24):
    rng = np.random.default_rng(3)
    image = np.full((48, 64, 3), (60, 80, 100)) + rng.integers(-20, 20, (48, 64, 3))
    image[top:top + edge, left:left + edge] += (120, 60, 0)
    return image.astype(np.uint8)


def truth(left=20, top=12, edge=24):
    labels = np.full((48, 64), 3)
    labels[top:top + edge, left:left + edge] = 7
    return labels


def strokes():
    labels = np.full((48, 64), -1)
    labels[2:4, 2:60] = labels[44:46, 2:60] = 3
    labels[14:17, 22:42] = labels[30:33, 22:42] = 7
    return labels


@pytest.fixture
def shipped():
    return vitcpp.load()


@pytest.mark.parametrize("method", ["logistic", "knn", "centroid"])
def test_fit_predict_save_load(shipped, tmp_path, method):
    pixels = vitcpp.PixelClassifier(shipped, method=method, size="native", upsample="guided", color=True)
    assert pixels.fit(picture(), strokes(), names=["ground", "square"]) is pixels
    assert pixels.held_out_ == "strokes" and pixels.cross_validated_iou_ > 0.8
    assert list(pixels.classes_) == [3, 7]
    found = pixels.predict(picture())
    assert found.shape == (48, 64) and set(np.unique(found)) <= {3, 7}
    assert np.mean(found == truth()) > 0.85
    probabilities = pixels.predict_proba([picture(), picture(8, 16)])
    assert probabilities[0].shape == (48, 64, 2)
    assert np.allclose(probabilities[0].sum(-1), 1, atol=1e-5)
    assert (pixels.classes_[probabilities[0].argmax(-1)] == found).all()
    pixels.save(tmp_path / "pixels.safetensors")
    again = vitcpp.PixelClassifier.load(shipped, tmp_path / "pixels.safetensors")
    assert list(again.classes_) == ["ground", "square"]
    assert np.array_equal(again.predict_proba(picture()), probabilities[0])
    assert np.array_equal(again.predict(picture()), np.searchsorted(pixels.classes_, found))


def test_several_images_are_held_out_in_turn(shipped):
    pixels = vitcpp.PixelClassifier(shipped, size="native").fit([picture(), picture(8, 16)], [truth(), truth(8, 16)])
    assert pixels.held_out_ == "images" and pixels.cross_validated_iou_ > 0.5


def test_what_is_wrong_is_named(shipped, tmp_path):
    pixels = vitcpp.PixelClassifier(shipped, size="native")
    with pytest.raises(vitcpp.ArgumentError, match="not fitted"):
        pixels.predict(picture())
    with pytest.raises(vitcpp.ArgumentError, match="method must be one of"):
        vitcpp.PixelClassifier(shipped, method="forest")
    with pytest.raises(vitcpp.ArgumentError, match="expected integers"):
        pixels.fit(picture(), truth().astype(float))
    with pytest.raises(vitcpp.MismatchError, match="48, 63"):
        pixels.fit(picture(), truth()[:, :63])
    with pytest.raises(vitcpp.ArgumentError, match="one class"):
        pixels.fit(picture(), np.full((48, 64), 5))
    with pytest.raises(vitcpp.ArgumentError, match="no pixel is labeled"):
        pixels.fit(picture(), np.full((48, 64), -1))
    with pytest.raises(vitcpp.FileError, match="missing.jpg"):
        pixels.fit(tmp_path / "missing.jpg", truth())
    pixels.fit(picture(), strokes())
    with pytest.raises(vitcpp.FileError, match="missing.jpg"):
        pixels.predict([picture(), tmp_path / "missing.jpg"])
    assert pixels.predict([]) == []
    pixels.save(tmp_path / "pixels.safetensors")
    with pytest.raises(vitcpp.MismatchError, match="fitted on features of"):
        vitcpp.PixelClassifier.load(vitcpp.load(DATA / "golden/models/rope-axial"), tmp_path / "pixels.safetensors")


def test_a_learned_upsampler_is_remembered(shipped, tmp_path):
    network = DATA / "golden/upsamplers/anyup.pth"
    pixels = vitcpp.PixelClassifier(shipped, size="native", upsample=network).fit(picture(), strokes())
    pixels.save(tmp_path / "pixels.safetensors")
    found = pixels.predict_proba(picture())
    for upsample in (None, network):
        again = vitcpp.PixelClassifier.load(shipped, tmp_path / "pixels.safetensors", upsample=upsample)
        assert np.array_equal(again.predict_proba(picture()), found)
    with pytest.raises(vitcpp.MismatchError, match="is NAF"):
        vitcpp.PixelClassifier.load(
            shipped, tmp_path / "pixels.safetensors", upsample=DATA / "golden/upsamplers/naf.pth"
        )
    with pytest.raises(vitcpp.ArgumentError, match="or a file"):
        vitcpp.PixelClassifier(shipped, upsample="sharp")
