"""Classes of pixels from a few strokes: mean IoU of `vit fit --truth` by the number of strokes on one image, next to scikit-learn
on the same features, and its ways from patches to pixels. The images are drawn by data/images, which knows what covers a pixel.

    python apps/bench/compare/pixels.py --vit build/release/vit --model DINOV2 --folder FOLDER
                                        (needs numpy, Pillow and scikit-learn; a quarter of an hour)
"""

import argparse
import json
import resource
import subprocess
import sys
import time
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "data" / "images"))
NAMES = ["horse_field.jpg", "horse_grazing.png", "deer_stag.jpg", "dog_retriever.jpg", "dog_terrier.png", "cat_tabby.jpg"]
EDGE = 480  # of the drawn images, the longer one
BAND = 4  # pixels on both sides of an edge


def draw_images(folder):
    """photos/NAME.png and masks/NAME.png: 1 where the animal covers the pixel."""
    import make_images
    seen = []

    class SeenScene(make_images.Scene):

        def __init__(self, *arguments):
            super().__init__(*arguments)
            seen.append(self)

    make_images.Scene = SeenScene
    for sub in ("photos", "masks"):
        (folder / sub).mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        stem = Path(name).stem
        if (folder / "masks" / f"{stem}.png").exists():
            continue
        width, height, *rest = make_images.IMAGES[name]
        scale = EDGE / max(width, height)
        width, height = round(width * scale), round(height * scale)
        image = make_images.draw(name, width, height, *rest)
        covered = Image.fromarray((seen[-1].covered() * 255).astype(np.uint8)).resize((width, height), Image.BOX)
        image.save(folder / "photos" / f"{stem}.png")
        Image.fromarray((np.asarray(covered) > 127).astype(np.uint8)).save(folder / "masks" / f"{stem}.png")


def strokes_on(mask, count, seed):
    """`count` lines of 5 x 50 pixels of each class, each within it: an RGBA image, red = 1, blue = 0."""
    rng = np.random.default_rng(seed)
    out = Image.new("RGBA", mask.shape[::-1])
    draw = ImageDraw.Draw(out)
    for label, color in ((1, (255, 0, 0, 255)), (0, (0, 0, 255, 255))):
        inside = np.argwhere(mask == label)
        drawn = 0
        while drawn < count:
            y, x = inside[rng.integers(len(inside))]
            angle = rng.uniform(0, np.pi)
            dx, dy = 25 * np.cos(angle), 25 * np.sin(angle)
            line = Image.new("1", out.size)
            ImageDraw.Draw(line).line((x - dx, y - dy, x + dx, y + dy), fill=1, width=5)
            hit = np.asarray(line)
            if hit.sum() < 200 or (mask[hit] != label).any():
                continue
            draw.line((x - dx, y - dy, x + dx, y + dy), fill=color, width=5)
            drawn += 1
    return out


def run(arguments):
    start = time.perf_counter()
    done = subprocess.run([str(a) for a in arguments], check=True, capture_output=True, text=True)
    return done.stdout, time.perf_counter() - start


def iou(found, truth, where=None):
    where = np.ones_like(truth, bool) if where is None else where
    return float(
        np.mean([((found == k) & (truth == k) & where).sum() / max(((found == k) | (truth == k))[where].sum(), 1)
                 for k in (0, 1)]))


def band_of(mask):
    """Pixels at most BAND from one of the other class."""
    padded = np.pad(mask, BAND, mode="edge")
    shifted = [padded[y:y + mask.shape[0], x:x + mask.shape[1]] for y in range(2 * BAND + 1) for x in range(2 * BAND + 1)
               if (y - BAND)**2 + (x - BAND)**2 <= BAND**2]
    return np.stack(shifted).min(0) != np.stack(shifted).max(0)


