"""Draws data/figures/{pca,attention,match,anomaly,page}.jpg with the program and the images of data/images.

    python data/figures/make_pictures.py VIT MODEL [CHROMIUM]     VIT: the program; MODEL: a folder of DINOv2 ViT-S/14, as
                                                                  transformers has it; CHROMIUM (default `chromium`) takes page.jpg

Needs numpy and Pillow. The pictures are those of `vit show` and `vit anomaly score` with DINOv2 ViT-S/14 (Meta, Apache-2.0), which is not
in this repository, and of `vit classify --html` with the model in data/, reduced in size.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

FIGURES = Path(__file__).resolve().parent
IMAGES = FIGURES.parent / "images"
SHOWN = {
    "pca": (("cat_tabby.jpg", "cat_tuxedo.png", "dog_retriever.jpg", "dog_terrier.png"), ("--size", "448", "--foreground")),
    "attention": (("deer_stag.jpg", "horse_field.jpg"), ("--size", "448", "--head", "mean")),
    "match": (("dog_retriever.jpg", "dog_terrier.png"), ("--size", "224")),
}


def save(picture, name, width):
    picture = picture.convert("RGB")
    if picture.width > width:
        picture = picture.resize((width, round(picture.height * width / picture.width)), Image.Resampling.LANCZOS)
    picture.save(FIGURES / f"{name}.jpg", quality=78, optimize=True, progressive=True)


def draw_anomaly(vit, model, scratch):
    """A damaged image, and the map of its distances to the patches of good ones."""
    made, maps, bank = scratch / "defects", scratch / "maps", scratch / "bank.safetensors"
    subprocess.run([sys.executable, IMAGES / "make_defects.py", IMAGES / "cat_tabby.jpg", made], check=True)
    subprocess.run([vit, "anomaly", "fit", made / "train/good", "--model", model, "--output", bank, "--quiet"], check=True)
    damaged = [made / f"test/blob/00{i}.png" for i in (0, 1)]
    subprocess.run([vit, "anomaly", "score", bank, *damaged, "--model", model, "--maps", maps, "--map-formats", "overlay", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    shown = [Image.open(path) for path in sum(zip(damaged, sorted(maps.rglob("*overlay*.png"))), ())]
    row = Image.new("RGB", (sum(picture.width for picture in shown) + 8 * len(shown), shown[0].height), "white")
    for i, picture in enumerate(shown):
        row.paste(picture, (sum(before.width + 8 for before in shown[:i]), 0))
    save(row, "anomaly", 760)


def main():
    vit, model = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    chromium = sys.argv[3] if len(sys.argv) > 3 else "chromium"
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        for what, (names, options) in SHOWN.items():
            png = scratch / f"{what}.png"
            subprocess.run([vit, "show", *names, "--model", model, "--what", what, *options, "--output", png], check=True, cwd=IMAGES)
            save(Image.open(png), what, 760)
        draw_anomaly(vit, model, scratch)
        page, shot = scratch / "page.html", scratch / "page.png"
        subprocess.run([vit, "classify", "--quiet", IMAGES, "--html", page], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1100,700",
                        "--virtual-time-budget=5000", f"--screenshot={shot}", page.as_uri()],
                       check=True, stderr=subprocess.DEVNULL)
        save(Image.open(shot), "page", 1100)


if __name__ == "__main__":
    main()
