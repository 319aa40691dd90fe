"""Classes of pixels from a few strokes: mean IoU of `vit fit --truth` by the number of strokes on one image, next to scikit-learn
on the same features, and its ways from patches to pixels, also for images of 2048 pixels. The images are drawn by data/images,
which knows what covers a pixel; each is in turn the one with the strokes.

    python apps/bench/compare/pixels.py --vit build/release/vit --model DINOV2 --folder FOLDER
                                        (needs numpy, Pillow and scikit-learn; a quarter of an hour)
"""

import argparse
import json
import os
import struct
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
EDGE, LARGE = 480, 2048  # of the drawn images, the longer one
BAND = 4  # pixels on both sides of an edge


def draw_images(folder, edge):
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
        scale = edge / max(width, height)
        width, height = round(width * scale), round(height * scale)
        image = make_images.draw(name, width, height, *rest)
        covered = Image.fromarray((seen[-1].covered() * 255).astype(np.uint8)).resize((width, height), Image.BOX)
        image.save(folder / "photos" / f"{stem}.png")
        Image.fromarray((np.asarray(covered) > 127).astype(np.uint8)).save(folder / "masks" / f"{stem}.png")


def strokes_on(mask, count, seed):
    """`count` lines of 5 x 50 pixels of each class, of an image of 480, each within it: an RGBA image, red = 1, blue = 0."""
    unit = max(mask.shape) / EDGE
    rng = np.random.default_rng(seed)
    out = Image.new("RGBA", mask.shape[::-1])
    draw = ImageDraw.Draw(out)
    for label, color in ((1, (255, 0, 0, 255)), (0, (0, 0, 255, 255))):
        inside = np.argwhere(mask == label)
        drawn = 0
        while drawn < count:
            y, x = inside[rng.integers(len(inside))]
            angle = rng.uniform(0, np.pi)
            dx, dy = 25 * unit * np.cos(angle), 25 * unit * np.sin(angle)
            line = Image.new("1", out.size)
            ImageDraw.Draw(line).line((x - dx, y - dy, x + dx, y + dy), fill=1, width=round(5 * unit))
            hit = np.asarray(line)
            if hit.sum() < 200 * unit**2 or (mask[hit] != label).any():
                continue
            draw.line((x - dx, y - dy, x + dx, y + dy), fill=color, width=round(5 * unit))
            drawn += 1
    return out


