"""Bird, cat, deer, dog, frog and horse as chains of balls. Each function puts one animal into a scene,
standing on y = 0, about 2 units long."""

import numpy as np

BLACK, WHITE = (0.05, 0.045, 0.04), (0.93, 0.92, 0.90)


def eye(scene, centre, radius, iris=(0.10, 0.07, 0.04), pupil_towards=(0.0, 0.0, 1.0)):
    """A dark, wet ball with a pupil on the side it looks to and a spark of light."""
    centre, towards = np.asarray(centre, dtype=float), np.asarray(pupil_towards, dtype=float)
    towards = towards / np.linalg.norm(towards)
    scene.ball(centre, radius, iris, gloss=0.6)
    scene.ball(centre + 0.45 * radius * towards, 0.64 * radius, BLACK, gloss=0.6)
    scene.ball(centre + 0.85 * radius * towards + np.array([-0.25, 0.4, 0.1]) * radius, 0.22 * radius, WHITE)


def leg(scene, stops, colour, hoof, hoof_radius, side):
    points = [(x, y, side * z, r) for x, y, z, r in stops]
    scene.chain(points, colour, fur=0.5)
    x, y, z, _ = points[-1]
    scene.chain([(x, 0.07, z, hoof_radius * 0.9), (x + 0.03, 0.02, z, hoof_radius)], hoof)


def horse(scene, coat=(0.36, 0.19, 0.09), mane=(0.07, 0.05, 0.04), blaze=True, grazing=False, stride=0.12):
    belly = [0.85 * c for c in coat]
    scene.chain([(-0.78, 1.12, 0, 0.27), (-0.45, 1.14, 0, 0.31), (0.0, 1.06, 0, 0.31), (0.45, 1.10, 0, 0.31),
                 (0.66, 1.16, 0, 0.25)], coat, 0.15, 0.35)
    scene.chain([(-0.3, 0.98, 0, 0.27), (0.3, 0.96, 0, 0.27)], belly, 0.1, 0.35)
    for side, swing in ((-1, stride), (1, -stride)):
        leg(scene, [(0.55, 1.0, 0.15, 0.19), (0.58 + swing, 0.62, 0.15, 0.095),
                    (0.58 + swing * 1.2, 0.34, 0.15, 0.062), (0.56 + swing * 1.6, 0.08, 0.15, 0.055)],
            [coat, coat, belly, (0.12, 0.09, 0.07)], (0.08, 0.07, 0.06), 0.075, side)
        leg(scene, [(-0.70, 1.05, 0.15, 0.25), (-0.66 - swing, 0.68, 0.15, 0.125),
                    (-0.82 - swing, 0.44, 0.15, 0.072), (-0.74 - swing * 1.4, 0.08, 0.15, 0.055)],
            [coat, coat, belly, (0.12, 0.09, 0.07)], (0.08, 0.07, 0.06), 0.075, side)
    if grazing:
        neck = [(0.62, 1.18, 0, 0.24), (0.95, 0.95, 0, 0.18), (1.15, 0.62, 0, 0.135)]
        head = [(1.13, 0.60, 0, 0.14), (1.22, 0.38, 0, 0.11), (1.27, 0.17, 0, 0.085)]
    else:
        neck = [(0.60, 1.18, 0, 0.25), (0.86, 1.48, 0, 0.185), (1.02, 1.78, 0, 0.14)]
        head = [(1.03, 1.80, 0, 0.145), (1.22, 1.66, 0, 0.12), (1.42, 1.46, 0, 0.09)]
    scene.chain(neck, coat, 0.15, 0.35)
    scene.chain(head, [coat, coat, [0.45 * c for c in coat]], 0.15, 0.3)
    crown, muzzle = np.array(head[0][:3]), np.array(head[-1][:3])
    along = (muzzle - crown) / np.linalg.norm(muzzle - crown)
    above = np.array([-along[1], along[0], 0.0])
    above = above if above[1] > 0 or grazing and above[0] > 0 else -above
    if blaze:
        scene.chain([(*(crown + 0.02 * along + 0.125 * above), 0.035),
                     (*(crown + 0.30 * along + 0.095 * above), 0.03)], WHITE)
    for side in (-1, 1):
        base = crown - 0.08 * along + 0.10 * above + np.array([0, 0, side * 0.07])
        scene.chain([(*base, 0.045), (*(base + 0.09 * above - 0.05 * along), 0.035),
                     (*(base + 0.17 * above - 0.06 * along), 0.01)], coat)
        eye(scene,
            crown + 0.10 * along + 0.06 * above + np.array([0, 0, side * 0.118]),
            0.027,
            pupil_towards=(0.2, 0, side))
        scene.ball(muzzle + 0.03 * above + np.array([0, 0, side * 0.07]), 0.022, BLACK)
    for i in range(26):
        t = i / 25
        root = (1 - t) * (crown - 0.06 * along + 0.1 * above) + t * np.array([0.50, 1.42, 0])
        bulge = 0.09 * np.sin(np.pi * t)
        root = root + np.array([-bulge, bulge * 0.3, 0])
        scene.chain([(*root, 0.035), (root[0] - 0.05, root[1] - 0.10, 0.13, 0.035),
                     (root[0] - 0.04, root[1] - 0.24, 0.17, 0.012)], mane, 0.1, 0.6)
    for i in range(7):
        z = (i - 3) * 0.018
        scene.chain([(-1.0, 1.26, z, 0.05), (-1.16, 1.05, 1.5 * z, 0.065), (-1.18, 0.7, 2 * z, 0.055),
                     (-1.13 - 0.01 * i, 0.42, 2 * z, 0.012)], mane, 0.1, 0.6)


