"""Draws data/figures/conventions/NAME.svg, a picture of each rotary convention, from the conformance vectors' formulas.

    python data/figures/make_conventions.py            needs only Python

Left: the channels of a head, colored by the direction of their frequency (blue: columns, orange: rows, green: time, between blue and
orange: both), darker for a faster one; arcs join the two channels of a pair, gray ones are not rotated. Right, for a grid of 9 x 15
patches: the cosine of the fastest angle of columns and of rows (or of two directions), and the score of a query at the center with
the keys of all patches if all channels are one, which is what the rotation alone says about distance, from its smallest to its largest
value. The section of each convention in vit/position/conventions.md is written too.
"""

import colorsys
import math
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "positions"))
import make_vectors as vectors  # noqa: E402

ROWS, COLUMNS, CELL = 9, 15, 8
LEVELS = 12
STYLE = (".n{font:600 13px sans-serif}.d{font:11px sans-serif;fill:#555}.c{font:9px sans-serif;text-anchor:middle}"
         ".a{fill:none;stroke-width:1.2;stroke:#777}")


def color(hue, saturation, lightness):
    """Hexadecimal, which every viewer knows."""
    return "#" + "".join(f"{round(255 * part):02x}" for part in colorsys.hls_to_rgb(hue % 360 / 360, lightness / 100, saturation / 100))


def hue_of(w):
    """Of a frequency vector: 215 columns, 25 rows, 140 time; both axes between them."""
    if len(w) > 2 and abs(w[2]) > max(abs(w[0]), abs(w[1])):
        return 140
    share = math.atan2(abs(w[1]), abs(w[0])) / (math.pi / 2)  # 0 columns, 1 rows
    return 215 + share * 170 if 0 < share < 1 else (215 if share == 0 else 25)


def size_of(w):
    return math.sqrt(sum(x * x for x in w))


def channels_of(tensors, title, d):
    """Frequency vector (x, y, t) of each channel, and the pairs; of head 0. A line has only t."""
    weights, pairs = tensors[f"{title}.normal_form"], tensors[f"{title}.pairs"]
    weights = weights[0] if isinstance(weights[0][0], list) else weights
    if len(weights[0]) == 1:
        weights = [[0.0, 0.0, w[0]] for w in weights]
    of = [None] * d
    for j, (p, q) in enumerate(pairs):
        of[p], of[q] = (weights[p], weights[q]) if len(weights) == d else (weights[j], weights[j])
    return [w if w and size_of(w) > 0 else None for w in of], pairs, weights


