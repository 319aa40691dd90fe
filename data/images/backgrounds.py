"""Skies, grounds and rooms to set a subject in front of, made of noise of several sizes."""

import numpy as np
from PIL import Image, ImageFilter


def blurred(field, radius):
    """Gaussian blur of a (H, W) field."""
    image = Image.fromarray(np.asarray(field, dtype=np.float32), mode="F")
    low, high = float(np.min(field)), float(np.max(field))
    if high <= low:
        return np.asarray(field, dtype=np.float32)
    bytes_ = Image.fromarray(((np.asarray(image) - low) / (high - low) * 255).astype(np.uint8))
    return np.asarray(bytes_.filter(ImageFilter.GaussianBlur(radius)),
                      dtype=np.float32) / 255 * (high - low) + low


def noise(rng, shape, cells, stretch=(1.0, 1.0), octaves=4, keep=0.5):
    """Smooth noise around zero with deviation one; `cells` across the width at first, `stretch` = (x, y)
    lengthens the blobs."""
    height, width = shape
    total = np.zeros(shape, dtype=np.float32)
    for octave in range(octaves):
        across = max(int(cells * 2**octave / stretch[0]), 2)
        down = max(int(cells * 2**octave * height / width / stretch[1]), 2)
        small = Image.fromarray(
            rng.standard_normal((min(down, height), min(across, width))).astype(np.float32))
        total += keep**octave * np.asarray(small.resize((width, height), Image.BICUBIC))
    return (total - total.mean()) / (total.std() + 1e-6)


def ramp(shape, top, bottom):
    t = np.linspace(0, 1, shape[0], dtype=np.float32)[:, None, None]
    return np.broadcast_to((1 - t) * np.array(top, dtype=np.float32) + t * np.array(bottom, dtype=np.float32),
                           (*shape, 3)).copy()


def mix(a, b, share):
    return a * (1 - share[..., None]) + np.asarray(b, dtype=np.float32) * share[..., None]


def sky(rng, shape, top=(0.32, 0.52, 0.82), bottom=(0.70, 0.81, 0.92), clouds=0.7):
    canvas = ramp(shape, top, bottom)
    cover = np.clip(noise(rng, shape, 3, (2.0, 1.0), 5) * 0.55 - 0.1, 0, 1) * clouds
    return mix(canvas, (0.95, 0.95, 0.96), cover)


def below(canvas, row, ground, soft=2):
    """Ground from `row` down, the sky above it."""
    height = canvas.shape[0]
    share = np.clip((np.arange(height, dtype=np.float32) - row) / soft + 0.5, 0, 1)[:, None]
    return mix(canvas, ground, np.broadcast_to(share, canvas.shape[:2]))


def grass(rng, shape, colour=(0.36, 0.50, 0.18), dry=(0.60, 0.56, 0.30)):
    blades = noise(rng, shape, 60, (0.6, 2.2), 3, 0.8)
    patches = noise(rng, shape, 4, (2.5, 1.0), 3)
    canvas = np.broadcast_to(np.array(colour, dtype=np.float32),
                              (*shape, 3)) * (1 + 0.20 * blades[..., None])
    return np.clip(mix(canvas, dry, np.clip(0.25 + 0.25 * patches, 0, 0.8)), 0, 1)


def trees(rng, shape, dark=(0.10, 0.17, 0.08), light=(0.34, 0.44, 0.20)):
    leaves = noise(rng, shape, 9, (0.9, 1.2), 5, 0.75)
    return mix(np.broadcast_to(np.array(dark, dtype=np.float32), (*shape, 3)), light,
               np.clip(0.35 + 0.3 * leaves, 0, 1))


def water(rng, shape, horizon, colour=(0.16, 0.30, 0.42), glint=(0.55, 0.68, 0.78)):
    """Waves that grow towards the viewer."""
    height, width = shape
    fine, coarse = noise(rng, shape, 40, (5.0, 0.6), 3, 0.7), noise(rng, shape, 14, (4.0, 0.7), 3, 0.6)
    near = np.clip((np.arange(height, dtype=np.float32) - horizon) / max(height - horizon, 1), 0, 1)[:, None]
    waves = fine * (1 - near) + coarse * near
    canvas = np.broadcast_to(np.array(colour, dtype=np.float32),
                              (*shape, 3)) * (1.25 - 0.45 * near[..., None])
    return mix(canvas, glint, np.clip(0.12 + 0.22 * waves, 0, 1))


def plain(rng, shape, colour, amount=0.06, cells=30, stretch=(1.0, 1.0)):
    """Asphalt, sand, walls, carpets."""
    return np.clip(
        np.array(colour, dtype=np.float32) *
        (1 + amount * noise(rng, shape, cells, stretch, 4, 0.8)[..., None]), 0, 1).astype(np.float32)


def softened(canvas, radius):
    """Out of focus."""
    image = Image.fromarray((np.clip(canvas, 0, 1) * 255).astype(np.uint8))
    return np.asarray(image.filter(ImageFilter.GaussianBlur(radius)), dtype=np.float32) / 255
