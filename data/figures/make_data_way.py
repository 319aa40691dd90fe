"""Draws data/figures/data_way.svg, the data flow of an image through the library.  Run: python3 data/figures/make_data_way.py

Two rows: what happens to the pixels, and what happens to the positions of the patches; they meet in the blocks.
Only the standard library is used.
"""
import pathlib

FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
INK, SOFT, PIXELS, PLACES, MEET = "#1d2733", "#5d6b7a", "#dfeaf7", "#fbe8cf", "#dff2e1"


def text(x, y, words, size=13, colour=INK, weight="normal"):
    return (f"<text x='{x}' y='{y}' text-anchor='middle' {FONT} font-size='{size}' fill='{colour}' "
            f"font-weight='{weight}'>{words}</text>")


def box(x, y, width, fill, title, lines):
    height = 34 + 16 * len(lines)
    parts = [f"<rect x='{x}' y='{y}' width='{width}' height='{height}' rx='7' fill='{fill}' stroke='{INK}'/>",
             text(x + width / 2, y + 22, title, 14, INK, "bold")]
    parts += [text(x + width / 2, y + 41 + 16 * i, line, 11, SOFT) for i, line in enumerate(lines)]
    return "\n".join(parts)


def arrow(points, label="", at=None):
    path = " ".join(f"{'L' if i else 'M'}{x} {y}" for i, (x, y) in enumerate(points))
    parts = [f"<path d='{path}' fill='none' stroke='{INK}' stroke-width='1.4' marker-end='url(#head)'/>"]
    if label:
        parts.append(text(*at, label, 11))
    return "\n".join(parts)


def grid_image(x, y, rows, columns, cell):
    """A image cut into patches: a sun over a hill, with the patch lines on top."""
    width, height = columns * cell, rows * cell
    parts = [f"<rect x='{x}' y='{y}' width='{width}' height='{height}' fill='#a9cdf0'/>",
             f"<circle cx='{x + width * 0.7}' cy='{y + height * 0.32}' r='{cell * 0.62}' fill='#ffd35c'/>",
             f"<path d='M{x} {y + height} L{x} {y + height * 0.72} Q{x + width * 0.3} {y + height * 0.4} "
             f"{x + width * 0.6} {y + height * 0.75} T{x + width} {y + height * 0.7} L{x + width} {y + height} Z' "
             "fill='#7fb069'/>"]
    for i in range(columns + 1):
        parts.append(f"<path d='M{x + i * cell} {y} V{y + height}' stroke='white' stroke-width='1.2'/>")
    for i in range(rows + 1):
        parts.append(f"<path d='M{x} {y + i * cell} H{x + width}' stroke='white' stroke-width='1.2'/>")
    return "\n".join(parts)


def drawing():
    top, low = 40, 190
    return "\n".join([
        "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1000 330' role='img' "
        "aria-label='The data flow of an image through the library'>",
        f"<defs><marker id='head' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' orient='auto'>"
        f"<path d='M0 0 L8 4 L0 8 Z' fill='{INK}'/></marker></defs>",
        "<rect width='1000' height='330' fill='white'/>",
        # the pixels
        grid_image(20, 47, 3, 4, 22),
        text(64, 134, "image (H, W, 3)", 11, SOFT),
        arrow([(114, 82), (138, 82)]),
        box(140, top, 142, PIXELS, "preprocess", ["resize, crop,", "normalize", "(3, H, W)"]),
        arrow([(282, 82), (313, 82)]),
        box(315, top, 142, PIXELS, "patchify, embed", ["squares of P pixels", "times a matrix", "(N, C)"]),
        arrow([(457, 82), (488, 82)]),
        box(490, top, 130, PIXELS, "tokens", ["class token,", "registers, patches", "(T, C)"]),
        arrow([(620, 82), (651, 82)]),
        box(653, top, 160, MEET, "blocks", ["attention and MLP,", "q and k of patches", "rotated by the factors"]),
        arrow([(813, 82), (844, 82)]),
        box(846, top, 134, PIXELS, "head", ["pool, classify", "logits (classes)", "features (h, w, C)"]),
        # the places
        arrow([(386, 122), (386, 150), (212, 150), (212, low - 2)], "grid: h rows, w columns", (299, 143)),
        box(140, low, 142, PLACES, "coordinates", ["index, scaled index,", "or patch centers", "t_x, t_y (N)"]),
        text(298, 238, "x", 18),
        box(315, low, 142, PLACES, "frequencies", ["theta^(-4k/d),", "stored, or learned", "(d/4)"]),
        text(473, 238, "=", 18),
        box(490, low, 130, PLACES, "angles", ["half of the head", "for x, half for y", "(N, d/2)"]),
        arrow([(620, 232), (651, 232)]),
        box(653, low, 160, PLACES, "rotary factors", ["cos + i sin, built", "once for each grid", "(N, d/2)"]),
        arrow([(733, low), (733, 124)]),
        text(500, 312, "N = h w patches of P x P pixels, T = prefix tokens + N, C = width of a token, "
             "d = width of a head", 11, SOFT),
        "</svg>", ""])


if __name__ == "__main__":
    pathlib.Path(__file__).with_name("data_way.svg").write_text(drawing(), encoding="utf-8")
