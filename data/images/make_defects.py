"""Makes a small set of good and damaged images in the form of MVTec AD from one sample image: FOLDER/train/good,
FOLDER/test/{good,scratch,blob,missing} and FOLDER/ground_truth/{scratch,blob,missing}/NAME_mask.png. Good images differ by a
shift of a few pixels, brightness and noise; defects are drawn by seeded random numbers.

    python data/images/make_defects.py data/images/automobile_red.jpg FOLDER [--train 12] [--test 8] [--seed 1]
                                                     (needs numpy and Pillow)
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

SIZE = 448
MARGIN = 8


def photograph(rng, base):
    """The image as another photograph of the same thing: (SIZE, SIZE, 3) in 0 to 255, float."""
    x, y = rng.integers(0, 2 * MARGIN + 1, 2)
    shown = base[y:y + SIZE, x:x + SIZE].astype(float)
    return shown * rng.uniform(0.95, 1.05) + rng.normal(0, 2.0, shown.shape)


def scratch(rng, mask):
    points = [tuple(rng.uniform(0.2, 0.8, 2) * SIZE)]
    angle = rng.uniform(0, np.pi)
    for _ in range(4):
        angle += rng.normal(0, 0.3)
        points.append((points[-1][0] + 22 * np.cos(angle), points[-1][1] + 22 * np.sin(angle)))
    ImageDraw.Draw(mask).line(points, fill=255, width=int(rng.integers(3, 6)))
    return np.array([235.0, 235.0, 230.0])


def blob(rng, mask):
    x, y = rng.uniform(0.2, 0.8, 2) * SIZE
    draw = ImageDraw.Draw(mask)
    for _ in range(4):
        radius = rng.uniform(6, 14)
        u, v = rng.normal(0, 8, 2) + (x, y)
        draw.ellipse((u - radius, v - radius, u + radius, v + radius), fill=255)
    return np.array([60.0, 45.0, 30.0])


def missing(rng, mask):
    x, y = rng.uniform(0.25, 0.7, 2) * SIZE
    width, height = rng.uniform(28, 60, 2)
    ImageDraw.Draw(mask).rectangle((x, y, x + width, y + height), fill=255)
    return None  # the surroundings fill the hole


def damaged(rng, image, draw):
    mask = Image.new("L", (SIZE, SIZE))
    color = draw(rng, mask)
    hit = np.asarray(mask) > 0
    out = image.copy()
    if color is None:
        columns = np.flatnonzero(hit.any(0))
        out[hit] = np.roll(image, columns[-1] - columns[0] + 1, axis=1)[hit]
    else:
        out[hit] = 0.15 * image[hit] + 0.85 * color
    return out, mask


def save(path, image):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.clip(np.round(image), 0, 255).astype(np.uint8)).save(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--train", type=int, default=12)
    parser.add_argument("--test", type=int, default=8, help="images of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    edge = SIZE + 2 * MARGIN
    base = np.asarray(Image.open(options.image).convert("RGB").resize((edge, edge), Image.Resampling.BICUBIC))
    rng = np.random.default_rng(options.seed)
    for i in range(options.train):
        save(options.folder / f"train/good/{i:03}.png", photograph(rng, base))
    for i in range(options.test):
        save(options.folder / f"test/good/{i:03}.png", photograph(rng, base))
    for draw in (scratch, blob, missing):
        for i in range(options.test):
            image, mask = damaged(rng, photograph(rng, base), draw)
            save(options.folder / f"test/{draw.__name__}/{i:03}.png", image)
            save(options.folder / f"ground_truth/{draw.__name__}/{i:03}_mask.png", np.asarray(mask, float))


if __name__ == "__main__":
    main()
