"""Airplane, automobile, ship and truck as lofts, boxes and wheels. Each function puts one vehicle into a
scene, on y = 0, about 2 units long."""

import numpy as np

GLASS = (0.10, 0.14, 0.18)


def slab(scene, outline, thickness, colour, gloss=0.2, axis=1):
    """A convex plate: the outline moved by half the thickness to both sides along an axis, and the rim
    between."""
    shift = np.zeros(3)
    shift[axis] = thickness / 2
    top, bottom = [np.asarray(p) + shift for p in outline], [np.asarray(p) - shift for p in outline]
    scene.polygon(top, colour, gloss)
    scene.polygon(bottom, colour, gloss)
    for i in range(len(outline)):
        n = (i + 1) % len(outline)
        scene.polygon([top[i], top[n], bottom[n], bottom[i]], colour, gloss)


def airplane(scene,
             body=(0.92, 0.93, 0.95),
             stripe=(0.10, 0.22, 0.52),
             tail=(0.10, 0.22, 0.52),
             height=1.0,
             engines=1):
    """A jet airliner flying along +x at a height."""
    y = height
    scene.chain([(-1.15, y + 0.07, 0, 0.02), (-0.95, y + 0.05, 0, 0.065), (-0.6, y + 0.01, 0, 0.115),
                 (-0.2, y, 0, 0.128), (0.7, y, 0, 0.128), (0.95, y - 0.01, 0, 0.105),
                 (1.12, y - 0.035, 0, 0.045)], body, 0.5)
    for side in (-1, 1):
        for i in range(26):
            scene.ball((-0.55 + 0.055 * i, y + 0.035, side * 0.117), 0.014, (0.12, 0.15, 0.2), 0.3)
        scene.chain([(-0.9, y - 0.02, side * 0.055, 0.018), (-0.5, y - 0.035, side * 0.098, 0.022),
                     (0.7, y - 0.035, side * 0.11, 0.022), (1.0, y - 0.04, side * 0.06, 0.018)], stripe, 0.4)
        scene.polygon([(0.98, y + 0.055, side * 0.02), (1.04, y + 0.03, side * 0.02),
                       (1.02, y + 0.025, side * 0.066), (0.96, y + 0.04, side * 0.075)], GLASS, 0.6)
        slab(scene, [(0.30, y - 0.07, side * 0.08), (-0.20, y - 0.07, side * 0.08),
                     (-0.62, y + 0.03, side * 1.12), (-0.48, y + 0.03, side * 1.12)], 0.025,
             [0.86 * c for c in body], 0.4)
        slab(scene, [(-0.80, y + 0.06, side * 0.04), (-1.05, y + 0.06, side * 0.04),
                     (-1.22, y + 0.09, side * 0.42), (-1.12, y + 0.09, side * 0.42)], 0.02,
             [0.86 * c for c in body], 0.4)
        for e in range(engines):
            x, z = 0.16 - 0.22 * e, side * (0.36 + 0.32 * e)
            scene.chain([(x + 0.10, y - 0.13 + 0.03 * e, z, 0.062), (x - 0.05, y - 0.13 + 0.03 * e, z, 0.066),
                         (x - 0.18, y - 0.125 + 0.03 * e, z, 0.042)], [(0.80, 0.81, 0.83), (0.7, 0.71, 0.74),
                                                                       (0.35, 0.35, 0.37)], 0.5)
            scene.ball((x + 0.135, y - 0.13 + 0.03 * e, z), 0.045, (0.08, 0.08, 0.09))
    slab(scene, [(-0.70, y + 0.10, 0), (-1.08, y + 0.08, 0), (-1.24, y + 0.50, 0), (-1.10, y + 0.50, 0)],
         0.03,
         tail,
         0.4,
         axis=2)


