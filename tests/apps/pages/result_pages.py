#!/usr/bin/env python3
"""Pages of `vit classify`, `duplicates` and `search --html` in Chromium: result_pages.py VIT CHROMIUM SOURCE_FOLDER."""
import pathlib
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from browser import Browser  # noqa: E402

vit, chromium, root = sys.argv[1:]
here = pathlib.Path(__file__).parent


def use_page(browser, steps, *arguments):
    """Makes a page by a command, and uses it as the script `steps` says."""
    page = pathlib.Path(folder, arguments[0] + ".html")
    subprocess.run([vit, *arguments, "--html", str(page)], check=True, stdout=subprocess.DEVNULL)
    browser.open(page.as_uri())
    script = (here / "steps.js").read_text("utf-8") + (here / steps).read_text("utf-8")
    failed = browser.value("(async () => {" + script + "return failed; })()")
    fetched = browser.value("performance.getEntriesByType('resource').map((e) => e.name).filter((name) => !name.startsWith('data:'))")
    assert failed == [], f"vit {arguments[0]}: {failed}"
    assert fetched == [], fetched
    assert browser.complaints == [], browser.complaints  # of scripts and of the page's own policy


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    images = root + "/data/images"
    browser = Browser(chromium, folder + "/profile")
    try:
        browser.look()
        use_page(browser, "list_steps.js", "classify", images)
        use_page(browser, "sections_steps.js", "duplicates", images, "--threshold", "0.8")
        indexed = subprocess.run([vit, "index", images, "--output", folder + "/index"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if "has no FAISS" in indexed.stderr:
            print("no page of vit search: " + indexed.stderr)
        else:
            assert indexed.returncode == 0, indexed.stderr
            use_page(browser, "sections_steps.js", "search", folder + "/index", images + "/frog_brown.png", images + "/ship_cargo.jpg", "--each")
    finally:
        browser.close()
print("the pages work")
