#!/usr/bin/env python3
"""The page of `vit fit --paint` in Chromium, and what it gives to download: paint_page.py VIT CHROMIUM SOURCE_FOLDER."""
import base64
import json
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from browser import Browser  # noqa: E402

vit, chromium, root = sys.argv[1:]
here = pathlib.Path(__file__).parent


def run(*arguments):
    return subprocess.run([vit, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
    folder, image = pathlib.Path(name), pathlib.Path(root, "data/images/cat_tabby.jpg")
    run("fit", image, "--paint", folder / "paint.html", "--size", "48")
    browser = Browser(chromium, str(folder / "profile"))
    try:
        browser.look()
        browser.open((folder / "paint.html").as_uri())
        failed = browser.value("(async () => {" + (here / "paint_steps.js").read_text("utf-8") + "return failed; })()")
        assert failed == [], failed
        assert browser.complaints == [], browser.complaints  # of scripts and of the page's own policy
        head = folder / "head.safetensors"
        head.write_bytes(base64.b64decode(browser.value("document.body.dataset.head.split(',')[1]")))
        third = folder / "third.safetensors"
        third.write_bytes(base64.b64decode(browser.value("document.body.dataset.third.split(',')[1]")))
        (folder / "strokes").mkdir()
        strokes = browser.value("document.body.dataset.strokes").split(",")[1]
        (folder / "strokes" / (image.stem + ".png")).write_bytes(base64.b64decode(strokes))
        status = browser.value("document.body.dataset.shown")
    finally:
        browser.close()
    shown = float(status.split("%")[0])
    # the head of the page, and one that vit fit learns from its strokes, mark the same part of the image
    run("fit", image, "--truth", folder / "strokes", "--size", "48", "--upsample", "guided", "--names", "rest,marked", "--strength", "1",
        "--output", folder / "own.safetensors")
    for file in (head, folder / "own.safetensors"):
        found = json.loads(run("segment", "--classifier", file, image, "--format", "json"))
        area = {segment["label"]: segment["area"] for segment in found["segments"]}
        share = 100 * area.get("marked", 0) / sum(area.values())
        assert abs(share - shown) < 3, (file.name, share, shown)
    found = json.loads(run("segment", "--classifier", third, image, "--format", "json"))
    assert {segment["label"] for segment in found["segments"]} == {"rest", "marked", "third"}, found
print("the page to paint on works: " + status)
