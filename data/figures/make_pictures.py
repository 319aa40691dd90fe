"""Draws data/figures/{pca,attention,match,page}.jpg with the program and the images of data/images.

    python data/figures/make_pictures.py VIT [CHROMIUM]     VIT: the program; CHROMIUM (default `chromium`) takes page.jpg

Needs Pillow. The pictures are those of `vit show` and `vit classify --html` with the model shipped in data/, made smaller.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

FIGURES = Path(__file__).resolve().parent
IMAGES = FIGURES.parent / "images"
CATS_AND_DOGS = ("cat_tabby.jpg", "cat_tuxedo.png", "dog_retriever.jpg", "dog_terrier.png")
SHOWN = {
    "pca": (CATS_AND_DOGS, ("--size", "64", "--layer", "5")),
    "attention": (("deer_stag.jpg",), ("--size", "80", "--head", "all")),
    "match": (("cat_tabby.jpg", "cat_tuxedo.png"), ("--layer", "7")),
}


def save(picture, name, width):
    picture = picture.convert("RGB")
    if picture.width > width:
        picture = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
    picture.save(FIGURES / f"{name}.jpg", quality=78, optimize=True, progressive=True)


def main():
    vit = Path(sys.argv[1]).resolve()
    chromium = sys.argv[2] if len(sys.argv) > 2 else "chromium"
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for what, (names, options) in SHOWN.items():
            png = scratch / f"{what}.png"
            subprocess.run([vit, "show", *names, "--what", what, *options, "--output", png], check=True, cwd=IMAGES)
            save(Image.open(png), what, 760)
        page, shot = scratch / "page.html", scratch / "page.png"
        subprocess.run([vit, "classify", "--quiet", IMAGES, "--html", page], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,700",
                        "--virtual-time-budget=5000", f"--screenshot={shot}", page.as_uri()],
                       check=True, stderr=subprocess.DEVNULL)
        save(Image.open(shot), "page", 1100)


if __name__ == "__main__":
    main()
