#!/usr/bin/env python3
"""The page of vit serve in Chromium, used by keyboard: serve_page.py VIT CHROMIUM SOURCE_FOLDER [FOLDER_FOR_PICTURES].

Compares what it shows with what the other commands print, in light and dark, wide and narrow windows.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request

sys.dont_write_bytecode = True
from browser import Browser  # noqa: E402

vit, chromium = sys.argv[1:3]
root = os.path.abspath(sys.argv[3])
pictures = sys.argv[4] if len(sys.argv) > 4 else None
IMAGES = root + "/data/images/"
KEY = "a key"

# What is computed of colors: WCAG's contrast of text and its background, of all elements that show text of their own.
CONTRAST = """(() => {
  const rgb = (color) => { const n = color.match(/[\\d.]+/g).map(Number); return n.length > 3 && n[3] === 0 ? null : n; };
  const light = (c) => { const [r, g, b] = c.map((x) => x / 255).map((x) => x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
                         return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
  const background = (e) => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor); if (c) return c; } };
  const bad = [];
  for (const e of document.querySelectorAll('body *')) {
    if (!e.checkVisibility() || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(rgb(getComputedStyle(e).color)), light(background(e))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(e.tagName + ' ' + e.textContent);
  }
  return bad;
})()"""
LABELS = "[...document.querySelectorAll('#labels li')].map((li) => [...li.querySelectorAll('span')].map((s) => s.textContent))"
CANVAS = "document.getElementById('view').toDataURL()"
FORGET = "document.getElementById('status').textContent = ''"
ANSWERED = "document.getElementById('status').textContent.startsWith('answered')"


def run(*arguments):
    return subprocess.run([vit, *arguments], check=True, capture_output=True, text=True).stdout


def expected_labels(*arguments):
    top = json.loads(run("classify", "--format", "json", *arguments))["top"]
    return [[t["label"], f"{100 * t['probability']:.2f} %"] for t in top]


def clip_model(folder):
    """A CLIP model of a few random weights, and its preprocessing."""
    shutil.copytree(root + "/data/golden/text/hf-clip", folder)
    with open(root + "/data/golden/models/hf-clip/preprocessor_config.json", encoding="utf-8") as file:
        text = file.read().replace(": 24", ": 16")
    with open(folder + "/preprocessor_config.json", "w", encoding="utf-8") as file:
        file.write(text)


def start_server(folder, has_index):
    with open(folder + "/key", "w", encoding="utf-8") as file:
        file.write(KEY + "\n")
    arguments = ["--port", "0", "--log", "none", "--api-key-file", folder + "/key", "--model", "shipped=" + root + "/data/model",
                 "--model", "words=" + folder + "/clip"]
    if has_index:
        arguments += ["--index", folder + "/index"]
    server = subprocess.Popen([vit, "serve", *arguments], stderr=subprocess.PIPE, text=True)
    line = server.stderr.readline()
    if "sandbox" in line:  # of a system without one
        server = subprocess.Popen([vit, "serve", "--no-sandbox", *arguments], stderr=subprocess.PIPE, text=True)
        line = server.stderr.readline()
    address = re.search(r"http://127\.0\.0\.1:\d+", line)
    assert address, line
    return server, address.group(0)


def picture(browser, name):
    if pictures:
        os.makedirs(pictures, exist_ok=True)
        browser.picture(f"{pictures}/{name}.png")


def open_file(browser, file):
    browser.value(FORGET)
    browser.press("o")
    browser.choose_file(file)
    browser.until(ANSWERED)


def check_layout(browser, name):
    for width, height in ((1280, 900), (360, 740)):
        for dark in (False, True):
            browser.look(width, height, dark)
            picture(browser, f"{name}-{width}-{'dark' if dark else 'light'}")
            assert browser.value("document.documentElement.scrollWidth <= innerWidth"), f"{name}: wider than {width}"
            assert browser.value(CONTRAST) == [], f"{name}: {browser.value(CONTRAST)}"
    browser.look()


def use_key(browser):
    browser.until("document.activeElement.id === 'key'")
    browser.complaints.clear()  # of the 401 that led here
    browser.type("wrong")
    browser.press("Enter")
    browser.until("document.getElementById('notice').textContent.includes('key')")
    browser.complaints.clear()
    browser.press("Tab", shift=True)
    browser.press("Tab")
    browser.value("document.getElementById('key').select()")
    browser.type(KEY)
    browser.press("Enter")
    browser.until("document.getElementById('model').options.length === 2")
    browser.complaints.clear()  # perhaps of models that were not loaded yet
    assert browser.value("document.getElementById('key-form').hidden")


def use_classes(browser):
    open_file(browser, IMAGES + "ship_cargo.jpg")
    assert browser.value(LABELS) == expected_labels(IMAGES + "ship_cargo.jpg", "--top", "10")
    seen = {}
    for key in ("1", "2", "3", "1"):
        browser.press(key)
        seen.setdefault(key, browser.value(CANVAS))
        assert browser.value(CANVAS) == seen[key]
    assert len(set(seen.values())) == 3, "image, PCA and attention look alike"
    assert browser.value("document.getElementById('nearest-section').hidden"), "neighbors of another model's index"
    browser.press("2")
    check_layout(browser, "pca")
    browser.press("3")
    check_layout(browser, "attention")


def use_nearest(browser):
    names = "[...document.querySelectorAll('#nearest span:first-of-type')].map((s) => s.title)"
    found = browser.value(names)
    expected = [r["file"] for r in json.loads(run("search", folder + "/index", IMAGES + "ship_cargo.jpg", "--top", "12", "--format", "json"))["results"]]
    assert found == expected, found
    assert browser.value("document.querySelector('#nearest span:last-of-type').textContent") == "1.0000"
    browser.until("[...document.querySelectorAll('#nearest img')].length === 12 && [...document.querySelectorAll('#nearest img')].every((i) => i.naturalWidth > 0)")


def search_for(browser, text):
    browser.value("document.getElementById('search').select()")
    browser.type(text)
    browser.press("Enter")


def use_search(browser):
    """Pictures of a search are given back after it, and one that is late does not replace what came since."""
    title = "document.getElementById('nearest-title').textContent"
    browser.value("""(() => {
      const {createObjectURL, revokeObjectURL} = URL, fetchNow = fetch;
      window.pictures = new Set();
      URL.createObjectURL = (blob) => { const address = createObjectURL(blob); pictures.add(address); return address; };
      URL.revokeObjectURL = (address) => { pictures.delete(address); revokeObjectURL(address); };
      window.fetch = async (path, what) => {
        const answer = await fetchNow(path, what);
        if (what && /a late ship/.test(what.body)) await new Promise((done) => { window.release = done; });
        return answer;
      };
    })()""")
    browser.press("s")
    browser.until("document.activeElement.id === 'search'")
    for text in ("a ship", "a cat", "a frog"):
        search_for(browser, text)
        browser.until(title + f".includes('{text}')")
    assert browser.value("pictures.size") == 12
    search_for(browser, "a late ship")
    browser.until("Boolean(window.release)")
    browser.value(FORGET)
    browser.value("document.querySelector('#words-form button').click()")
    browser.until(ANSWERED)
    browser.value("(async () => { release(); await new Promise((done) => setTimeout(done, 500)); })()")
    assert browser.value(title).endswith("ship_cargo.jpg"), browser.value(title)
    browser.value("document.activeElement.blur()")


def use_words(browser):
    browser.value(FORGET)
    browser.press("m")
    for key in ("ArrowDown", "ArrowUp", "ArrowDown", "ArrowUp"):  # an earlier request's answer does not come later
        browser.press(key)
    browser.until(ANSWERED)
    assert browser.value(LABELS) == expected_labels(IMAGES + "ship_cargo.jpg", "--top", "10")
    assert browser.value("document.activeElement.id") == "model"
    browser.press("ArrowDown")
    browser.until("document.getElementById('facts').textContent.startsWith('CLIP')")
    browser.press("Tab")  # away from the list, where letters choose
    browser.press("w")
    browser.until("document.activeElement.id === 'words'")
    browser.type("a ship\na cat\n\na ship\n")
    browser.press("Tab")
    browser.value("document.getElementById('template').select()")
    browser.type("one {}.")
    browser.press("Tab")
    browser.press("Enter")
    browser.until(LABELS + ".length === 2")
    found = browser.value(LABELS)
    assert found == expected_labels("--model", folder + "/clip", "--classes", "a ship,a cat", "--template", "one {}.", IMAGES + "ship_cargo.jpg"), found
    check_layout(browser, "words")


def use_board(browser):
    """Paints two strokes, and compares the mask with that of the head which the page saves."""
    browser.value("document.activeElement.blur()")
    browser.value("for (let i = 0; i < 2; ++i) document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'p', bubbles: true}))")
    browser.until("!document.getElementById('paint-board').hidden")
    browser.until("document.activeElement.id === 'paint-strokes'")
    status = "document.getElementById('paint-status').textContent"
    canvas = json.loads(browser.value("JSON.stringify([document.activeElement.width, document.activeElement.height])"))
    browser.value("""(async () => {
      const canvas = document.activeElement, box = canvas.getBoundingClientRect();
      canvas.setPointerCapture = () => {};
      const event = (kind, x, y) => canvas.dispatchEvent(new PointerEvent(kind, {pointerId: 1, pointerType: 'touch', bubbles: true,
        clientX: box.left + x * box.width, clientY: box.top + y * box.height}));
      for (const [value, points] of [[0, [[0.02, 0.03], [0.98, 0.03]]], [1, [[0.45, 0.5], [0.55, 0.5]]]]) {
        document.querySelector(`[name=brush][value="${value}"]`).click();
        event('pointerdown', ...points[0]);
        event('pointermove', ...points[1]);
        event('pointerup', ...points[1]);
      }
    })()""")
    browser.until(status + ".includes('% marked')")
    assert browser.value("document.getElementById('paint-image').length") == 1, "the image is on the board twice"
    check_layout(browser, "paint")
    shown = float(browser.value(status).split("%")[0])
    browser.value("window.createObjectURL = URL.createObjectURL; URL.createObjectURL = (blob) => { const reader = new FileReader(); reader.onload = () => { document.body.dataset.saved = reader.result; };"
                  " reader.readAsDataURL(blob); return '#'; }; HTMLAnchorElement.prototype.click = () => {}")
    browser.value("document.getElementById('paint-save-head').click()")
    browser.until("document.body.dataset.saved")
    browser.value("URL.createObjectURL = createObjectURL")
    head = folder + "/painted.safetensors"
    with open(head, "wb") as file:
        file.write(base64.b64decode(browser.value("document.body.dataset.saved").split(",")[1]))
    found = json.loads(run("segment", "--classifier", head, IMAGES + "ship_cargo.jpg", "--format", "json"))
    area = {segment["label"]: segment["area"] for segment in found["segments"]}
    share = 100 * area.get("marked", 0) / sum(area.values())
    assert abs(share - shown) < 3, (share, shown, canvas)
    browser.press("z")  # of the board, not of the page
    browser.until(status + ".startsWith('Paint the other class')")
    browser.press("1")
    assert browser.value("document.querySelector('[name=brush]:checked').value") == "0"
    browser.value("document.activeElement.blur()")


def use_tab(browser):
    """Everything that can be used is reached by Tab, and shows that it has the focus."""
    reached = []
    for _ in range(15):
        browser.press("Tab")
        at = browser.value("document.activeElement.id || document.activeElement.name || document.activeElement.tagName")
        if at == "BODY":  # after the last one
            if "model" in reached:
                break
            reached = []
            continue
        reached.append(at)
        assert browser.value("getComputedStyle(document.activeElement).outlineStyle") != "none", at
    nearest = ["search", "BUTTON"] if has_index else []
    assert reached == ["model", "drop", "choose", "example", "layer", "words", "template", "BUTTON", *nearest, "paint-begin"], reached


def use_other_images(browser):
    browser.press("Escape")
    browser.value("document.activeElement.blur()")
    heic = root + "/data/golden/preprocess/decode/full.heic"  # which Chromium does not show
    if subprocess.run([vit, "classify", heic], capture_output=True).returncode == 0:
        open_file(browser, heic)
        assert browser.value("document.getElementById('drop-help').textContent").startswith("full.heic")
        assert len(browser.value(LABELS)) == 2
        browser.press("2")
        assert browser.value("!document.getElementById('view').hidden")
    browser.press("o")
    browser.choose_file(root + "/README.md")
    browser.until("!document.getElementById('notice').hidden")
    assert browser.value(LABELS) == [], "classes of the image before"
    browser.complaints.clear()  # the 400 of what is no image
    for event in ("new ClipboardEvent('paste', {clipboardData: data, bubbles: true})", "new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true})"):
        browser.value(FORGET)
        browser.value(f"""(async () => {{
          const canvas = document.createElement('canvas');
          canvas.width = canvas.height = 40;
          const blob = await new Promise((done) => canvas.toBlob(done));
          const data = new DataTransfer();
          data.items.add(new File([blob], 'a.png', {{type: 'image/png'}}));
          document.body.dispatchEvent({event});
        }})()""")
        browser.until(ANSWERED)
        assert browser.value("document.getElementById('view').width") == 512
    browser.value("""(async () => {
      const read = FileReader.prototype.readAsDataURL, canvas = document.createElement('canvas');
      const blob = await new Promise((done) => canvas.toBlob(done));
      let isRead;
      const late = new Promise((done) => { isRead = done; });
      FileReader.prototype.readAsDataURL = function(file) {
        if (file.name !== 'late.png') return read.call(this, file);
        this.addEventListener('load', () => setTimeout(isRead, 300));
        setTimeout(() => read.call(this, file), 300);
      };
      for (const name of ['late.png', 'newest.png']) {
        const data = new DataTransfer();
        data.items.add(new File([blob], name, {type: 'image/png'}));
        document.body.dispatchEvent(new DragEvent('drop', {dataTransfer: data, bubbles: true, cancelable: true}));
      }
      await late;
    })()""")
    assert browser.value("vitPage.state.file.name") == "newest.png", "an image that was dropped before takes the place"


def check_pictures(address):
    """Only images of the index are given, and only with the key."""
    def status(path, headers):
        try:
            return urllib.request.urlopen(urllib.request.Request(address + path, headers=headers)).status
        except urllib.error.HTTPError as error:
            return error.code

    key = {"Authorization": "Bearer " + KEY}
    assert status("/page/picture/0", key) == 200
    assert status("/page/picture/0", {}) == 401
    assert {status("/page/picture/" + n, key) for n in ("99", "-1", "x", "0x", "..%2Fx")} == {404}


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    clip_model(folder + "/clip")
    indexed = subprocess.run([vit, "index", IMAGES, "--model", folder + "/clip", "--output", folder + "/index"], capture_output=True, text=True)
    has_index = indexed.returncode == 0
    assert has_index or "has no FAISS" in indexed.stderr, indexed.stderr
    server, address = start_server(folder, has_index)
    browser = Browser(chromium, folder + "/profile")
    try:
        browser.look()
        browser.open(address + "/")
        use_key(browser)
        check_layout(browser, "empty")
        use_classes(browser)
        use_words(browser)
        if has_index:
            use_nearest(browser)
            use_search(browser)
            check_pictures(address)
        use_tab(browser)
        use_board(browser)
        use_other_images(browser)
        assert browser.complaints == [], browser.complaints
    finally:
        browser.close()
        server.terminate()
        server.wait(timeout=60)
print("the page works" if has_index else "the page works (no FAISS: without an index)")