class Program:

    def __init__(self, options):
        self.vit, self.model, self.size, self.folder = options.vit, options.model, options.size, options.folder

    def masks(self, strokes, *ways):
        """Masks of all images, by a head that is learned from strokes on the first one."""
        head, out = self.folder / "head.safetensors", self.folder / "found.npz"
        text, _ = run([self.vit, "fit", "--model", self.model, "--size", self.size, self.folder / "photos", "--truth", strokes,
                       "--output", head, "--names", "rest,animal", "--format", "json", *ways])
        _, seconds = run([self.vit, "segment", "--classifier", head, self.folder / "photos", "--output", out])
        arrays = np.load(out)
        order = sorted(Path(n).stem for n in NAMES)
        return json.loads(text), {stem: arrays[f"segmentation.{i}"] for i, stem in enumerate(order)}, seconds

    def patches(self):
        """(h, w, C) features of each image as `--size` of the classes of pixels has them: the squashed image."""
        out = {}
        for stem in (Path(n).stem for n in NAMES):
            image = Image.open(self.folder / "photos" / f"{stem}.png")
            shortest = min(image.size)
            width, height = (round(e / shortest * self.size / 14) * 14 for e in image.size)
            small = self.folder / "squashed" / f"{stem}.png"
            small.parent.mkdir(exist_ok=True)
            image.resize((width, height), Image.BICUBIC).save(small)
            run([self.vit, "embed", "--model", self.model, "--size", "native", "--features", "patches", small, "--output",
                 self.folder / "patches.npz"])
            arrays = np.load(self.folder / "patches.npz")
            out[stem] = arrays[[n for n in arrays if n.startswith("patches")][0]].reshape(height // 14, width // 14, -1)
        return out


def nearest_masks(model, patches, truths):
    out = {}
    for stem, features in patches.items():
        labels = model.predict(features.reshape(-1, features.shape[-1])).reshape(features.shape[:2]).astype(np.uint8)
        out[stem] = np.asarray(Image.fromarray(labels).resize(truths[stem].shape[::-1], Image.NEAREST))
    return out


def peers(patches, strokes, stem, truths):
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    painted = np.asarray(strokes)
    features = patches[stem]
    ys, xs = np.nonzero(painted[..., 3])
    rows = ys * features.shape[0] // painted.shape[0], xs * features.shape[1] // painted.shape[1]
    y = (painted[ys, xs, 0] > 0).astype(int)
    _, once = np.unique(np.column_stack([*rows, y]), axis=0, return_index=True)  # a patch and class once
    chosen = features[rows][once], y[once]
    for name, model in (("LogisticRegression", make_pipeline(StandardScaler(), LogisticRegression(max_iter=5000))),
                        ("RandomForestClassifier", RandomForestClassifier(200, random_state=0))):
        yield name, nearest_masks(model.fit(*chosen), patches, truths)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", default="build/release/vit", type=Path)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--size", default=518, type=int)
    parser.add_argument("--strokes", default="1,2,4,8")
    options = parser.parse_args()
    draw_images(options.folder)
    truths = {Path(n).stem: np.asarray(Image.open(options.folder / "masks" / f"{Path(n).stem}.png")) for n in NAMES}
    program, first = Program(options), sorted(truths)[0]
    patches = program.patches()

    def report(name, found):
        others = np.mean([iou(found[s], truths[s]) for s in truths if s != first])
        print(f"| {name} | {100 * iou(found[first], truths[first]):.1f} | {100 * others:.1f} |", flush=True)

    for count in (int(c) for c in options.strokes.split(",")):
        strokes = options.folder / f"strokes{count}"
        strokes.mkdir(exist_ok=True)
        painted = strokes_on(truths[first], count, zlib.crc32(b"strokes") + count)
        painted.save(strokes / f"{first}.png")
        # blue is the ground: the order of names is that of the first pixels
        order = [tuple(c) for c in np.asarray(painted)[np.asarray(painted)[..., 3] > 0][:1, :3]]
        flip = order[0] != (0, 0, 255)
        for name, ways in (("vit fit, bilinear", []), ("vit fit, guided", ["--upsample", "guided"])):
            _, found, _ = program.masks(strokes, *ways)
            report(f"{count} | {name}", {s: 1 - m if flip else m for s, m in found.items()})
        for name, found in peers(patches, painted, first, truths):
            report(f"{count} | {name}, nearest patch", found)
    bands = {s: band_of(truths[s]) for s in truths}
    for name, ways in (("bilinear", []), ("shift, 2 x 2", ["--upsample", "shift"]),
                       ("shift, 4 x 4", ["--upsample", "shift", "--shifts", "4"]), ("guided", ["--upsample", "guided"]),
                       ("guided, color", ["--upsample", "guided", "--channels-of-color"]),
                       ("blocks 3, 7, 11", ["--layers", "3,7,11"])):
        _, found, seconds = program.masks(strokes, *ways)
        found = {s: 1 - m if flip else m for s, m in found.items()}
        print(f"| {name} | {100 * np.mean([iou(found[s], truths[s]) for s in truths]):.1f} | "
              f"{100 * np.mean([iou(found[s], truths[s], bands[s]) for s in truths]):.1f} | {seconds / len(truths):.2f} |", flush=True)
    print("MiB of the largest run:", resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)


if __name__ == "__main__":
    main()