def biplane_sport(scene, body=(0.85, 0.16, 0.12), wing=(0.93, 0.90, 0.82), height=1.0):
    """A single-engined propeller plane with a high wing."""
    y = height
    scene.chain([(-1.0, y + 0.08, 0, 0.05), (-0.5, y + 0.04, 0, 0.11), (0.0, y + 0.02, 0, 0.165),
                 (0.45, y, 0, 0.16), (0.68, y - 0.01, 0, 0.125)], body, 0.5)
    scene.chain([(0.05, y + 0.13, 0, 0.10), (0.30, y + 0.13, 0, 0.10)], GLASS, 0.7)
    scene.ball((0.80, y - 0.01, 0), 0.06, (0.75, 0.75, 0.77), 0.6)
    slab(scene, [(0.84, y + 0.40, 0.02), (0.84, y + 0.38, -0.05), (0.84, y - 0.42, -0.02),
                 (0.84, y - 0.40, 0.05)],
         0.02, (0.15, 0.14, 0.13),
         axis=0)
    for side in (-1, 1):
        slab(scene, [(0.36, y + 0.23, 0), (0.0, y + 0.23, 0), (0.02, y + 0.27, side * 1.25),
                     (0.32, y + 0.27, side * 1.25)], 0.04, wing, 0.3)
        scene.chain([(0.2, y - 0.08, side * 0.14, 0.014), (0.2, y + 0.24, side * 0.6, 0.014)],
                    (0.6, 0.6, 0.6))
        slab(scene, [(-0.75, y + 0.10, 0), (-1.0, y + 0.10, 0), (-1.02, y + 0.11, side * 0.42),
                     (-0.85, y + 0.11, side * 0.42)], 0.02, wing, 0.3)
        scene.chain([(0.32, y - 0.12, side * 0.08, 0.018), (0.36, y - 0.30, side * 0.22, 0.018)],
                    (0.4, 0.4, 0.42))
        scene.wheel((0.36, y - 0.32, side * 0.23), 0.07, 0.05)
    slab(scene, [(-0.72, y + 0.14, 0), (-1.03, y + 0.10, 0), (-1.08, y + 0.42, 0), (-0.98, y + 0.42, 0)],
         0.025,
         body,
         0.4,
         axis=2)


def car_sections(profile, half_width, tuck):
    """Cross sections along x: profile = (x, bottom, beltline, roof) rows; the glasshouse leans in by `tuck`
    of its height."""
    sections = []
    for x, bottom, belt, roof in profile:
        lean = half_width - tuck * (roof - belt)
        side = [(half_width * 0.93, bottom), (half_width, bottom + 0.1 * (belt - bottom)),
                (half_width, bottom + 0.7 * (belt - bottom)), (half_width * 0.96, belt), (lean, roof - 0.02),
                (lean * 0.7, roof)]
        sections.append([(x, y, z) for z, y in side] + [(x, y, -z) for z, y in reversed(side)])
    return sections


def automobile(scene, paint=(0.66, 0.06, 0.06), roof_scale=1.0, lights=True):
    r = roof_scale
    profile = [(-1.02, 0.26, 0.44, 0.46), (-1.0, 0.20, 0.56, 0.58), (-0.86, 0.16, 0.60, 0.62),
               (-0.70, 0.15, 0.60, 0.64), (-0.42, 0.15, 0.59, 0.84 * r), (-0.15, 0.15, 0.58, 0.90 * r),
               (0.12, 0.15, 0.57, 0.87 * r), (0.46, 0.15, 0.56, 0.60), (0.75, 0.16, 0.52, 0.54),
               (0.98, 0.20, 0.44, 0.46), (1.04, 0.26, 0.36, 0.37)]
    sections = car_sections(profile, 0.42, 0.42)

    def tint(s, k):
        glasshouse = 3 <= s <= 6 and k in (3, 7)
        screen = s in (3, 6) and 4 <= k <= 6
        return GLASS if glasshouse or screen else paint

    scene.loft(sections, tint, 0.55)
    for end, s in ((-1, 0), (1, -1)):
        scene.polygon(sections[s][:6] + sections[s][6:], paint, 0.5)
    for side in (-1, 1):
        for x in (-0.63, 0.65):
            scene.disc((x, 0.21, side * 0.424), 0.222, (0, 0, 1), (0.03, 0.03, 0.03))
            scene.wheel((x, 0.185, side * 0.40), 0.185, 0.12)
        scene.polygon([(-0.14, 0.60, side * 0.423), (-0.17, 0.60, side * 0.423),
                       (-0.17, 0.89 * r, side * 0.30), (-0.14, 0.89 * r, side * 0.30)], paint, 0.4)
        scene.polygon([(0.05, 0.50, side * 0.424), (-0.08, 0.50, side * 0.424), (-0.08, 0.52, side * 0.424),
                       (0.05, 0.52, side * 0.424)], (0.75, 0.75, 0.75), 0.6)
        scene.chain([(0.40, 0.60, side * 0.43, 0.035), (0.38, 0.61, side * 0.49, 0.04)], paint, 0.5)
        if lights:
            scene.chain([(1.0, 0.40, side * 0.36, 0.045), (1.03, 0.39, side * 0.24, 0.04)],
                        (0.95, 0.95, 0.88), 0.9)
            scene.chain([(-1.0, 0.48, side * 0.36, 0.045), (-1.015, 0.48, side * 0.26, 0.04)],
                        (0.65, 0.05, 0.05), 0.6)
    scene.box((1.02, 0.22, -0.30), (1.06, 0.32, 0.30), (0.08, 0.08, 0.09), 0.3)
    scene.box((1.05, 0.19, -0.12), (1.075, 0.245, 0.12), (0.9, 0.9, 0.88))
    scene.box((-1.05, 0.24, -0.12), (-1.03, 0.30, 0.12), (0.9, 0.9, 0.88))


