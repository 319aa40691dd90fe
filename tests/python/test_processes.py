"""Models in other processes: pickled, forked, and under another working folder; what help() shows."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import pydoc
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, IMAGES

import vitcpp


def embedded(model: vitcpp.Model) -> bytes:
    return model.embed(IMAGES).tobytes()


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_models_go_to_other_processes(method: str) -> None:
    model = vitcpp.load(DATA / "model", precision="int8", threads=2, size=48)
    expected = embedded(model)
    with multiprocessing.get_context(method).Pool(2) as pool:
        assert pool.map_async(embedded, [model] * 4).get(timeout=120) == [expected] * 4


def test_a_forked_process_goes_on_with_the_models_it_has() -> None:
    model = vitcpp.load(DATA / "model", threads=3)
    clip = vitcpp.load(DATA / "golden/text/openclip-siglip", threads=3)
    expected = embedded(model), clip.encode_text(["a", "b"]).tobytes()
    receiver, sender = multiprocessing.Pipe(duplex=False)

    def work() -> None:
        sender.send((embedded(model), clip.encode_text(["a", "b"]).tobytes()))

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    try:
        assert receiver.poll(60), "the forked process waits for ever"
        assert receiver.recv() == expected
    finally:
        process.kill()
        process.join()


def test_pickles_hold_the_path_and_the_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(DATA / "golden/text/openclip-siglip", tmp_path / "clip")
    monkeypatch.chdir(tmp_path)
    model = vitcpp.load("clip", precision="bfloat16", threads=1, pad=(1, 2, 3), exif="ignore")
    data = pickle.dumps(model)
    assert len(data) < 2000
    monkeypatch.chdir("/")
    texts = model.encode_text("a")  # its tower is read here
    other = pickle.loads(data)
    assert other.precision == "bfloat16" and embedded(other) == embedded(model)
    assert other.encode_text("a").tobytes() == texts.tobytes()
    assert embedded(copy.deepcopy(model)) == embedded(model)
    tokenizer = vitcpp.Tokenizer(DATA / "golden/tokenizers/clip")
    assert pickle.loads(pickle.dumps(tokenizer))("a cat") == tokenizer("a cat")
    shutil.rmtree(tmp_path / "clip")
    shutil.copytree(DATA / "model", tmp_path / "clip")
    with pytest.raises(vitcpp.MismatchError, match="another checkpoint"):
        pickle.loads(data)
    shutil.rmtree(tmp_path / "clip")
    with pytest.raises(vitcpp.FileError):
        pickle.loads(data)
    model.close()
    with pytest.raises(vitcpp.ArgumentError, match="closed"):
        pickle.dumps(model)


def test_help_shows_what_is_imported_late() -> None:
    text = pydoc.render_doc(vitcpp, renderer=pydoc.plaintext)
    for name in ("class Model", "class Tokenizer", "class RopeTable", "embed_stream", "forward_intermediates"):
        assert name in text
    assert {"Model", "load", "position", "ray", "spark"} <= set(dir(vitcpp)) and "importlib" not in dir(vitcpp)
    public: list[Any] = [vitcpp, vitcpp.load, vitcpp.position, vitcpp.ray.Embedder, vitcpp.spark.embed_udf]
    for owner in (vitcpp.Model, vitcpp.Tokenizer, vitcpp.RopeTable):
        public += [owner, *(getattr(owner, name) for name in vars(owner) if not name.startswith("_"))]
    assert [one for one in public if not one.__doc__] == []


def test_an_interrupt_ends_a_long_call() -> None:
    code = f"""
import os, signal, threading, time, numpy as np, vitcpp
model = vitcpp.load({str(DATA / "model")!r}, threads=1)
model.embed({str(IMAGES[0])!r})
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored by what is started in the background
threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    model.embed(np.broadcast_to(np.zeros((512, 512, 3), np.uint8), (100_000, 512, 512, 3)))
except KeyboardInterrupt:
    print("interrupted")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "interrupted\n", done.stderr
