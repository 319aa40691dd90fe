#!/usr/bin/env python3
"""Prompts in the page of vit serve in Chromium, by keyboard and by pointer: prompts_page.py VIT CHROMIUM SOURCE_FOLDER [FOLDER_FOR_PICTURES].

Compares what is found with what vit segment prints, and that marks are where the pointer was.
"""
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from browser import Browser  # noqa: E402

vit, chromium = sys.argv[1:3]
root = os.path.abspath(sys.argv[3])
pictures = sys.argv[4] if len(sys.argv) > 4 else None
MODEL = root + "/data/golden/prompts/sam3"
IMAGE = root + "/data/golden/prompts/images/drawing.png"
FOUND = "[...document.querySelectorAll('#found li')].map((li) => [...li.querySelectorAll('span')].map((s) => s.textContent))"
CANVAS = "document.getElementById('view').toDataURL()"
FORGET = "document.getElementById('status').textContent = ''"
ANSWERED = "document.getElementById('status').textContent.startsWith('answered')"


def expected(*arguments):
    out = subprocess.run([vit, "segment", "--model", MODEL, "--format", "json", IMAGE, *arguments], check=True, capture_output=True, text=True).stdout
    return [[s["label"], f"{s['score']:.3f}"] for s in json.loads(out)["segments"]]


def start_server():
    arguments = ["--port", "0", "--log", "none", "--exif", "ignore", "--model", "sam3=" + MODEL]
    server = subprocess.Popen([vit, "serve", *arguments], stderr=subprocess.PIPE, text=True)
    line = server.stderr.readline()
    if "sandbox" in line:  # of a system without one
        server = subprocess.Popen([vit, "serve", "--no-sandbox", *arguments], stderr=subprocess.PIPE, text=True)
        line = server.stderr.readline()
    return server, re.search(r"http://127\.0\.0\.1:\d+", line).group(0)


def picture(browser, name):
    if pictures:
        os.makedirs(pictures, exist_ok=True)
        browser.picture(f"{pictures}/{name}.png")


def ask(browser, action):
    browser.value(FORGET)
    action()
    browser.until(ANSWERED)
    return browser.value(FOUND)


def on_screen(browser, x, y):
    """A pixel of the image on the screen."""
    return browser.value(f"""(() => {{
      const frame = document.getElementById('view').getBoundingClientRect(), size = window.vitPage.state.bitmap;
      return [frame.left + ({x}) / size.width * frame.width, frame.top + ({y}) / size.height * frame.height];
    }})()""")


def pointer(browser, *path):
    """Presses at the first place, moves to the others, and lets go at the last."""
    places = [on_screen(browser, x, y) for x, y in path]
    for event, (x, y) in [("mousePressed", places[0]), *[("mouseMoved", place) for place in places[1:]], ("mouseReleased", places[-1])]:
        browser.ask("Input.dispatchMouseEvent", type=event, x=x, y=y, button="left", buttons=0 if event == "mouseReleased" else 1, clickCount=1)


def choose(browser, mark):
    browser.value(f"document.querySelector('input[name=mark][value={mark}]').click()")


def check_phrases(browser):
    plain = browser.value(CANVAS)
    browser.press("f")
    browser.until("document.activeElement.id === 'phrases'")
    browser.type("a cat, a dog")
    browser.press("Tab")
    browser.value("document.getElementById('threshold').select()")
    browser.type("0.05")
    found = ask(browser, lambda: browser.press("Enter"))
    assert found == expected("--classes", "a cat, a dog", "--threshold", "0.05"), found
    assert browser.value(CANVAS) != plain, "no mask is drawn"
    picture(browser, "phrases")


def check_points(browser):
    browser.value("document.getElementById('clear').click()")
    browser.value("document.getElementById('phrases').value = ''")
    assert browser.value(FOUND) == []
    choose(browser, "point")
    found = ask(browser, lambda: pointer(browser, (20, 15)))
    assert browser.value("document.activeElement.id") == "drop"
    assert found == expected("--points", "20,15"), found
    choose(browser, "outside")
    two = ask(browser, lambda: pointer(browser, (60, 40)))
    assert len(two) == 1
    picture(browser, "points")
    browser.value("document.activeElement.blur()")
    assert ask(browser, lambda: browser.press("u")) == found
    browser.value("document.getElementById('next-object').click()")
    choose(browser, "box")
    assert len(ask(browser, lambda: pointer(browser, (40, 20), (50, 25), (70, 45)))) == 2
    picture(browser, "box")