def truck(scene, cab=(0.12, 0.28, 0.60), box=(0.90, 0.90, 0.88), stripe=(0.85, 0.45, 0.08)):
    """A lorry with a box body, heading +x."""
    scene.box((-1.15, 0.24, -0.30), (1.10, 0.34, 0.30), (0.12, 0.12, 0.13))
    scene.box((-1.18, 0.36, -0.42), (0.48, 1.28, 0.42), box, 0.1)
    for side in (-1, 1):
        scene.polygon([(-1.18, 0.62, side * 0.424), (0.48, 0.62, side * 0.424), (0.48, 0.74, side * 0.424),
                       (-1.18, 0.74, side * 0.424)], stripe, 0.1)
        for x in np.linspace(-1.1, 0.42, 12):
            scene.polygon([(x, 0.38, side * 0.423), (x + 0.012, 0.38, side * 0.423),
                           (x + 0.012, 1.26, side * 0.423), (x, 1.26, side * 0.423)], [0.86 * c for c in box])
    cab_profile = [(0.56, 0.28, 0.72, 1.08), (0.80, 0.28, 0.72, 1.10), (0.98, 0.28, 0.70, 1.06),
                   (1.13, 0.28, 0.66, 0.68), (1.17, 0.30, 0.60, 0.62)]
    sections = car_sections(cab_profile, 0.40, 0.12)
    scene.loft(sections, lambda s, k: GLASS
               if (s in (0, 1) and k in (3, 7)) or (s == 2 and 3 <= k <= 7) else cab, 0.5)
    scene.polygon(sections[-1], cab, 0.4)
    scene.polygon(sections[0], cab, 0.2)
    scene.box((1.165, 0.40, -0.24), (1.185, 0.56, 0.24), (0.10, 0.10, 0.11), 0.3)
    scene.box((1.12, 0.20, -0.40), (1.20, 0.30, 0.40), (0.75, 0.75, 0.77), 0.6)
    for side in (-1, 1):
        scene.chain([(1.17, 0.40, side * 0.31, 0.04), (1.175, 0.40, side * 0.345, 0.04)], (0.96, 0.95, 0.86),
                    0.9)
        scene.box((0.98, 0.74, side * 0.44 - 0.03), (1.02, 0.96, side * 0.44 + 0.03), (0.08, 0.08, 0.08))
        scene.box((0.72, 0.45, side * 0.403 - 0.004), (0.735, 0.70, side * 0.403 + 0.004),
                  [0.6 * c for c in cab])
        for x in (-0.88, -0.48, 0.84):
            scene.wheel((x, 0.20, side * 0.34), 0.20, 0.15, hub=(0.60, 0.60, 0.62))


def fire_truck(scene):
    truck(scene, cab=(0.75, 0.06, 0.05), box=(0.78, 0.08, 0.06), stripe=(0.95, 0.93, 0.88))
    scene.chain([(0.7, 1.13, -0.2, 0.05), (0.7, 1.13, 0.2, 0.05)], (0.15, 0.30, 0.85), 0.8)
    for z in (-0.16, 0.16):
        scene.chain([(-1.25, 1.34, z, 0.02), (0.7, 1.40, z, 0.02)], (0.8, 0.8, 0.82), 0.5)
    for x in np.linspace(-1.2, 0.6, 14):
        scene.chain([(x, 1.36, -0.16, 0.013), (x, 1.36, 0.16, 0.013)], (0.8, 0.8, 0.82), 0.5)


def hull(scene, length, beam, freeboard, colour, waterline, sheer=0.10):
    """A hull along +x whose lowest strip is painted in the colour of the waterline."""
    sections = []
    for t in np.linspace(0, 1, 22):
        x = -length / 2 + length * t
        half = beam / 2 * min(1.0, 0.80 + 1.5 * t) * np.sqrt(max(1 - max(0.0,
                                                                         (t - 0.62) / 0.38)**2.2, 0.0004))
        top = freeboard + sheer * (2 * t - 0.9)**2
        rake = 0.10 * length * max(0.0, t - 0.75) * 4 * 0.5
        rows = [(-0.12, 0.82, 0.0), (0.06, 0.90, 0.25), (0.5 * top, 0.96, 0.6), (top, 1.0, 1.0)]
        sections.append([(x + rake * r, y, half * w) for y, w, r in rows] +
                        [(x + rake * r, y, -half * w) for y, w, r in reversed(rows)])
    scene.loft(sections, lambda s, k: waterline if k in (0, 6) else colour
               if k != 3 else (0.55, 0.42, 0.30), 0.3)
    scene.polygon(sections[0], colour, 0.3)


