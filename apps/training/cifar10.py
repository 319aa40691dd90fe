"""CIFAR-10 as tensors: reads class folders (or a zip of them) once, keeps a cache of bytes, and splits off
images to watch training with."""

import hashlib
import io
import math
import os
import zipfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2470, 0.2435, 0.2616)
HELD_OUT_PER_CLASS = 250
SPLIT_SEED = 20


def read_archive(archive, cache_folder):
    """Decodes `<class>/<file>.jpg` of a zip file. Returns images (N, 3, 32, 32) uint8 and labels (N,) int64,
    in name order."""
    archive = Path(archive)
    if not zipfile.is_zipfile(archive):
        raise SystemExit(f"{archive}: {'not a zip file' if archive.exists() else 'no such file'}; "
                         "a zip of <class>/<file>.jpg is expected")
    key = hashlib.sha256(f"{archive.resolve()} {archive.stat().st_size}".encode()).hexdigest()[:12]
    cache = Path(cache_folder) / f"{archive.stem}-{key}.npz"
    if not cache.exists():
        pixels, labels = [], []
        with zipfile.ZipFile(archive) as opened:
            for name in sorted(n for n in opened.namelist() if n.endswith(".jpg")):
                label = Path(name).parent.name
                if label not in CLASSES:
                    raise SystemExit(f"{archive}: the folder of {name} is none of {', '.join(CLASSES)}")
                image = Image.open(io.BytesIO(opened.read(name))).convert("RGB")
                if image.size != (32, 32):
                    raise SystemExit(f"{archive}: {name} has {image.width} x {image.height} pixels, not 32 x 32")
                labels.append(CLASSES.index(label))
                pixels.append(np.asarray(image))
        if not pixels:
            raise SystemExit(f"{archive}: no <class>/<file>.jpg in it")
        cache.parent.mkdir(parents=True, exist_ok=True)
        unfinished = cache.with_suffix(".new.npz")
        np.savez(unfinished,
                 pixels=np.stack(pixels).transpose(0, 3, 1, 2),
                 labels=np.array(labels, dtype=np.int64))
        os.replace(unfinished, cache)
    stored = np.load(cache)
    return torch.from_numpy(stored["pixels"]), torch.from_numpy(stored["labels"])


def split_held_out(labels):
    """Indices (train, held_out): the same 250 images of each class every time, so that nothing is tuned on
    the test set. Ends the program if no image is left to train on."""
    generator = torch.Generator().manual_seed(SPLIT_SEED)
    held_out = []
    for label in range(len(CLASSES)):
        members = (labels == label).nonzero().flatten()
        held_out.append(members[torch.randperm(len(members), generator=generator)[:HELD_OUT_PER_CLASS]])
    held_out = torch.cat(held_out)
    keep = torch.ones(len(labels), dtype=torch.bool)
    keep[held_out] = False
    if not keep.any():
        raise SystemExit(f"no image is left to train on: of {len(labels)} images, {HELD_OUT_PER_CLASS} of each class "
                         "are held out")
    return keep.nonzero().flatten(), held_out


def one_hot(labels):
    """(B) class indices as (B, C) probabilities."""
    return torch.nn.functional.one_hot(labels, len(CLASSES)).float()


def shuffled_batches(index, size, generator):
    """Batches without end: `index` in a new order each time around, an incomplete last batch left out."""
    while True:
        order = index[torch.randperm(len(index), generator=generator)]
        for start in range(0, len(order) - size + 1, size):
            yield order[start:start + size]


def normalise(pixels, mean=MEAN, std=STD):
    """(B, 3, H, W) of 0..255 to floats with zero mean and unit deviation per channel."""
    mean = torch.tensor(mean, device=pixels.device).view(1, 3, 1, 1) * 255
    std = torch.tensor(std, device=pixels.device).view(1, 3, 1, 1) * 255
    return (pixels.float() - mean) / std


def resized(pixels, edge):
    """Bytes (N, 3, H, W) at edge x edge pixels, filtered as Pillow's bicubic resize does."""
    if pixels.shape[-1] == edge:
        return pixels
    result = torch.empty(*pixels.shape[:2], edge, edge, dtype=torch.uint8, device=pixels.device)
    for part, place in zip(pixels.split(500), result.split(500)):
        larger = torch.nn.functional.interpolate(part.float(), (edge, edge), mode="bicubic", antialias=True)
        place.copy_(larger.round_().clamp_(0, 255))
    return result


