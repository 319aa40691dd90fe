"""The coefficients of `vit fit --truth` next to scikit-learn's LogisticRegression on the same rows, which are computed here from the
patches of `vit embed` by their definition: of length one, bilinear between the centers of patches, and a mean for each class and patch.

    python tests/rings/fit/compare_pixels.py build/release/vit          (needs numpy, Pillow, safetensors and scikit-learn)

Prints the largest difference for three strengths, relative to the largest coefficient; exits 1 above 1e-5.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression

HEIGHT, WIDTH, PATCH = 48, 64, 4  # of the model that ships with the project


def axis(count, patches):
    at = np.clip((np.arange(count) + 0.5) / PATCH - 0.5, 0, patches - 1)
    low = at.astype(int)
    return low, np.minimum(low + 1, patches - 1), at - low


def interpolated(patches):
    (top, bottom, down), (left, right, across) = axis(HEIGHT, patches.shape[0]), axis(WIDTH, patches.shape[1])
    rows = (1 - down)[:, None, None] * patches[top] + down[:, None, None] * patches[bottom]
    return (1 - across)[None, :, None] * rows[:, left] + across[None, :, None] * rows[:, right]


def training_rows(labels, features):
    rows = {}
    for y, x in np.argwhere(labels != 255):
        rows.setdefault((int(labels[y, x]), y // PATCH, x // PATCH), []).append(features[y, x])
    return np.array([np.mean(pixels, 0) for pixels in rows.values()]).astype(np.float32), np.array([key[0] for key in rows])


def main():
    vit = sys.argv[1]

    def run(*arguments):
        subprocess.run([vit, *map(str, arguments)], check=True, stdout=subprocess.DEVNULL)

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        image = np.full((HEIGHT, WIDTH, 3), (60.0, 80.0, 100.0))
        image[12:36, 20:44] = (200, 160, 120)
        image += np.random.default_rng(0).uniform(-20, 20, image.shape)
        Image.fromarray(image.clip(0, 255).astype(np.uint8)).save(folder / "a.png")
        labels = np.full((HEIGHT, WIDTH), 255, np.uint8)
        labels[2:6, 3:60], labels[15:30, 22:40], labels[40:46, 5:50] = 0, 1, 2
        (folder / "labels").mkdir()
        Image.fromarray(labels).save(folder / "labels/a.png")
        run("embed", folder / "a.png", "--size", "native", "--features", "patches", "--output", folder / "patches.npz")
        arrays = np.load(folder / "patches.npz")
        patches = arrays[next(n for n in arrays if n.startswith("patches"))].reshape(HEIGHT // PATCH, WIDTH // PATCH, -1)
        patches = patches.astype(np.float64)
        x, y = training_rows(labels, interpolated(patches / np.linalg.norm(patches, axis=-1, keepdims=True)))
        worst, balanced = 0.0, "balanced" if 2 * (labels != 255).sum() < labels.size else None
        for strength in (0.1, 1.0, 10.0):
            run("fit", folder / "a.png", "--truth", folder / "labels", "--size", "native", "--strength", strength, "--output",
                folder / "head.safetensors")
            peer = LogisticRegression(C=strength, tol=1e-12, max_iter=200000, fit_intercept=False, class_weight=balanced).fit(x.astype(np.float64), y)
            found = load_file(folder / "head.safetensors")["coefficients"]
            difference = np.abs(found - peer.coef_).max() / np.abs(peer.coef_).max()
            print(f"strength {strength}: {len(x)} rows, {difference:.1e}")
            worst = max(worst, difference)
    return int(worst > 1e-5)


if __name__ == "__main__":
    sys.exit(main())