def deer(scene, coat=(0.50, 0.31, 0.16), antlers=True, spots=False, seed=3):
    pale, dark = (0.80, 0.72, 0.60), [0.6 * c for c in coat]
    scene.chain([(-0.62, 1.02, 0, 0.21), (-0.3, 1.05, 0, 0.225), (0.1, 1.02, 0, 0.215),
                 (0.42, 1.04, 0, 0.215)],
                coat,
                fur=0.5)
    scene.chain([(-0.45, 0.97, 0, 0.15), (-0.3, 0.945, 0, 0.16), (0.2, 0.925, 0, 0.165),
                 (0.36, 0.96, 0, 0.15)],
                pale,
                fur=0.4)
    for side, swing in ((-1, 0.07), (1, -0.05)):
        leg(scene, [(0.40, 0.92, 0.10, 0.13), (0.42 + swing, 0.55, 0.10, 0.055),
                    (0.41 + swing, 0.30, 0.10, 0.036), (0.42 + swing, 0.06, 0.10, 0.03)],
            [coat, coat, dark, dark], BLACK, 0.042, side)
        leg(scene, [(-0.58, 0.98, 0.10, 0.18), (-0.50 - swing, 0.62, 0.10, 0.075),
                    (-0.66 - swing, 0.40, 0.10, 0.04), (-0.60 - swing, 0.06, 0.10, 0.03)],
            [coat, coat, dark, dark], BLACK, 0.042, side)
    scene.chain([(0.46, 1.10, 0, 0.17), (0.63, 1.36, 0, 0.115), (0.74, 1.62, 0, 0.095)], coat, fur=0.5)
    scene.chain([(0.56, 1.14, 0, 0.10), (0.70, 1.36, 0, 0.06)], pale, fur=0.4)
    scene.chain([(0.76, 1.68, 0, 0.112), (0.91, 1.62, 0, 0.085), (1.08, 1.53, 0, 0.052)], [coat, coat, pale],
                fur=0.3)
    scene.ball((1.115, 1.535, 0), 0.04, BLACK, 0.5)
    scene.chain([(-0.80, 1.12, 0, 0.07), (-0.90, 1.02, 0, 0.06), (-0.90, 0.92, 0, 0.03)],
                [coat, WHITE, WHITE],
                fur=0.5)
    scene.ball((-0.76, 0.96, 0), 0.13, WHITE, fur=0.5)
    for side in (-1, 1):
        scene.chain([(0.70, 1.76, side * 0.07, 0.035), (0.62, 1.83, side * 0.17, 0.055),
                     (0.56, 1.88, side * 0.27, 0.012)],
                    coat,
                    fur=0.3)
        scene.chain([(0.70, 1.77, side * 0.10, 0.02), (0.645, 1.825, side * 0.18, 0.035)], (0.75, 0.62, 0.55))
        eye(scene, (0.84, 1.70, side * 0.082), 0.024, pupil_towards=(0.4, 0, side))
        if antlers:
            horn = (0.42, 0.32, 0.20)
            beam = [(0.72, 1.78, side * 0.05, 0.026), (0.60, 2.00, side * 0.20, 0.024),
                    (0.66, 2.25, side * 0.32, 0.02), (0.84, 2.42, side * 0.30, 0.008)]
            scene.chain(beam, horn)
            for root, tip in (((0.62, 1.97), (0.85, 2.05)), ((0.62, 2.13), (0.86, 2.24)), ((0.68, 2.28),
                                                                                           (0.58, 2.48))):
                scene.chain([(root[0], root[1], side * 0.22, 0.02),
                             (0.5 * (root[0] + tip[0]), root[1] + 0.02, side * 0.25, 0.016),
                             (*tip, side * 0.27, 0.006)], horn)
    if spots:
        rng = np.random.default_rng(seed)
        for _ in range(46):
            x, angle = rng.uniform(-0.65, 0.45), rng.uniform(0.35, 1.25)
            for side in (-1, 1):
                scene.ball((x, 1.035 + 0.212 * np.sin(angle), side * 0.212 * np.cos(angle)), 0.024, WHITE)


