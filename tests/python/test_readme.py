"""The Python lines of README.md, run as they stand in a folder with a model and two photographs."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import DATA, IMAGES

PAGE = Path(__file__).parents[2] / "README.md"


@pytest.mark.skipif(not PAGE.exists(), reason="tests of a package without its checkout")
def test_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    os.symlink(DATA / "model", tmp_path / "model")
    for name, image in zip(("photo.jpg", "b.jpg"), IMAGES):
        shutil.copy(image, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), flags=re.S)
    assert blocks
    for block in blocks:
        names: dict[str, object] = {}
        exec(compile(block, str(PAGE), "exec"), names)
        assert getattr(names["vectors"], "shape", (0,))[0] == 2
    assert "label" in capsys.readouterr().out