def draw_channels(out, of, pairs, x, y):
    box = min(22, 360 // len(of))
    sizes = sorted({round(size_of(w), 12) for w in of if w}, reverse=True)
    for i, w in enumerate(of):
        rank = sizes.index(round(size_of(w), 12)) / max(1, len(sizes) - 1) if w else 0
        fill = color(hue_of(w), 65, 50 + 35 * rank) if w else "#e6e6e6"
        out.append(f'<rect x="{x + i * box}" y="{y}" width="{box - 2}" height="20" rx="3" fill="{fill}"/>')
        if w:
            out.append(f'<text x="{x + i * box + box / 2 - 1:.1f}" y="{y + 13}" class="c">{name_of(w, of)}</text>')
    for p, q in pairs:
        if of[p] is None:
            continue
        first, last = x + p * box + box / 2 - 1, x + q * box + box / 2 - 1
        depth = 5 + (last - first) / 14
        out.append(f'<path d="M{first:.1f} {y + 21} q{(last - first) / 2:.1f} {2 * depth:.1f} {last - first:.1f} 0" class="a"/>')


def name_of(w, of):
    """x0, y1, t0: axis and rank of the frequency; m of both axes."""
    axes = [axis for axis, value in zip("xyt", w) if abs(value) > 1e-12 * size_of(w)]
    axis = axes[0] if len(axes) == 1 else "m"
    alike = sorted({round(size_of(o), 12) for o in of if o and (axis == "m" or [a for a, v in zip("xyt", o) if abs(v) > 1e-12 * size_of(o)] == [axis])},
                   reverse=True)
    return f"{axis}{alike.index(round(size_of(w), 12))}"


def draw_map(out, values, hue, x, y):
    """A grid of values in [-1, 1], in steps, one path per step."""
    paths = {}
    for i, value in enumerate(values):
        step = -1 if value is None else min(LEVELS - 1, int((value + 1) / 2 * LEVELS))
        r, c = divmod(i, COLUMNS)
        paths.setdefault(step, []).append(f"M{c * CELL} {r * CELL}h{CELL}v{CELL}h-{CELL}z")
    out.append(f'<g transform="translate({x} {y})">')
    for step, cells in sorted(paths.items()):
        fill = "#e6e6e6" if step < 0 else color(hue, 60, 96 - 66 * step / (LEVELS - 1))
        out.append(f'<path fill="{fill}" d="{"".join(cells)}"/>')
    out.append("</g>")


def coordinates(name, facts, case):
    wide = dict(case, grid=[ROWS, COLUMNS], frames=1)
    wide.pop("merge", None)
    if wide.pop("window", 0) and case.get("from_corner"):
        wide["window"] = 3
    where = vectors.coordinates_of(wide, name)
    order = vectors.token_order([ROWS, COLUMNS], wide.get("window", 0))[0]
    found = [None] * len(where)
    for at, patch in zip(where, order):
        found[patch] = at
    return found


def draw(name, facts, tensors):
    title = "clip" if "clip" in facts["cases"] else next(iter(facts["cases"]))
    case = facts["cases"][title]
    d = case["head_dim"]
    of, pairs, weights = channels_of(tensors, title, d)
    out = [f'<text x="8" y="17" class="n">{name}</text>']
    draw_channels(out, of, pairs, 8, 34)
    if "grid" in case:
        where = coordinates(name, facts, case)
        per_channel = case.get("angles_per") == "channel"
        angles = [[sum(a * b for a, b in zip(w, at)) for w in weights] for at in where]
        center = ROWS // 2 * COLUMNS + COLUMNS // 2
        ones = [vectors.rotate([1.0] * d, row, pairs, per_channel) for row in angles]
        scores = [sum(a * b for a, b in zip(ones[center], row)) / d for row in ones]
        spatial = [j for j, w in enumerate(weights) if max(abs(w[0]), abs(w[1])) > 0]
        spatial.sort(key=lambda j: -size_of(weights[j]))
        first = spatial[0]
        other = next((j for j in spatial if abs(hue_of(weights[j]) - hue_of(weights[first])) > 20), spatial[-1])
        chosen = sorted((first, other), key=lambda j: hue_of(weights[j]) != 215)
        for k, j in enumerate(chosen):
            x = 380 + k * (COLUMNS * CELL + 16)
            out.append(f'<text x="{x}" y="17" class="d">cos {name_of(weights[j], of)}</text>')
            draw_map(out, [math.cos(row[j]) for row in angles], hue_of(weights[j]), x, 26)
        if case.get("from_corner"):  # keys of other windows are not attended to
            window = [(i // COLUMNS // 3, i % COLUMNS // 3) for i in range(ROWS * COLUMNS)]
            scores = [s if at == window[center] else None for s, at in zip(scores, window)]
        x = 380 + 2 * (COLUMNS * CELL + 16)
        out.append(f'<text x="{x}" y="17" class="d">score with the center</text>')
        known = [s for s in scores if s is not None]
        low, span = min(known), max(max(known) - min(known), 1e-9)
        draw_map(out, [None if s is None else 2 * (s - low) / span - 1 for s in scores], 280, x, 26)
    height = 26 + ROWS * CELL + 8
    return (f'<svg xmlns="http://www.w3.org/2000/svg" width="800" height="{height}" viewBox="0 0 800 {height}"><style>{STYLE}</style>'
            f'<rect width="100%" height="100%" fill="#fff"/>' + "".join(out) + "</svg>\n")


def main():
    folder = HERE / "conventions"
    folder.mkdir(exist_ok=True)
    sections = []
    for name, (facts, tensors) in vectors.everything().items():
        if "cases" not in facts:
            continue
        (folder / f"{name}.svg").write_text(draw(name, facts, tensors))
        sections.append(f"**{name}**: {', '.join(facts['families'])}. Source: {'; '.join(facts['source'])}.\n\n"
                        f"    {facts['formula']}\n\n![{name}](../../data/figures/conventions/{name}.svg)\n\n")
    path = HERE.parents[1] / "vit/position/conventions.md"
    page, begin, end = path.read_text(), "<!-- pictures: begin -->\n", "<!-- pictures: end -->"
    path.write_text(page[:page.index(begin) + len(begin)] + "\n" + "".join(sections) + page[page.index(end):])


if __name__ == "__main__":
    main()