def dog_head(scene, at, coat, muzzle, ears="floppy", tongue=True, patch=None):
    """A head that looks along +x, `at` = centre of the skull."""
    x, y, z = at
    scene.chain([(x - 0.04, y, z, 0.22), (x + 0.06, y + 0.01, z, 0.205)], coat, fur=0.45)
    scene.chain([(x + 0.12, y - 0.06, z, 0.14), (x + 0.28, y - 0.09, z, 0.105),
                 (x + 0.36, y - 0.09, z, 0.088)],
                muzzle,
                fur=0.3)
    scene.chain([(x + 0.14, y - 0.15, z, 0.085), (x + 0.30, y - 0.18, z, 0.055)], muzzle, fur=0.3)
    scene.chain([(x + 0.43, y - 0.045, z - 0.025, 0.043), (x + 0.43, y - 0.045, z + 0.025, 0.043)], BLACK,
                0.7)
    if tongue:
        scene.chain([(x + 0.28, y - 0.19, z, 0.045), (x + 0.35, y - 0.25, z, 0.045),
                     (x + 0.36, y - 0.33, z, 0.035)], (0.85, 0.38, 0.42), 0.3)
    for side in (-1, 1):
        if patch is not None:
            scene.ball((x + 0.10, y + 0.06, z + side * 0.09), 0.105, patch, fur=0.4)
        eye(scene, (x + 0.185, y + 0.085, z + side * 0.122), 0.038, (0.20, 0.11, 0.05),
            (0.8, 0.05, side * 0.4))
        dark = [0.62 * c for c in coat] if patch is None else patch
        if ears == "floppy":
            scene.chain([(x - 0.03, y + 0.15, z + side * 0.15, 0.06),
                         (x + 0.0, y + 0.05, z + side * 0.235, 0.085),
                         (x + 0.02, y - 0.15, z + side * 0.235, 0.075),
                         (x + 0.03, y - 0.22, z + side * 0.225, 0.03)],
                        dark,
                        fur=0.5)
        else:
            scene.chain([(x - 0.05, y + 0.14, z + side * 0.12, 0.085),
                         (x - 0.06, y + 0.27, z + side * 0.15, 0.05),
                         (x - 0.06, y + 0.37, z + side * 0.155, 0.008)],
                        dark,
                        fur=0.4)


def dog_standing(scene, coat=(0.72, 0.52, 0.28), chest=(0.86, 0.74, 0.55), ears="floppy", patch=None):
    scene.chain([(-0.58, 0.72, 0, 0.20), (-0.25, 0.73, 0, 0.205), (0.1, 0.70, 0, 0.235),
                 (0.38, 0.72, 0, 0.235)],
                coat,
                fur=0.6)
    scene.ball((0.44, 0.66, 0), 0.215, chest, fur=0.6)
    for side, swing in ((-1, 0.07), (1, -0.05)):
        scene.chain([(0.36, 0.62, side * 0.12, 0.13), (0.38 + swing, 0.36, side * 0.13, 0.075),
                     (0.38 + swing, 0.10, side * 0.13, 0.06), (0.44 + swing, 0.05, side * 0.13, 0.065)],
                    [coat, coat, chest, chest],
                    fur=0.5)
        scene.chain([(-0.55, 0.64, side * 0.11, 0.18), (-0.50 - swing, 0.40, side * 0.13, 0.10),
                     (-0.64 - swing, 0.24, side * 0.13, 0.06), (-0.58 - swing, 0.05, side * 0.13, 0.062)],
                    [coat, coat, coat, chest],
                    fur=0.5)
    scene.chain([(0.42, 0.82, 0, 0.20), (0.58, 1.02, 0, 0.165)], coat, fur=0.6)
    scene.chain([(-0.72, 0.82, 0, 0.075), (-0.90, 0.95, 0, 0.085), (-1.0, 1.15, 0, 0.08),
                 (-0.98, 1.32, 0, 0.03)],
                coat,
                fur=0.8)
    dog_head(scene, (0.70, 1.16, 0), coat, chest, ears, patch=patch)


