"""Draws the sample images: two or three of every class of data/model, from 32 to 640 pixels, PNG and JPEG.
All lines, colours and textures are computed here.

    python data/images/make_images.py                 (a few minutes; needs numpy and Pillow)
    python data/images/make_images.py horse_field     (only these)
"""

import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

import animals
import backgrounds as bg
import vehicles
from renderer import Camera, Scene, unit

FOLDER = Path(__file__).resolve().parent
SUPERSAMPLING = 2


def meadow(rng, shape, horizon, forest=True):
    far = bg.softened(bg.trees(rng, shape), shape[1] * 0.006) if forest else bg.sky(rng, shape)
    return bg.below(far, horizon, bg.grass(rng, shape), soft=shape[0] * 0.03)


def dry_field(rng, shape, horizon):
    return bg.below(bg.sky(rng, shape),
                    horizon,
                    bg.grass(rng, shape, (0.52, 0.48, 0.22), (0.70, 0.62, 0.36)),
                    soft=shape[0] * 0.02)


def forest(rng, shape, horizon):
    return bg.below(bg.softened(bg.trees(rng, shape), shape[1] * 0.012),
                    horizon,
                    bg.grass(rng, shape, (0.28, 0.36, 0.14), (0.44, 0.38, 0.22)),
                    soft=shape[0] * 0.05)


def snow(rng, shape, horizon):
    far = bg.softened(bg.trees(rng, shape, (0.20, 0.24, 0.22), (0.50, 0.53, 0.52)), shape[1] * 0.008)
    return bg.below(far,
                    horizon,
                    bg.plain(rng, shape, (0.86, 0.89, 0.94), 0.03, 12, (2.0, 1.0)),
                    soft=shape[0] * 0.03)


def road(rng, shape, horizon):
    far = bg.below(bg.sky(rng, shape),
                   horizon - shape[0] * 0.02,
                   bg.softened(bg.trees(rng, shape), shape[1] * 0.004),
                   soft=shape[0] * 0.06)
    return bg.below(far,
                    horizon + shape[0] * 0.05,
                    bg.plain(rng, shape, (0.44, 0.44, 0.45), 0.07, 50, (2.5, 0.8)),
                    soft=2)


def car_park(rng, shape, horizon):
    wall = bg.plain(rng, shape, (0.62, 0.58, 0.52), 0.05, 14, (3.0, 0.8))
    return bg.below(wall,
                    horizon + shape[0] * 0.08,
                    bg.plain(rng, shape, (0.55, 0.55, 0.55), 0.06, 60),
                    soft=2)


def sea(rng, shape, horizon):
    return bg.below(bg.sky(rng, shape, (0.42, 0.60, 0.84), (0.82, 0.88, 0.93)),
                    horizon,
                    bg.water(rng, shape, horizon),
                    soft=2)


def open_sky(rng, shape, horizon):
    return bg.sky(rng, shape, (0.28, 0.49, 0.80), (0.66, 0.79, 0.92), 0.8)


def pale_sky(rng, shape, horizon):
    return bg.sky(rng, shape, (0.68, 0.77, 0.87), (0.84, 0.88, 0.92), 0.5)


def leaves(rng, shape, horizon):
    return bg.softened(bg.trees(rng, shape, (0.20, 0.28, 0.12), (0.52, 0.62, 0.30)), shape[1] * 0.02)


def room(rng, shape, horizon):
    wall = bg.softened(bg.plain(rng, shape, (0.72, 0.66, 0.57), 0.05, 4), shape[1] * 0.01)
    floor = bg.plain(rng, shape, (0.50, 0.36, 0.24), 0.10, 20, (4.0, 0.5))
    return bg.below(wall, horizon + shape[0] * 0.12, floor, soft=3)


def blanket(rng, shape, horizon):
    return bg.softened(bg.plain(rng, shape, (0.70, 0.68, 0.72), 0.22, 5), shape[1] * 0.02)


def sofa(rng, shape, horizon):
    return bg.softened(bg.plain(rng, shape, (0.34, 0.20, 0.16), 0.35, 5), shape[1] * 0.02)


def pond(rng, shape, horizon):
    leaves_ = bg.plain(rng, shape, (0.24, 0.36, 0.16), 0.30, 10)
    return bg.softened(leaves_, shape[1] * 0.004)


def earth(rng, shape, horizon):
    return bg.plain(rng, shape, (0.50, 0.41, 0.30), 0.16, 22)


