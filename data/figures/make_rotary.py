"""Draws data/figures/rotary.svg: which channels of a head each family rotates, by which axis, and how fast.

    python data/figures/make_rotary.py [FILE]    FILE: data/figures/rotary.svg unless given; needs nothing but Python

A head of 16 channels, so 8 pairs, and a grid of 6 x 8 patches. The rows are those of the table in vit/position/README.md; the numbers
are computed here from its formulas, not by the library.
"""

import math
import sys
from pathlib import Path

ROWS, COLUMNS, CHANNELS = 6, 8, 16
PER_AXIS = CHANNELS // 4  # frequencies of an axis
CELL, BOX, HEIGHT = 9, 22, 62
HUES = {"x": 215, "y": 25, "t": 140, "xy": 280}  # of axes
BOXES_AT, MAPS_AT, WIDTH = 262, 650, 1010

# Coordinates of patch i of n.
COORDINATES = {
    "index": lambda i, n: i,
    "index + 1": lambda i, n: i + 1,
    "scaled to 16 x 16": lambda i, n: i * 16 / n,
    "scaled to the native grid": lambda i, n: i * 14 / n,
    "centers in [-1, 1]": lambda i, n: (i + 0.5) / n * 2 - 1,
}

# name, what is not as in the columns, coordinates, axes in their order, channels, theta, factor
FAMILIES = [
    ("rope-vit axial", "", "index", "xy", "neighbors", 100, 1),
    ("rope-vit mixed", "both axes in every angle, here drawn", "index", "mixed", "neighbors", 100, 1),
    ("EVA-02, timm SBB", "", "scaled to 16 x 16", "yx", "neighbors", 1e4, 1),
    ("Perception Encoder (Meta)", "", "index + 1", "xy", "neighbors", 1e4, 1),
    ("Perception Encoder (timm)", "here of a native grid of 14 x 14", "scaled to the native grid", "xy", "neighbors", 1e4, 1),
    ("DINOv3", "", "centers in [-1, 1]", "yx", "halves", 100, 2 * math.pi),
    ("SAM 2", "", "index", "xy", "neighbors", 1e4, 1),
    ("Qwen-VL, GLM-4V, PaddleOCR-VL", "", "index", "yx", "halves", 1e4, 1),
    ("MLCD", "class token rotated by learned angles", "index", "yx", "halves", 1e4, 1),
    ("Pixtral, Mistral 3 (transformers)", "columns between the frequencies of rows", "index", "yx", "halves", 1e4, 1),
    ("Pixtral, Mistral 3 (Mistral)", "columns between the frequencies of rows", "index", "yx", "neighbors", 1e4, 1),
    ("MoonViT (Kimi)", "", "index", "xy", "alternating neighbors", 1e4, 1),
    ("CroCo v2, DUSt3R, MASt3R", "", "index", "yx", "halves in halves", 100, 1),
    ("Gemma 4", "", "index", "xy", "halves in halves", 100, 1),
    ("Llama 4", "", "index + 1", "xy", "neighbors", 1e4, 1),
    ("V-JEPA 2", "a pair's channels by angles of their own", "index", "tyx", "neighbors", 1e4, 1),
]