def enlarged(pixels, most, generator):
    """All images (B, 3, H, W), H = W, enlarged by the same random factor in [1, most], every octave alike."""
    factor = most**torch.rand((), generator=generator).item()
    edge = round(factor * pixels.shape[-1])
    return torch.nn.functional.interpolate(pixels.float(), (edge, edge), mode="bicubic").clamp(0, 255)


def random_crops(pixels, size, padding, generator):
    """Cuts one random size x size window out of every image after reflecting `padding` pixels at its edges,
    and mirrors half of them. Returns the windows (B, 3, size, size). The generator is of the device of the pixels, here
    and below."""
    device = pixels.device
    padded = torch.nn.functional.pad(pixels.float(), (padding,) * 4, mode="reflect")
    count, _, height, width = padded.shape
    top = torch.randint(0, height - size + 1, (count,), generator=generator, device=device)
    left = torch.randint(0, width - size + 1, (count,), generator=generator, device=device)
    steps = torch.arange(size, device=device)
    columns = left[:, None] + steps
    mirrored = torch.rand(count, generator=generator, device=device) < 0.5
    columns = columns.where(~mirrored[:, None], columns.flip(1))
    rows = top[:, None] + steps
    image = torch.arange(count, device=device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[image, rows[:, :, None], columns[:, None, :]].permute(0, 3, 1, 2)


def warped(images, share, generator):
    """Turns (by up to 20 degrees), scales (by up to 1.25), stretches and slants the first of the images (B, C, H, W), that
    `share` of them, at random about their middle; what comes in at the edges is reflected."""

    def uniform(most):
        return (2 * torch.rand(count, generator=generator, device=images.device) - 1) * most

    count = round(share * len(images))
    angle, slant = uniform(math.radians(20)), uniform(0.2)
    scale, stretch = (uniform(math.log(1.25)).exp() for _ in range(2))
    x_axis = torch.stack([angle.cos(), angle.sin()], dim=1) * (scale * stretch.sqrt())[:, None]
    y_axis = torch.stack([slant - angle.sin(), angle.cos()], dim=1) * (scale / stretch.sqrt())[:, None]
    maps = torch.stack([x_axis, y_axis, torch.zeros_like(x_axis)], dim=2)  # (B, 2, 3)
    grid = torch.nn.functional.affine_grid(maps, [count, *images.shape[1:]], align_corners=False)
    turned = torch.nn.functional.grid_sample(images[:count], grid, mode="bicubic", padding_mode="reflection", align_corners=False)
    return torch.cat([turned, images[count:]])


def tinted(images, share, generator):
    """Changes brightness, contrast and saturation of that `share` of the images (B, 3, H, W), values 0..255, each
    by a random factor of 0.6 to 1.4."""

    def factor():
        change = (torch.rand(count, 1, 1, 1, generator=generator, device=images.device) - 0.5) * 0.8
        return 1 + change * (torch.rand(count, 1, 1, 1, generator=generator, device=images.device) < share)

    count = len(images)
    grey = images.mean(1, keepdim=True)
    images = grey + (images - grey) * factor()
    middle = images.mean((1, 2, 3), keepdim=True)
    return (middle * factor() + (images - middle) * factor()).clamp(0, 255)


def cut_mixed(images, targets, share, generator):
    """Puts a rectangle of another image over that `share` of the images (B, C, H, W), and mixes their targets
    (B, K), probabilities, by area (CutMix, Yun et al. 2019). The area is uniform before the edges cut it."""
    count, _, height, width = images.shape
    device = images.device
    side = torch.rand(count, generator=generator, device=device).sqrt()
    side *= torch.rand(count, generator=generator, device=device) < share

    def inside(size):
        middle = torch.rand(count, 1, generator=generator, device=device) * size
        return (torch.arange(size, device=device) + 0.5 - middle).abs() < side[:, None] * size / 2

    covered = inside(height)[:, :, None] & inside(width)[:, None, :]  # (B, H, W)
    other = torch.randperm(count, generator=generator, device=device)
    mixed = targets.lerp(targets[other], covered.float().mean((1, 2))[:, None])
    return images.where(~covered[:, None], images[other]), mixed


def changed(images, targets, vary, cut_mix, generator):
    """Images (B, 3, H, W) with values 0..255 of which a share of `vary` is warped and tinted and a share of `cut_mix`
    mixed, and the targets (B, K) that then hold."""
    if vary:
        images = tinted(warped(images, vary, generator), vary, generator)
    return cut_mixed(images, targets, cut_mix, generator) if cut_mix else (images, targets)