CAT_VIEW = dict(target=(-0.05, 0.62, 0), span=1.25, yaw=-75, pitch=22)
GREY_CAT = dict(coat=(0.42, 0.42, 0.44),
                stripe=(0.22, 0.22, 0.24),
                chest=(0.80, 0.79, 0.78),
                iris=(0.75, 0.62, 0.12))
BLACK_CAT = dict(coat=(0.09, 0.09, 0.10),
                 stripe=(0.05, 0.05, 0.05),
                 chest=(0.93, 0.92, 0.90),
                 iris=(0.60, 0.65, 0.20))
FAWN = dict(antlers=False, spots=True, coat=(0.56, 0.34, 0.18))
TERRIER = dict(coat=(0.90, 0.88, 0.84), chest=(0.92, 0.90, 0.87), patch=(0.36, 0.20, 0.10))

# file name: (width, height, subject, options, backdrop, camera)
IMAGES = {
    "airplane_airliner.jpg": (640, 420, vehicles.airplane, {}, open_sky,
                              dict(target=(0, 1.05, 0), span=2.9, yaw=28, pitch=-14)),
    "airplane_propeller.png": (128, 96, vehicles.biplane_sport, {}, pale_sky,
                               dict(target=(0, 1.0, 0), span=2.6, yaw=-32, pitch=-10)),
    "automobile_red.jpg": (480, 320, vehicles.automobile, {}, road,
                           dict(target=(0, 0.45, 0), span=2.5, yaw=-32, pitch=9)),
    "automobile_blue.png": (96, 96, vehicles.automobile, dict(paint=(0.12, 0.22, 0.48)), car_park,
                            dict(target=(0, 0.42, 0), span=2.35, yaw=-52, pitch=12)),
    "bird_robin.jpg": (400, 400, animals.bird, {}, leaves,
                       dict(target=(-0.08, 0.50, 0), span=2.3, yaw=-22, pitch=0)),
    "bird_sparrow.png": (64, 64, animals.bird,
                         dict(breast=(0.72, 0.64, 0.52), back=(0.45, 0.35, 0.25),
                              belly=(0.80, 0.75, 0.66)), pale_sky,
                         dict(target=(-0.08, 0.50, 0), span=2.2, yaw=200, pitch=0)),
    "cat_tabby.jpg": (360, 360, animals.cat_sitting, {}, blanket, CAT_VIEW),
    "cat_grey.png": (64, 64, animals.cat_sitting, GREY_CAT, blanket, CAT_VIEW),
    "cat_tuxedo.png": (96, 96, animals.cat_sitting, BLACK_CAT, sofa, CAT_VIEW),
    "deer_stag.jpg": (480, 480, animals.deer, {}, forest,
                      dict(target=(0, 1.27, 0), span=2.75, yaw=-18, pitch=4)),
    "deer_fawn.png": (96, 96, animals.deer, FAWN, forest,
                      dict(target=(0.02, 0.95, 0), span=2.3, yaw=-55, pitch=5)),
    "dog_retriever.jpg": (400, 500, animals.dog_sitting, {}, meadow,
                          dict(target=(0, 1.0, 0), span=0.9, yaw=-72, pitch=6)),
    "dog_terrier.png": (96, 96, animals.dog_sitting, TERRIER, room,
                        dict(target=(0, 1.1, 0), span=0.85, yaw=-85, pitch=6)),
    "dog_beagle.png": (128, 128, animals.dog_standing, TERRIER, meadow,
                       dict(target=(0, 0.72, 0), span=2.0, yaw=-62, pitch=8)),
    "frog_green.jpg": (480, 360, animals.frog, {}, pond,
                       dict(target=(0.05, 0.42, 0), span=1.75, yaw=-38, pitch=16)),
    "frog_brown.png":
        (64, 64, animals.frog, dict(skin=(0.42, 0.34, 0.18),
                                    belly=(0.76, 0.70, 0.52),
                                    spot=(0.20, 0.15, 0.08)), earth,
         dict(target=(0.05, 0.40, 0), span=1.8, yaw=-62, pitch=26)),
    "horse_field.jpg": (640, 480, animals.horse, {}, dry_field,
                        dict(target=(0.05, 1.0, 0), span=3.3, yaw=-14, pitch=4)),
    "horse_grazing.png": (128, 96, animals.horse,
                          dict(coat=(0.62, 0.60, 0.58), mane=(0.30, 0.29, 0.28), blaze=False,
                               grazing=True), meadow, dict(target=(0.05, 0.78, 0), span=2.9, yaw=14,
                                                           pitch=5)),
    "ship_cargo.jpg": (640, 360, vehicles.cargo_ship, {}, sea,
                       dict(target=(0, 0.34, 0), span=3.0, yaw=-20, pitch=4)),
    "ship_cruise.png": (128, 96, vehicles.cruise_ship, {}, sea,
                        dict(target=(0, 0.42, 0), span=2.9, yaw=24, pitch=4)),
    "truck_lorry.jpg": (560, 420, vehicles.truck, {}, road,
                        dict(target=(0, 0.66, 0), span=2.7, yaw=-34, pitch=7)),
    "truck_fire.png": (96, 96, vehicles.fire_truck, {}, car_park,
                       dict(target=(0, 0.66, 0), span=2.6, yaw=-22, pitch=8)),
}
# The same drawing once more as the model sees it.
SMALL = {
    "ship_sailing.png": (32, 32, vehicles.sailing_boat, {}, sea,
                         dict(target=(0, 0.95, 0), span=2.5, yaw=-16, pitch=4))
}
FLOATING = (vehicles.airplane, vehicles.biplane_sport, animals.bird)
AFLOAT = (vehicles.cargo_ship, vehicles.cruise_ship, vehicles.sailing_boat)