def channels(axes, layout):
    """[(axis, frequency) or None] of each channel; equal entries are a pair, but of three axes, where neighbors are."""
    if axes == "mixed":
        return [("xy", i // 2) for i in range(CHANNELS)]
    if len(axes) == 3:  # a third of the channels each, rounded down to pairs
        pairs = CHANNELS // 3 // 2
        return ([(axis, i % pairs) for axis in axes for i in range(2 * pairs)] + [None] * CHANNELS)[:CHANNELS]
    a, b = ([(axis, i) for i in range(PER_AXIS)] for axis in axes)
    return {"neighbors": [pair for pair in a + b for _ in range(2)],
            "halves": (a + b) * 2,
            "alternating neighbors": [pair for both in zip(a, b) for pair in both for _ in range(2)],
            "halves in halves": a * 2 + b * 2}[layout]


def color(axis, strength):
    return f"hsl({HUES[axis]},65%,{92 - 50 * strength:.0f}%)"


def draw_channels(out, x, y, found):
    for i, pair in enumerate(found):
        fill = color(pair[0], 1 - pair[1] / (9 if pair[0] == "xy" else 5)) if pair else "#eee"
        out.append(f'<rect x="{x + i * BOX}" y="{y}" width="{BOX - 2}" height="{BOX - 2}" rx="3" fill="{fill}"/>')
        if pair:
            out.append(f'<text x="{x + i * BOX + 10}" y="{y + 14}" class="c">{pair[0] if pair[0] != "xy" else "m"}{pair[1]}</text>')
    pairs = [[i for i, other in enumerate(found) if other == pair] for pair in dict.fromkeys(p for p in found if p)]
    if None in found:
        pairs = [(i, i + 1) for i in range(0, CHANNELS, 2) if found[i]]
    for one, other in pairs:
        first, last, pair = x + one * BOX + 10, x + other * BOX + 10, found[one]
        depth = 5 + (last - first) / 16
        out.append(f'<path d="M{first} {y + BOX} q{(last - first) / 2} {2 * depth:.1f} {last - first} 0" '
                   f'stroke="{color(pair[0], 1)}" class="a"/>')


def draw_map(out, x, y, axis, frequency, coordinate):
    """cos of the angle of every patch: equal along the other axis."""
    if axis == "xy":
        turned = (math.cos(2.0 * frequency + 0.6), math.sin(2.0 * frequency + 0.6))
        cells = [(r, c, 1, 1, math.cos(turned[0] * c + turned[1] * r)) for r in range(ROWS) for c in range(COLUMNS)]
    elif axis == "x":
        cells = [(0, c, ROWS, 1, math.cos(frequency * coordinate(c, COLUMNS))) for c in range(COLUMNS)]
    else:
        cells = [(r, 0, 1, COLUMNS, math.cos(frequency * coordinate(r, ROWS))) for r in range(ROWS)]
    for r, c, height, width, value in cells:
        out.append(f'<rect x="{x + c * CELL}" y="{y + r * CELL}" width="{width * CELL}" height="{height * CELL}" '
                   f'fill="{color(axis, (1 - value) / 2)}"/>')


def frequency_of(name, axes, axis, k, theta, factor):
    offset = 0.5 if name.startswith("Pixtral") and axis == "x" else 0
    return factor * theta ** (-(k + offset) / (PER_AXIS if len(axes) == 2 else CHANNELS // 3 // 2))


def main():
    out = []
    for i, (name, note, rule, axes, layout, theta, factor) in enumerate(FAMILIES):
        y = 46 + i * HEIGHT
        rates = "learned" if axes == "mixed" else f"theta {theta:g}"
        of_two_pi = " times 2 pi" if factor != 1 else ""
        out.append(f'<text x="8" y="{y + 10}" class="n">{name}</text>'
                   f'<text x="8" y="{y + 25}" class="d">{rule}, {rates}{of_two_pi}</text>'
                   f'<text x="8" y="{y + 39}" class="d">{note}</text>')
        draw_channels(out, BOXES_AT, y, channels(axes, layout))
        drawn = [("xy", 0), ("xy", 1), ("xy", 2), ("xy", 3)] if axes == "mixed" else [("x", 0), ("x", 1), ("y", 0), ("y", 1)]
        for j, (axis, k) in enumerate(drawn):
            frequency = k if axis == "xy" else frequency_of(name, axes, axis, k, theta, factor)
            draw_map(out, MAPS_AT + j * (COLUMNS * CELL + 16), y - 6, axis, frequency, COORDINATES[rule])
    height = 46 + len(FAMILIES) * HEIGHT
    style = (".n{font:600 13px sans-serif}.d{font:11px sans-serif;fill:#555}.h{font:600 12px sans-serif;fill:#333}"
             ".c{font:10px sans-serif;text-anchor:middle}.a{fill:none;stroke-width:1.2}")
    heads = "".join(f'<text x="{x}" y="22" class="h">{text}</text>' for x, text in (
        (8, "family"), (BOXES_AT, "channels of a head, arcs join pairs"),
        (MAPS_AT, "cos x0"), (MAPS_AT + 88, "x1"), (MAPS_AT + 176, "y0"), (MAPS_AT + 264, "y1")))
    svg = (f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}">'
           f'<style>{style}</style><rect width="100%" height="100%" fill="#fff"/>{heads}\n' + "\n".join(out) + "\n</svg>\n")
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "rotary.svg"
    path.write_text(svg)


if __name__ == "__main__":
    main()