def check_keyboard(browser):
    browser.value("document.getElementById('clear').click()")
    choose(browser, "point")
    browser.value("document.getElementById('drop').focus()")
    browser.press("ArrowLeft")
    found = ask(browser, lambda: browser.press("Enter"))
    step = 10 * 75 / 500
    assert found == expected("--points", f"{75 / 2 - step},26"), found


def check_examples(browser, folder):
    browser.value("document.getElementById('clear').click()")
    choose(browser, "like")
    ask(browser, lambda: pointer(browser, (10, 8), (30, 20), (40, 30)))
    with open(folder + "/boxes.jsonl", "w", encoding="utf-8") as file:
        file.write(json.dumps({"file": IMAGE, "boxes": [{"box": [10, 8, 40, 30]}]}))
    found, command = browser.value(FOUND), expected("--boxes", folder + "/boxes.jsonl", "--threshold", "0.05")
    assert len(found) == len(command) and abs(float(found[0][1]) - float(command[0][1])) <= 2e-3, (found, command)  # the pointer is between two pixels


def check_late_answers(browser):
    """What was taken back while it was looked for is not shown; points and phrases do not wait for each other."""
    browser.value("document.getElementById('clear').click()")
    browser.value("""(() => {
      const fetchNow = fetch;
      window.fetch = async (...what) => {
        const answer = await fetchNow(...what);
        await new Promise((done) => setTimeout(done, 500));
        setTimeout(() => { document.body.dataset.isLate = 'yes'; }, 300);
        return answer;
      };
    })()""")
    choose(browser, "point")
    pointer(browser, (20, 15))
    browser.value("document.getElementById('undo').click()")
    browser.until("document.body.dataset.isLate")
    assert browser.value(FOUND) == [], "a mask of no point"
    assert browser.value("document.getElementById('status').textContent") == ""
    pointer(browser, (20, 15))
    browser.value("document.getElementById('phrases').value = 'a cat'")
    browser.value("document.getElementById('find').click()")
    both = expected("--points", "20,15") + expected("--classes", "a cat", "--threshold", "0.05")
    browser.until(FOUND + f".length === {len(both)}")
    assert browser.value(FOUND) == both, browser.value(FOUND)


def check_orientation(browser, folder):
    """The image is shown as the server takes it, by its own button too; here without its EXIF orientation."""
    with open(root + "/data/images/ship_cargo.jpg", "rb") as file:
        plain = file.read()
    exif = b"Exif\0\0MM\0*\0\0\0\x08" + struct.pack(">HHHIHHI", 1, 0x112, 3, 1, 3, 0, 0)  # turned by 180 degrees
    shown = []
    for name, data in (("plain.jpg", plain), ("turned.jpg", plain[:2] + b"\xff\xe1" + struct.pack(">H", 2 + len(exif)) + exif + plain[2:])):
        with open(folder + "/" + name, "wb") as file:
            file.write(data)
        x, y = browser.value("(() => { const button = document.getElementById('choose').getBoundingClientRect(); return [button.x + 9, button.y + 9]; })()")
        for event in ("mousePressed", "mouseReleased"):
            browser.ask("Input.dispatchMouseEvent", type=event, x=x, y=y, button="left", clickCount=1)
        browser.value(FORGET)
        browser.choose_file(folder + "/" + name)
        browser.until(f"vitPage.state.file.name === '{name}' && document.getElementById('status').textContent.startsWith('ready')")
        shown.append(browser.value(CANVAS))
    assert shown[0] == shown[1], "the image is turned, unlike what the server sees"


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    server, address = start_server()
    browser = Browser(chromium, folder + "/profile")
    try:
        browser.look()
        browser.open(address + "/")
        browser.until("document.getElementById('model').options.length === 1")
        browser.complaints.clear()  # perhaps of models that were not loaded yet
        browser.until("!document.getElementById('prompts-section').hidden")
        assert browser.value("document.getElementById('classes-section').hidden")
        browser.press("o")
        browser.choose_file(IMAGE)
        browser.until("document.getElementById('status').textContent.startsWith('ready')")
        check_phrases(browser)
        check_points(browser)
        check_keyboard(browser)
        check_examples(browser, folder)
        check_late_answers(browser)
        check_orientation(browser, folder)
        for width in (1280, 360):
            for dark in (False, True):
                browser.look(width, 900, dark)
                picture(browser, f"prompts-{width}-{'dark' if dark else 'light'}")
                assert browser.value("document.documentElement.scrollWidth <= innerWidth"), width
        assert browser.complaints == [], browser.complaints
    finally:
        browser.close()
        server.terminate()
        server.wait(timeout=60)
print("the page works")