def draw(name, width, height, subject, options, backdrop, view):
    """One image as (height, width, 3) bytes."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    # Small images are drawn larger and shrunk, so that every size has the same texture.
    factor = SUPERSAMPLING * max(1, round(320 / width))
    shape = (height * factor, width * factor)
    camera = Camera(shape[1], shape[0], **view)
    scene = Scene(camera, shape[1], shape[0])
    subject(scene, **options)
    sun = unit((-0.45, 1.0, 0.65))
    backdrop_colours = backdrop(rng, shape, camera.horizon())
    if subject in AFLOAT:
        below_water = waterline_mask(scene)
        scene.depth[below_water] = -np.inf
        reflect(scene, backdrop_colours)
    elif subject not in FLOATING:
        shadow = np.clip(bg.blurred(scene.shadow(sun), shape[1] * 0.008) * 1.5, 0, 1)
        backdrop_colours = backdrop_colours * (1 - 0.62 * shadow[..., None])
    fine = bg.noise(rng, shape, 90, octaves=3, keep=0.8)
    fur = bg.noise(rng, shape, 170, (0.6, 1.6), 2, 0.7) * 0.5
    image = scene.shade(backdrop_colours, sun, fine, fur)
    image = image * (1 + 0.05 * bg.noise(rng, shape, 2, octaves=2)[..., None])
    bytes_ = (np.clip(image, 0, 1)**0.95 * 255 + 0.5).astype(np.uint8)
    return Image.fromarray(bytes_).resize((width, height), Image.LANCZOS)


def waterline_mask(scene):
    """Pixels whose surface lies below y = 0."""
    height, width = scene.shape
    ys, xs = np.mgrid[0:height, 0:width]
    z = np.where(scene.covered(), scene.depth, 0).astype(np.float64)
    scale = scene.camera.focal / (scene.camera.distance - z)
    view = np.stack(
        [(xs + 0.5 - scene.camera.centre[0]) / scale, -(ys + 0.5 - scene.camera.centre[1]) / scale, z], -1)
    return scene.covered() & (scene.camera.to_world(view)[..., 1] < 0)


def reflect(scene, backdrop):
    """Darkens the water below the hull, column by column, as its reflection does."""
    covered = scene.covered()
    height = covered.shape[0]
    lowest = np.where(covered.any(0), height - 1 - np.argmax(covered[::-1], axis=0), height)
    rows = np.arange(height)[:, None]
    depth = (rows - lowest[None]) / (0.16 * height)
    share = np.where((depth > 0) & (lowest[None] < height), np.clip(1 - depth, 0, 1), 0)
    backdrop *= 1 - 0.55 * bg.blurred(share, 3)[..., None]


def main():
    wanted = sys.argv[1:]
    for name, image in {**IMAGES, **SMALL}.items():
        if wanted and Path(name).stem not in wanted:
            continue
        options = {"quality": 88} if name.endswith(".jpg") else {"optimize": True}
        draw(name, *image).save(FOLDER / name, **options)
        print(f"{name:24} {(FOLDER / name).stat().st_size / 1e3:6.1f} kB")


if __name__ == "__main__":
    main()
