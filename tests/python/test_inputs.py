"""Every form of an image gives the bits of `vit embed`."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from conftest import DATA, IMAGES, DLPack, program

import vitcpp


@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
def test_forms_have_the_bits_of_the_program(
    precision: str, pixels: list[np.ndarray], tmp_path: Path
) -> None:
    image = pytest.importorskip("PIL.Image")
    program("embed", *IMAGES, "--dtype", precision, "--model", DATA / "model", "--output", tmp_path / "v.npy")
    expected = np.load(tmp_path / "v.npy")
    model = vitcpp.load(DATA / "model", precision=precision)
    padded = [np.zeros((p.shape[0] + 1, p.shape[1] + 7, 3), np.uint8) for p in pixels]
    for wide, p in zip(padded, pixels):
        wide[: p.shape[0], : p.shape[1]] = p
    forms = {
        "path": IMAGES,
        "str": [str(path) for path in IMAGES],
        "bytes": [path.read_bytes() for path in IMAGES],
        "bytearray": [bytearray(path.read_bytes()) for path in IMAGES],
        "memoryview": [memoryview(path.read_bytes()) for path in IMAGES],
        "PIL": [image.open(path) for path in IMAGES],
        "open files": [path.open("rb") for path in IMAGES],
        "files in memory": [io.BytesIO(path.read_bytes()) for path in IMAGES],
        "array of paths": np.array([str(path) for path in IMAGES]),
        "array": pixels,
        "array with stride": [wide[: p.shape[0], : p.shape[1]] for wide, p in zip(padded, pixels)],
        "array in Fortran order": [np.asfortranarray(p) for p in pixels],
        "array from below": [np.ascontiguousarray(p[::-1])[::-1] for p in pixels],
        "read-only array": [np.frombuffer(p.tobytes(), np.uint8).reshape(p.shape) for p in pixels],
        "DLPack": [DLPack(p.copy()) for p in pixels],
        "mixed": [IMAGES[0], pixels[1], IMAGES[2].read_bytes()],
    }
    for name, form in forms.items():
        found = model.embed(form)
        assert found.dtype == np.float32 and found.shape == expected.shape, name
        assert found.tobytes() == expected.tobytes(), name
        if "file" not in name:  # they are read once
            assert model.embed(form[0]).tobytes() == expected[0].tobytes(), name
    with IMAGES[0].open("rb") as file:
        assert model.embed(file).tobytes() == expected[0].tobytes()
    assert model.embed(tuple(IMAGES)).tobytes() == expected.tobytes()
    assert model.embed(path for path in IMAGES).tobytes() == expected.tobytes()


def test_torch_tensors(model: vitcpp.Model, pixels: list[np.ndarray]) -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(pixels[0].copy())
    assert model.embed(tensor).tobytes() == model.embed(pixels[0]).tobytes()
    assert model.embed([tensor, tensor]).shape == (2, model.embedding_dim)
    planes = torch.from_numpy(model.preprocess(IMAGES[:1])).requires_grad_()
    assert model.encode_image(planes).tobytes() == model.embed(IMAGES[:1]).tobytes()


def test_batches_of_arrays_are_their_images(model: vitcpp.Model) -> None:
    batch = np.random.default_rng(1).integers(0, 256, (3, 40, 50, 3), np.uint8)
    assert model.embed(batch).tobytes() == model.embed(list(batch)).tobytes()


def test_grey_and_transparent_images(model: vitcpp.Model, pixels: list[np.ndarray]) -> None:
    image = pytest.importorskip("PIL.Image")
    grey = np.asarray(image.open(IMAGES[0]).convert("L"))
    expected = model.embed(np.stack([grey] * 3, -1))
    for form in (grey, grey[:, :, None], image.fromarray(grey)):
        assert model.embed(form).tobytes() == expected.tobytes()
    opaque = np.dstack([pixels[0], np.full(pixels[0].shape[:2], 255, np.uint8)])
    assert model.embed(opaque).tobytes() == model.embed(pixels[0]).tobytes()
    assert np.isfinite(model.embed(image.open(IMAGES[0]).convert("LA").convert("La"))).all()
    for mode in ("P", "CMYK", "1", "LA"):
        converted = image.open(IMAGES[0]).convert(mode)
        assert np.isfinite(model.embed(converted)).all()
        if mode != "LA":
            assert model.embed(converted).tobytes() == model.embed(np.asarray(converted.convert("RGB"))).tobytes()


def test_streams_keep_the_order(model: vitcpp.Model) -> None:
    taken = 0

    def images():  # type: ignore[no-untyped-def]
        nonlocal taken
        for index in range(25):
            taken += 1
            yield IMAGES[index % 3]

    stream = model.embed_stream(images(), batch_size=4, normalize=True)
    first = next(stream)
    assert taken == 4  # no more than a batch is read ahead
    rest = list(stream)
    expected = model.embed(IMAGES, normalize=True)
    for index, vector in enumerate([first, *rest]):
        assert vector.tobytes() == expected[index % 3].tobytes()
    assert len(rest) == 24 and np.allclose(np.linalg.norm(expected, axis=1), 1, atol=1e-6)
    assert list(model.embed_stream([])) == []


def test_long_lists_and_generators(model: vitcpp.Model) -> None:
    expected, taken = model.embed(IMAGES), []

    def images():  # type: ignore[no-untyped-def]
        for index in range(200):
            taken.append(index)
            yield IMAGES[index % 3] if index != 190 else "/no.jpg"

    vectors, errors = model.embed_or_errors(images())
    assert vectors.shape == (200, model.embedding_dim) and len(taken) == 200
    for index, vector in enumerate(vectors):
        assert (errors[index] is None) == (index != 190)
        assert index == 190 or vector.tobytes() == expected[index % 3].tobytes()
    with pytest.raises(vitcpp.FileError):
        model.embed(["/no.jpg", *IMAGES * 100])
    scores = model.classify(IMAGES * 30)
    assert len(scores) == 90 and scores[87:] == model.classify(IMAGES)


def test_no_images(model: vitcpp.Model) -> None:
    assert model.embed([]).shape == (0, model.embedding_dim)
    assert model.classify([]) == []


def test_encoded_formats(model: vitcpp.Model, pixels: list[np.ndarray]) -> None:
    image = pytest.importorskip("PIL.Image")
    for kind in ("PNG", "BMP", "TIFF"):
        file = io.BytesIO()
        image.fromarray(pixels[0]).save(file, kind)
        assert model.embed(file.getvalue()).tobytes() == model.embed(pixels[0]).tobytes()