def dog_sitting(scene, coat=(0.72, 0.52, 0.28), chest=(0.88, 0.78, 0.60), ears="floppy", patch=None):
    """Sits and faces +x: turn the camera by -90 to see it from the front."""
    scene.chain([(-0.35, 0.28, 0, 0.28), (-0.22, 0.55, 0, 0.27), (0.0, 0.80, 0, 0.225),
                 (0.06, 0.96, 0, 0.19)],
                coat,
                fur=0.6)
    scene.chain([(0.06, 0.55, 0, 0.19), (0.10, 0.82, 0, 0.17)], chest, fur=0.6)
    for side in (-1, 1):
        scene.chain([(0.06, 0.66, side * 0.13, 0.11), (0.10, 0.34, side * 0.13, 0.075),
                     (0.10, 0.09, side * 0.13, 0.068), (0.18, 0.055, side * 0.13, 0.07)],
                    [coat, coat, chest, chest],
                    fur=0.5)
        scene.chain([(-0.36, 0.28, side * 0.20, 0.19), (-0.15, 0.24, side * 0.27, 0.15),
                     (-0.02, 0.10, side * 0.28, 0.085), (0.12, 0.06, side * 0.28, 0.075)],
                    [coat, coat, coat, chest],
                    fur=0.5)
    scene.chain([(-0.55, 0.12, 0, 0.07), (-0.80, 0.10, 0.1, 0.07), (-0.98, 0.12, 0.2, 0.03)], coat, fur=0.8)
    dog_head(scene, (0.12, 1.20, 0), coat, chest, ears, patch=patch)


def cat_head(scene, at, coat, stripe, muzzle=WHITE, iris=(0.55, 0.62, 0.18)):
    """A head that looks along +x."""
    x, y, z = at
    scene.chain([(x, y, z - 0.05, 0.205), (x, y, z + 0.05, 0.205)], coat, fur=0.4)
    for side in (-1, 1):
        scene.ball((x + 0.10, y - 0.06, z + side * 0.10), 0.125, coat, fur=0.4)
        scene.ball((x + 0.185, y - 0.085, z + side * 0.045), 0.07, muzzle, fur=0.2)
        eye(scene, (x + 0.165, y + 0.045, z + side * 0.092), 0.047, iris, (1, 0, side * 0.15))
        ear = np.array([x - 0.02, y, z])
        a, b, tip = ear + [0.02, 0.08, side * 0.235], ear + [0.02, 0.18, side * 0.06
                                                            ], ear + [-0.01, 0.345, side * 0.195]
        back = ear + [-0.10, 0.15, side * 0.15]
        for corners in ((a, b, tip), (a, back, tip), (b, back, tip)):
            scene.triangle(np.array(corners), coat, fur=0.3)
        front = np.array([0.012, 0.0, 0.0])
        scene.triangle(
            np.array([
                0.8 * a + 0.1 * b + 0.1 * tip, 0.1 * a + 0.8 * b + 0.1 * tip, 0.12 * a + 0.12 * b + 0.76 * tip
            ]) + front, (0.80, 0.55, 0.50))
        for i in range(3):
            y0 = y - 0.08 - 0.02 * i
            scene.chain([(x + 0.22, y0, z + side * 0.08, 0.004),
                         (x + 0.20, y0 + 0.015 - 0.03 * i, z + side * 0.36, 0.003)], WHITE)
    scene.ball((x + 0.245, y - 0.045, z), 0.026, (0.78, 0.42, 0.40), 0.3)
    scene.ball((x + 0.14, y - 0.145, z), 0.075, muzzle)
    for i in (-1, 0, 1):
        scene.chain([(x + 0.19, y + 0.10, z + i * 0.035, 0.014), (x + 0.12, y + 0.19, z + i * 0.06, 0.014)],
                    stripe)


