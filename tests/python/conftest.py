"""What the tests of the Python package share. The package is the installed one, or that of the checkout with
VITCPP_LIBRARY and VITCPP_PROGRAM naming what the build made (tests.cmake)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitcpp

DATA = Path(os.environ.get("VIT_TEST_DATA", Path(__file__).parents[2] / "data"))
IMAGES = [DATA / "images" / name for name in ("cat_tabby.jpg", "deer_fawn.png", "airplane_airliner.jpg")]


class DLPack:
    """An array that offers only DLPack, as other libraries' tensors do."""

    def __init__(self, array: np.ndarray) -> None:
        self._array, self.shape = array, array.shape

    def __dlpack__(self, **options: Any) -> Any:
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self._array.__dlpack_device__()


def program(*arguments: Any) -> str:
    """Output of the program vit."""
    command = [sys.executable, "-m", "vitcpp", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def json_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.fixture(scope="session")
def model() -> vitcpp.Model:
    return vitcpp.load(DATA / "model", threads=1)


@pytest.fixture(scope="session")
def clip() -> vitcpp.Model:
    return vitcpp.load(DATA / "golden/text/openclip-siglip", threads=1)


@pytest.fixture(scope="session")
def pixels() -> list[np.ndarray]:
    """The images decoded, (H, W, 3)."""
    image = pytest.importorskip("PIL.Image")
    return [np.asarray(image.open(path).convert("RGB")) for path in IMAGES]