def run(arguments):
    """What a command prints, its processor seconds, and the MiB of memory that it took at most."""
    child = subprocess.Popen([str(a) for a in arguments], stdout=subprocess.PIPE, text=True)
    text = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        raise SystemExit(f"{arguments} ended with {child.returncode}")
    return text, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


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

    def __init__(self, options, folder):
        self.vit, self.model, self.size, self.folder = options.vit, options.model, options.size, folder

    def masks(self, strokes, *ways):
        """Masks of all images, by a head that is learned from strokes on one; processor seconds of an image, MiB, and the head."""
        head, out = self.folder / "head.safetensors", self.folder / "found.npz"
        run([self.vit, "fit", "--model", self.model, "--size", self.size, self.folder / "photos", "--truth", strokes, "--output", head,
             "--quiet", *ways])
        _, seconds, mebibytes = run([self.vit, "segment", "--classifier", head, self.folder / "photos", "--output", out])
        arrays = np.load(out)
        order = sorted(p.stem for p in (self.folder / "photos").iterdir())
        return {stem: arrays[f"segmentation.{i}"] for i, stem in enumerate(order)}, seconds / len(order), mebibytes, head

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
            run([self.vit, "embed", "--quiet", "--model", self.model, "--size", "native", "--features", "patches", small, "--output",
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


def numbers_of(head, name):
    """A tensor of a head of `vit fit`, in float32."""
    file = head.read_bytes()
    size = struct.unpack("<Q", file[:8])[0]
    place = json.loads(file[8:8 + size])[name]
    begin, end = (8 + size + o for o in place["data_offsets"])
    return np.frombuffer(file[begin:end], "<f4").reshape(place["shape"])


def nearest_of(head, patches, truths):
    """The masks of a head on patches without any upsampling."""
    class Functions:

        @staticmethod
        def predict(rows):
            units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
            return (units @ numbers_of(head, "coefficients").T + numbers_of(head, "intercepts")).argmax(1)

    return nearest_masks(Functions, patches, truths)


def read_truths(folder):
    return {path.stem: np.asarray(Image.open(path)) for path in sorted((folder / "masks").iterdir())}


def paint(folder, truths, stem, count):
    """Strokes on one image; whether the animal is class 0, which has the color that comes first."""
    strokes = folder / f"strokes{count}_{stem}"
    strokes.mkdir(exist_ok=True)
    painted = strokes_on(truths[stem], count, zlib.crc32(stem.encode()) + count)
    painted.save(strokes / f"{stem}.png")
    pixels = np.asarray(painted)
    return strokes, painted, tuple(pixels[pixels[..., 3] > 0][0, :3]) != (0, 0, 255)


def strokes_table(program, truths, patches, counts):
    print("| strokes of each class | | this image | the others |\n|---|---|---|---|")
    for count in counts:
        scores = {}

        def note(name, found, stem):
            others = np.mean([iou(found[s], truths[s]) for s in truths if s != stem])
            scores.setdefault(name, []).append((100 * iou(found[stem], truths[stem]), 100 * others))

        for stem in truths:
            strokes, painted, flip = paint(program.folder, truths, stem, count)
            for name, ways in (("vit fit, bilinear", []), ("vit fit, guided", ["--upsample", "guided"])):
                found, *_ = program.masks(strokes, *ways)
                note(name, {s: 1 - m if flip else m for s, m in found.items()}, stem)
            for name, found in peers(patches, painted, stem, truths):
                note(f"{name}, nearest patch", found, stem)
        for name, pairs in scores.items():
            own, others = np.mean(pairs, 0)
            print(f"| {count} | {name} | {own:.1f} | {others:.1f} |", flush=True)


def ways_table(program, truths, patches, stems):
    print("| | IoU | IoU at edges | processor seconds an image | MiB |\n|---|---|---|---|---|")
    bands = {s: band_of(truths[s]) for s in truths}
    rows = {}

    def note(name, found, seconds, mebibytes):
        rows.setdefault(name, []).append((100 * np.mean([iou(found[s], truths[s]) for s in truths]),
                                          100 * np.mean([iou(found[s], truths[s], bands[s]) for s in truths]), seconds, mebibytes))

    for stem in stems:
        strokes, _, flip = paint(program.folder, truths, stem, 4)
        for name, ways in (("bilinear", []), ("shift, 2 x 2", ["--upsample", "shift"]), ("guided", ["--upsample", "guided"])):
            found, seconds, mebibytes, head = program.masks(strokes, *ways)
            if name == "bilinear" and patches:
                near = nearest_of(head, patches, truths)
                note("none: the nearest patch", {s: 1 - m if flip else m for s, m in near.items()}, seconds, mebibytes)
            note(name, {s: 1 - m if flip else m for s, m in found.items()}, seconds, mebibytes)
    for name, of in rows.items():
        all_pixels, edges, seconds, mebibytes = np.mean(of, 0)
        print(f"| {name} | {all_pixels:.1f} | {edges:.1f} | {seconds:.2f} | {mebibytes:.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", default="build/release/vit", type=Path)
    parser.add_argument("--model", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--size", default=518, type=int)
    parser.add_argument("--strokes", default="1,2,4,8")
    options = parser.parse_args()
    draw_images(options.folder, EDGE)
    truths, program = read_truths(options.folder), Program(options, options.folder)
    patches = program.patches()
    strokes_table(program, truths, patches, [int(c) for c in options.strokes.split(",") if c])
    ways_table(program, truths, patches, list(truths))
    large = options.folder / "large"
    draw_images(large, LARGE)
    truths = read_truths(large)
    ways_table(Program(options, large), truths, None, list(truths)[:1])


if __name__ == "__main__":
    main()