def cat_sitting(scene,
                coat=(0.36, 0.31, 0.25),
                stripe=(0.12, 0.10, 0.08),
                chest=(0.62, 0.55, 0.47),
                iris=(0.55, 0.62, 0.18)):
    """Sits and faces +x."""
    scene.chain([(-0.28, 0.26, 0, 0.26), (-0.18, 0.48, 0, 0.245), (-0.04, 0.72, 0, 0.19),
                 (0.0, 0.86, 0, 0.16)],
                coat,
                fur=0.5)
    scene.chain([(0.02, 0.50, 0, 0.15), (0.055, 0.74, 0, 0.135)], chest, fur=0.5)
    for side in (-1, 1):
        scene.chain([(0.02, 0.55, side * 0.09, 0.095), (0.09, 0.28, side * 0.085, 0.065),
                     (0.10, 0.07, side * 0.085, 0.058), (0.16, 0.045, side * 0.085, 0.06)],
                    [coat, coat, chest, chest],
                    fur=0.3)
        scene.chain([(-0.28, 0.24, side * 0.18, 0.17), (-0.10, 0.20, side * 0.22, 0.14),
                     (0.02, 0.06, side * 0.21, 0.065), (0.10, 0.05, side * 0.21, 0.06)],
                    [coat, coat, coat, chest],
                    fur=0.3)
        for i in range(4):
            y, girth = 0.34 + 0.14 * i, 0.255 - 0.026 * i
            arc = [(-0.27 + 0.075 * i + girth * 0.98 * np.cos(a), y + 0.05 * np.cos(a),
                    side * girth * 0.98 * np.sin(a), 0.024) for a in (2.7, 2.1, 1.5, 1.0)]
            scene.chain(arc, stripe, fur=0.3)
    scene.chain([(-0.48, 0.10, 0, 0.06), (-0.50, 0.08, 0.25, 0.065), (-0.25, 0.07, 0.42, 0.06),
                 (0.05, 0.06, 0.40, 0.045)], [coat, stripe, coat, stripe],
                fur=0.4)
    cat_head(scene, (0.06, 1.04, 0), coat, stripe, chest, iris)


def frog(scene, skin=(0.30, 0.48, 0.12), belly=(0.78, 0.80, 0.55), spot=(0.14, 0.24, 0.07), seed=5):
    """Sits and faces +x."""
    scene.chain([(-0.55, 0.30, 0, 0.20), (-0.25, 0.42, 0, 0.33), (0.15, 0.52, 0, 0.34),
                 (0.48, 0.55, 0, 0.25)], skin, 0.5, 0.15)
    scene.chain([(0.30, 0.50, -0.16, 0.22), (0.60, 0.50, 0, 0.19), (0.30, 0.50, 0.16, 0.22)], skin, 0.5, 0.15)
    scene.chain([(-0.1, 0.30, 0, 0.28), (0.35, 0.40, 0, 0.27), (0.58, 0.42, 0, 0.15)], belly, 0.4, 0.1)
    scene.chain([(0.30, 0.46, -0.345, 0.015), (0.62, 0.44, -0.17, 0.015), (0.765, 0.45, 0, 0.015),
                 (0.62, 0.44, 0.17, 0.015), (0.30, 0.46, 0.345, 0.015)], [0.5 * c for c in skin])
    for side in (-1, 1):
        scene.ball((0.40, 0.74, side * 0.19), 0.125, skin, 0.5)
        eye(scene, (0.44, 0.77, side * 0.235), 0.095, (0.78, 0.60, 0.12), (0.5, 0.1, side))
        scene.chain([(-0.40, 0.36, side * 0.25, 0.19), (-0.15, 0.34, side * 0.46, 0.16),
                     (0.12, 0.26, side * 0.50, 0.10)], skin, 0.5, 0.15)
        scene.chain([(0.12, 0.26, side * 0.50, 0.10), (-0.25, 0.12, side * 0.52, 0.085),
                     (-0.50, 0.08, side * 0.50, 0.07)], skin, 0.5)
        scene.chain([(0.30, 0.34, side * 0.28, 0.11), (0.42, 0.18, side * 0.40, 0.075),
                     (0.44, 0.06, side * 0.38, 0.06)], skin, 0.5)
        for spread in (-0.22, 0.0, 0.22):
            scene.chain([(0.44, 0.05, side * 0.38, 0.035), (0.60, 0.03, side * 0.38 + spread * 0.6, 0.022),
                         (0.66, 0.025, side * 0.38 + spread * 0.8, 0.034)], skin, 0.4)
            scene.chain([(-0.45, 0.06, side * 0.50, 0.04), (-0.22, 0.03, side * 0.62 + spread * 0.7, 0.024),
                         (-0.12, 0.025, side * 0.64 + spread, 0.036)], skin, 0.4)
    rng = np.random.default_rng(seed)
    for _ in range(26):
        t, angle = rng.uniform(0, 1), rng.uniform(0.5, np.pi - 0.5)
        centre, radius = np.array([-0.5 + 0.85 * t, 0.32 + 0.22 * t,
                                   0]), 0.22 + 0.13 * np.sin(np.pi * min(t + 0.25, 1))
        scene.ball(centre + radius * np.array([0, np.sin(angle), np.cos(angle)]), rng.uniform(0.03, 0.06),
                   spot, 0.4)