def cargo_ship(scene, colour=(0.14, 0.20, 0.30), waterline=(0.55, 0.13, 0.10), seed=2):
    hull(scene, 2.5, 0.42, 0.26, colour, waterline)
    rng = np.random.default_rng(seed)
    paints = [(0.70, 0.20, 0.12), (0.15, 0.35, 0.60), (0.80, 0.62, 0.15), (0.20, 0.45, 0.28),
              (0.62, 0.62, 0.62), (0.80, 0.42, 0.12)]
    for column in range(9):
        for row in range(2):
            for level in range(int(rng.integers(2, 4))):
                x, y, z = -0.62 + 0.165 * column, 0.27 + 0.095 * level, -0.17 + 0.17 * row
                scene.box((x, y, z), (x + 0.155, y + 0.088, z + 0.16), paints[int(rng.integers(len(paints)))])
    scene.box((-1.12, 0.26, -0.18), (-0.72, 0.46, 0.18), (0.93, 0.93, 0.92))
    scene.box((-1.08, 0.46, -0.17), (-0.76, 0.62, 0.17), (0.93, 0.93, 0.92))
    scene.box((-1.05, 0.62, -0.19), (-0.80, 0.74, 0.19), (0.93, 0.93, 0.92))
    scene.box((-0.80, 0.655, -0.17), (-0.795, 0.715, 0.17), GLASS, 0.5)
    for y in (0.34, 0.52, 0.66):
        for side in (-1, 1):
            for x in np.linspace(-1.06, -0.80, 6):
                scene.ball((x, y, side * 0.18), 0.016, GLASS)
    scene.chain([(-1.05, 0.70, 0, 0.06), (-1.06, 0.92, 0, 0.06)], (0.80, 0.30, 0.12), 0.2)
    scene.chain([(-0.86, 0.74, 0, 0.012), (-0.86, 1.0, 0, 0.008)], (0.85, 0.85, 0.85))
    scene.chain([(1.05, 0.34, 0, 0.012), (1.05, 0.66, 0, 0.008)], (0.85, 0.85, 0.85))


def cruise_ship(scene):
    white = (0.95, 0.95, 0.94)
    hull(scene, 2.5, 0.44, 0.26, white, (0.10, 0.16, 0.34))
    for deck, (x0, x1) in enumerate(((-1.10, 0.86), (-1.06, 0.76), (-1.02, 0.66), (-0.92, 0.52))):
        y = 0.28 + 0.10 * deck
        scene.box((x0, y, -0.19), (x1, y + 0.085, 0.19), white, 0.2)
        for side in (-1, 1):
            for x in np.arange(x0 + 0.05, x1 - 0.03, 0.062):
                scene.ball((x, y + 0.045, side * 0.186), 0.018, (0.13, 0.18, 0.24), 0.3)
    scene.box((0.42, 0.68, -0.17), (0.56, 0.75, 0.17), (0.13, 0.17, 0.22), 0.4)
    scene.chain([(-0.45, 0.68, 0, 0.10), (-0.55, 0.92, 0, 0.08)], (0.10, 0.22, 0.50), 0.3)
    scene.chain([(0.30, 0.70, 0, 0.012), (0.28, 1.02, 0, 0.008)], white)
    for side in (-1, 1):
        for x in np.linspace(-0.9, 0.4, 7):
            scene.chain([(x, 0.40, side * 0.21, 0.028), (x + 0.10, 0.40, side * 0.21, 0.028)],
                        (0.90, 0.45, 0.10))


def sailing_boat(scene, colour=(0.92, 0.92, 0.93)):
    hull(scene, 1.7, 0.40, 0.17, colour, (0.12, 0.20, 0.42), 0.06)
    scene.chain([(0.12, 0.2, 0, 0.018), (0.10, 2.05, 0, 0.012)], (0.75, 0.75, 0.77), 0.4)
    scene.box((-0.25, 0.2, -0.10), (0.35, 0.27, 0.10), (0.55, 0.38, 0.22))
    main, jib = [], []
    for t in np.linspace(0, 1, 12):
        half = (1 - t) * 0.85 + 0.02
        main.append([(0.09 - half * u, 0.34 + 1.66 * t, 0.16 * np.sin(np.pi * u) * (1 - t))
                     for u in np.linspace(0, 1, 8)])
        jib.append([(0.14 + (0.62 * (1 - t) + 0.01) * u, 0.28 + 1.5 * t, 0.12 * np.sin(np.pi * u) * (1 - t))
                    for u in np.linspace(0, 1, 8)])
    scene.loft(main, (0.95, 0.95, 0.93))
    scene.loft(jib, (0.95, 0.95, 0.93))