def bird(scene,
         back=(0.42, 0.30, 0.20),
         breast=(0.82, 0.34, 0.14),
         belly=(0.88, 0.84, 0.76),
         beak=(0.30, 0.24, 0.16),
         wing=(0.30, 0.21, 0.14),
         branch=True):
    """Perches and faces +x, its feet at y = 0."""
    scene.chain([(-0.50, 0.42, 0, 0.16), (-0.2, 0.50, 0, 0.30), (0.12, 0.58, 0, 0.33), (0.30, 0.78, 0, 0.24)],
                back,
                fur=0.5)
    scene.chain([(-0.15, 0.38, 0, 0.24), (0.12, 0.45, 0, 0.27)], belly, fur=0.5)
    scene.chain([(0.22, 0.50, 0, 0.28), (0.36, 0.74, 0, 0.21)], breast, fur=0.5)
    scene.ball((0.38, 0.95, 0), 0.235, back, fur=0.4)
    scene.ball((0.45, 0.88, 0), 0.19, breast, fur=0.4)
    scene.chain([(0.58, 0.95, 0, 0.06), (0.70, 0.93, 0, 0.035), (0.80, 0.91, 0, 0.006)], beak, 0.3)
    for side in (-1, 1):
        eye(scene, (0.50, 1.0, side * 0.185), 0.04, pupil_towards=(0.4, 0, side))
        for i in range(7):
            t = i / 6
            scene.chain([(0.12 - 0.08 * t, 0.70 - 0.20 * t, side * 0.29, 0.09),
                         (-0.25 - 0.12 * t, 0.55 - 0.14 * t, side * 0.29, 0.06),
                         (-0.72 + 0.22 * t, 0.40 - 0.10 * t, side * 0.14, 0.012)],
                        [c * (0.8 + 0.45 * (i % 2)) for c in wing],
                        fur=0.4)
        scene.chain([(0.02, 0.25, side * 0.10, 0.03), (0.08, 0.10, side * 0.11, 0.02),
                     (0.05, 0.0, side * 0.11, 0.02)], (0.45, 0.30, 0.20))
        for x in (-0.10, 0.16, 0.20):
            scene.chain([(0.05, 0.0, side * 0.11, 0.02), (x, -0.02, side * (0.11 + 0.03 * x), 0.014)],
                        (0.45, 0.30, 0.20))
    for i in range(5):
        scene.chain([(-0.50, 0.40, 0.02 * (i - 2), 0.06), (-0.85, 0.24, 0.03 * (i - 2), 0.045),
                     (-1.12, 0.10, 0.04 * (i - 2), 0.02)], [c * (0.85 + 0.1 * i) for c in wing],
                    fur=0.4)
    if branch:
        scene.chain([(-1.9, -0.22, 0, 0.10), (-0.6, -0.10, 0.03, 0.09), (0.5, -0.09, 0, 0.085),
                     (1.9, 0.06, -0.05, 0.07)], (0.32, 0.24, 0.17),
                    fur=1.0)
