"""Writes the conformance vectors of rotary positions: one NAME.safetensors and NAME.json per convention.

    python data/positions/make_vectors.py            writes the files next to this script
    python data/positions/make_vectors.py --check    compares the stored files with the formulas; exits 1 on a difference

Needs only Python: every number is computed in float64 from the formulas below, by math.cos, math.sin and math.pow, and
without any library for tensors or models. Queries and keys are multiples of 1/1024 in [-2, 2), exact in float16. README.md
describes the tensors.

Letters: d = channels of a head, P = d / 2 pairs, F = d / 4 frequencies of an axis, N = patches, T = tokens, H = heads.
"""

from __future__ import annotations

import json
import math
import random
import struct
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


# ------------------------------------------------------------------------------------------------ files


def flatten(values):
    if isinstance(values, (list, tuple)):
        return [number for value in values for number in flatten(value)]
    return [values]


def shape_of(values):
    return [len(values), *shape_of(values[0])] if isinstance(values, (list, tuple)) else []


def write_safetensors(path, tensors):
    """float64 tensors, int64 where all values are integers of Python."""
    header, parts, offset = {}, [], 0
    for name in sorted(tensors):
        numbers = flatten(tensors[name])
        is_integer = all(isinstance(number, int) for number in numbers)
        data = struct.pack(f"<{len(numbers)}{'q' if is_integer else 'd'}", *numbers)
        header[name] = {"dtype": "I64" if is_integer else "F64", "shape": shape_of(tensors[name]),
                        "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))


def read_safetensors(path):
    """{name: (shape, flat values)}."""
    data = path.read_bytes()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        begin, end = entry["data_offsets"]
        letter = {"F64": "d", "I64": "q"}[entry["dtype"]]
        tensors[name] = entry["shape"], list(struct.unpack_from(f"<{(end - begin) // 8}{letter}", data, 8 + size + begin))
    return tensors


# ------------------------------------------------------------------------------------------------ formulas

# Coordinate of patch i of G along one axis; g is the reference length of that axis.
COORDINATES = {
    "index": lambda i, G, offset, g: i + offset,
    "scaled_to_reference": lambda i, G, offset, g: (i + offset) / G * g,
    "centered": lambda i, G, offset, g: 2 * ((i + 0.5 + offset) / G) - 1,
    "corners": lambda i, G, offset, g: i * (g - 1) / (G - 1),        # the first patch at 0, the last at g - 1
    "linspace": lambda i, G, offset, g: 2 * i / (G - 1) - 1,         # the first patch at -1, the last at 1
    "fraction": lambda i, G, offset, g: (i + 0.5) / G,               # centers in [0, 1]
}


def ladder(count, theta, scale=1.0, shift=0.0):
    """scale theta^(-(k + shift) / count), k = 0 .. count - 1."""
    return [math.pow(theta, -(k + shift) / count) * scale for k in range(count)]


def channel_pairs(layout, d, used=None):
    """(p, q) of every angle; angles are listed by axis, first axis first, or as the convention lists them.

        neighbors        a0 a0 a1 a1 b0 b0 b1 b1        (2j, 2j + 1)
        halves           a0 a1 b0 b1 a0 a1 b0 b1        (j, j + d / 2)
        alternating      a0 a0 b0 b0 a1 a1 b1 b1        neighbors, the axes in turn
        halves_by_axis   a0 a1 a0 a1 b0 b1 b0 b1        halves of the half of an axis
    """
    half, F = (used or d) // 2, d // 4
    if layout == "neighbors":
        return [[2 * j, 2 * j + 1] for j in range(d // 2)]
    if layout == "halves":
        return [[j, j + half] for j in range(half)]
    if layout == "alternating":
        return [[4 * k + 2 * axis, 4 * k + 2 * axis + 1] for axis in range(2) for k in range(F)]
    if layout == "halves_by_axis":
        return [[2 * F * axis + k, 2 * F * axis + F + k] for axis in range(2) for k in range(F)]
    raise ValueError(layout)


def axial(order, first, second):
    """Normal form of an axial encoding: (w_x, w_y) of each pair; order names the axis of the first half of the pairs."""
    x_first = order == "x_then_y"
    return [[w, 0.0] if x_first else [0.0, w] for w in first] + [[0.0, w] if x_first else [w, 0.0] for w in second]


def rotate(x, angles, pairs, per_channel=False):
    """x (d) rotated: (x_p, x_q) -> (x_p cos a - x_q sin a, x_q cos a + x_p sin a), an angle a per pair.

    per_channel: channel p has angle p and channel q angle q (V-JEPA 2), which is not a rotation."""
    out = list(x)
    for j, (p, q) in enumerate(pairs):
        of_p, of_q = (angles[p], angles[q]) if per_channel else (angles[j], angles[j])
        out[p] = x[p] * math.cos(of_p) - x[q] * math.sin(of_p)
        out[q] = x[q] * math.cos(of_q) + x[p] * math.sin(of_q)
    return out


def product(a, b):
    columns = list(zip(*b))
    return [[math.fsum(x * y for x, y in zip(row, column)) for column in columns] for row in a]


def applied(matrix, x):
    return [math.fsum(a * b for a, b in zip(row, x)) for row in matrix]


def transposed(matrix):
    return [list(column) for column in zip(*matrix)]


def eye(n):
    return [[float(i == j) for j in range(n)] for i in range(n)]


def inverse(matrix):
    """Gauss-Jordan with partial pivoting."""
    n = len(matrix)
    rows = [list(row) + unit for row, unit in zip(matrix, eye(n))]
    for c in range(n):
        pivot = max(range(c, n), key=lambda r: abs(rows[r][c]))
        rows[c], rows[pivot] = rows[pivot], rows[c]
        rows[c] = [value / rows[c][c] for value in rows[c]]
        for r in range(n):
            if r != c:
                rows[r] = [value - rows[r][c] * of_pivot for value, of_pivot in zip(rows[r], rows[c])]
    return [row[n:] for row in rows]


def exponential(matrix):
    """exp(A) by the series of A / 2^8, squared eight times."""
    n = len(matrix)
    small = [[value / 256 for value in row] for row in matrix]
    total, term = eye(n), eye(n)
    for k in range(1, 20):
        term = [[value / k for value in row] for row in product(term, small)]
        total = [[a + b for a, b in zip(*rows)] for rows in zip(total, term)]
    for _ in range(8):
        total = product(total, total)
    return total


def cayley(skew):
    """(I - S)(I + S)^-1: orthogonal for every skew-symmetric S."""
    n = len(skew)
    minus = [[float(i == j) - skew[i][j] for j in range(n)] for i in range(n)]
    plus = [[float(i == j) + skew[i][j] for j in range(n)] for i in range(n)]
    return product(minus, inverse(plus))


def inverse_erf(y):
    """x with erf(x) = y, |y| < 1, by Newton's method."""
    x = 0.0
    for _ in range(100):
        step = (math.erf(x) - y) / (2 / math.sqrt(math.pi) * math.exp(-x * x))
        x -= max(-0.5, min(0.5, step))
        if abs(step) < 1e-17:
            break
    return x


def numbers(seed, *shape):
    """Multiples of 1/1024 in [-2, 2)."""
    source = random.Random(seed)

    def fill(sizes):
        if not sizes:
            return (source.getrandbits(12) - 2048) / 1024
        return [fill(sizes[1:]) for _ in range(sizes[0])]

    return fill(shape)


# ------------------------------------------------------------------------------------------------ cases


def token_order(grid, window=0, merge=0):
    """Row-major indices of the patches in the order of their tokens, and the lengths of the sequences that attend within
    themselves: window by window (those at the right and lower edge are smaller), or in blocks of merge x merge patches."""
    rows, columns = grid
    size = window or merge
    if not size:
        return list(range(rows * columns)), [rows * columns]
    order, lengths = [], []
    for top in range(0, rows, size):
        for left in range(0, columns, size):
            block = [r * columns + c for r in range(top, min(top + size, rows)) for c in range(left, min(left + size, columns))]
            order += block
            lengths.append(len(block))
    return order, lengths if window else [len(order)]


def coordinates_of(case, name):
    """(N, axes): x, y, and t if the case has it, of every patch in the order of the tokens."""
    rows, columns = case["grid"]
    order, _ = token_order(case["grid"], case.get("window", 0), case.get("merge", 0))
    rule, offset = COORDINATES[case["coordinates"]], case["offset"]
    reference = case.get("reference", [0, 0])
    found = []
    for t in range(case["frames"]):
        for patch in order:
            r, c = divmod(patch, columns)
            if case.get("from_corner"):  # coordinates count from the corner of the window
                r, c = r % case["window"], c % case["window"]
            at = [rule(c, columns, offset, reference[1]), rule(r, rows, offset, reference[0])]
            if name == "golden-gate":  # as long as the sides of the image, of area 4
                at = [at[0] * math.sqrt(columns / rows), at[1] * math.sqrt(rows / columns)]
            found.append([float(value) for value in at] + ([float(t)] if case["axes"] == 3 else []))
    return found


def compute(name, case, prefix):
    """Adds the tensors of a case to `prefix`: {name of tensor: nested lists}."""
    d, H, first, last = (case[key] for key in ("head_dim", "heads", "prefix", "suffix"))
    weights = case.pop("normal_form")  # (P, axes), or (H, P, axes); channels instead of pairs where per_channel
    per_head = isinstance(weights[0][0], list)
    per_channel = case.get("angles_per") == "channel"
    pairs = case.pop("pairs")
    basis = case.pop("basis", None)
    where = [[float(t)] for t in range(case["length"])] if "length" in case else coordinates_of(case, name)
    T = first + len(where) + last

    def angles_of(rates):
        return [[sum(w * at for w, at in zip(rate, place)) for rate in rates] for place in where]

    angles = [angles_of(rates) for rates in weights] if per_head else angles_of(weights)
    class_angles = case.pop("class_angles", None)
    q, k = (numbers(f"{name} {prefix} {which}", H, T, d) for which in "qk")

    def rotated(x):
        out = []
        for h in range(H):
            of_head = angles[h] if per_head else angles
            rows = []
            for t in range(T):
                row = x[h][t]
                n = t - first
                if 0 <= n < len(where):
                    row = applied(basis, row) if basis else row
                    row = rotate(row, of_head[n], pairs, per_channel)
                    row = applied(transposed(basis), row) if basis else row
                elif t == 0 and class_angles:
                    row = rotate(row, class_angles, pairs)
                rows.append(row)
            out.append(rows)
        return out

    q_rotated, k_rotated = rotated(q), rotated(k)
    scores = [[[math.fsum(a * b for a, b in zip(x, y)) / math.sqrt(d) for y in k_rotated[h]] for x in q_rotated[h]]
              for h in range(H)]
    order, lengths = token_order(case["grid"], case.get("window", 0), case.get("merge", 0)) if "grid" in case else (None, None)
    tensors = {"coordinates": where, "normal_form": weights, "pairs": pairs, "angles": angles,
               "cos": map_numbers(math.cos, angles), "sin": map_numbers(math.sin, angles),
               "q": q, "k": k, "q_rotated": q_rotated, "k_rotated": k_rotated, "scores": scores}
    if order is not None:
        tensors["patches"] = order * case["frames"]
        case["sequence_lengths"] = lengths * case["frames"] if case["axes"] == 2 else [len(where)]
    if class_angles:
        tensors["class_angles"] = class_angles
    if basis:
        tensors["basis"] = basis
    return {f"{prefix}.{key}": value for key, value in tensors.items()}


def map_numbers(function, values):
    return [map_numbers(function, value) for value in values] if isinstance(values, list) else function(values)


# ------------------------------------------------------------------------------------------------ conventions

CONVENTIONS = {}


def convention(name, families, formula, source, cases, **choices):
    """cases: {title: facts, "normal_form" and "pairs"}; what a case does not say is added here."""
    full = {title: dict(head_dim=case["head_dim"], heads=1, prefix=0, suffix=0) | (
        {} if "length" in case else dict(grid=case["grid"], frames=1, axes=2, offset=0.0)) | case for title, case in cases.items()}
    CONVENTIONS[name] = dict(name=name, families=families, formula=formula, source=source, **choices, cases=full)


def axial_convention(name, families, formula, source, *, order, layout, coordinates, theta, cases, scale=1.0, second=0.0):
    """cases: {name: overrides}; second: shift of the exponent of the second axis, in steps of the ladder."""
    full = {}
    for title, overrides in cases.items():
        case = dict(grid=[3, 5], head_dim=16, coordinates=coordinates) | overrides
        F = case["head_dim"] // 4
        case["normal_form"] = axial(order, ladder(F, theta, scale), ladder(F, theta, scale, second))
        case["pairs"] = channel_pairs(layout, case["head_dim"])
        full[title] = case
    convention(name, families, formula, source, full, coordinates=coordinates, axis_order=order, layout=layout, theta=theta,
               angle_scale=scale, second_axis_shift=second)


PLAIN = dict(plain={}, prefix=dict(grid=[4, 2], head_dim=24, prefix=1))
SEVERAL = dict(plain={}, prefix=dict(grid=[4, 2], head_dim=24, prefix=5))
TOWER = dict(plain={}, frames=dict(grid=[2, 3], frames=2, head_dim=24))


def published():
    axial_convention(
        "rope-vit", ["rope-vit axial"], "x theta^(-k/F), then y theta^(-k/F)",
        ["Heo et al. 2024, arXiv:2403.13298", "naver-ai/rope-vit"],
        order="x_then_y", layout="neighbors", coordinates="index", theta=100.0, cases=PLAIN)
    case = dict(grid=[3, 5], head_dim=16, heads=2, prefix=1, coordinates="index", pairs=channel_pairs("neighbors", 16))
    rates = numbers("rope-vit-mixed frequencies", 2, 8, 2)
    small = dict(grid=[4, 2], head_dim=12, heads=3, coordinates="index", pairs=channel_pairs("neighbors", 12))
    convention(
        "rope-vit-mixed", ["rope-vit mixed"], "x f_x[h, j] + y f_y[h, j], learned for every layer, head and pair",
        ["Heo et al. 2024, arXiv:2403.13298", "naver-ai/rope-vit"],
        dict(plain=small | dict(normal_form=numbers("rope-vit-mixed small", 3, 6, 2)), prefix=case | dict(normal_form=rates)),
        coordinates="index", axis_order="x_then_y", layout="neighbors")
    axial_convention(
        "eva02", ["EVA-02", "timm SBB"], "p = i/G * 16; p_y theta^(-k/F), then p_x theta^(-k/F)",
        ["Fang et al. 2023, arXiv:2303.11331", "baaivision/EVA", "timm"],
        order="y_then_x", layout="neighbors", coordinates="scaled_to_reference", theta=1e4,
        cases=dict(plain=dict(reference=[16, 16]), prefix=dict(grid=[4, 2], head_dim=24, prefix=4, reference=[16, 16])))
    axial_convention(
        "perception-encoder", ["Perception Encoder (Meta)"],
        "(x + 1) theta^(-k/F), then (y + 1) theta^(-k/F); without a class token x and y",
        ["Bolya et al. 2025, arXiv:2504.13181", "facebookresearch/perception_models"],
        order="x_then_y", layout="neighbors", coordinates="index", theta=1e4,
        cases=dict(plain=dict(prefix=1, offset=1.0), no_class=dict(grid=[4, 2], head_dim=24)))
    axial_convention(
        "perception-encoder-timm", ["Perception Encoder (timm)"],
        "p = (i + 1)/G * G_native, without a class token i/G * G_native; p_x theta^(-k/F), then p_y theta^(-k/F)", ["timm"],
        order="x_then_y", layout="neighbors", coordinates="scaled_to_reference", theta=1e4,
        cases=dict(plain=dict(prefix=1, offset=1.0, reference=[24, 24]),
                   no_class=dict(grid=[4, 2], head_dim=24, reference=[32, 32])))
    axial_convention(
        "dinov3", ["DINOv3", "Sapiens2"], "p = 2 (i + 0.5)/G - 1; 2 pi p_y theta^(-k/F), then 2 pi p_x theta^(-k/F)",
        ["Simeoni et al. 2025, arXiv:2508.10104", "facebookresearch/dinov3"],
        order="y_then_x", layout="halves", coordinates="centered", theta=100.0, scale=2 * math.pi, cases=SEVERAL)
    axial_convention(
        "sam2", ["SAM 2"], "x theta^(-k/F), then y theta^(-k/F); the keys of object pointers, at the end, are not rotated",
        ["Ravi et al. 2024, arXiv:2408.00714", "facebookresearch/sam2"],
        order="x_then_y", layout="neighbors", coordinates="index", theta=1e4,
        cases=dict(plain={}, pointers=dict(grid=[2, 3], head_dim=24, frames=2, suffix=2)))
    axial_convention(
        "sam3", ["SAM 3, blocks without windows"], "p = i/G * window; p_x theta^(-k/F), then p_y theta^(-k/F)",
        ["transformers, Sam3ViTModel"],
        order="x_then_y", layout="neighbors", coordinates="scaled_to_reference", theta=1e4,
        cases=dict(plain=dict(grid=[4, 6], reference=[2, 2]), wide=dict(grid=[3, 6], head_dim=24, reference=[3, 3])))
    axial_convention(
        "sam3-windows", ["SAM 3, blocks with windows"],
        "p = i mod window, counted from the corner of the window; p_x theta^(-k/F), then p_y theta^(-k/F)",
        ["transformers, Sam3ViTModel"],
        order="x_then_y", layout="neighbors", coordinates="index", theta=1e4,
        cases=dict(plain=dict(grid=[4, 6], window=2, from_corner=True),
                   wide=dict(grid=[3, 6], head_dim=24, window=3, from_corner=True)))
    axial_convention(
        "qwen2-vl", ["Qwen2-VL", "Qwen2.5-VL", "Qwen3-VL", "Qwen3.5", "GLM-4V", "GLM-OCR", "GLM-5.3", "PaddleOCR-VL", "VideoLLaMA 3",
                     "DeepSeek ViT", "ERNIE-4.5-VL", "EXAONE-4.5"],
        "y theta^(-k/F), then x theta^(-k/F)", ["Wang et al. 2024, arXiv:2409.12191", "transformers"],
        order="y_then_x", layout="halves", coordinates="index", theta=1e4,
        cases=TOWER | dict(windows=dict(grid=[4, 5], window=3), merge=dict(grid=[2, 6], merge=2)))
    axial_convention(
        "mlcd", ["MLCD", "RICE"], "y theta^(-k/F), then x theta^(-k/F); the class token by P learned angles",
        ["An et al. 2024, arXiv:2407.17331", "transformers"],
        order="y_then_x", layout="halves", coordinates="index", theta=1e4,
        cases=dict(plain=dict(prefix=1, class_angles=numbers("mlcd class angles", 8)),
                   small=dict(grid=[4, 2], head_dim=24, prefix=1, class_angles=numbers("mlcd class angles 24", 12))))
    for name, family, layout in (("pixtral", "Pixtral and Mistral 3 (transformers' layout)", "halves"),
                                 ("mistral", "Pixtral and Mistral 3 (Mistral's own layout)", "neighbors")):
        axial_convention(
            name, [family], "y theta^(-4k/d), then x theta^(-(4k + 2)/d)", ["Agrawal et al. 2024, arXiv:2410.07073", "transformers"],
            order="y_then_x", layout=layout, coordinates="index", theta=1e4, second=0.5, cases=TOWER)
    axial_convention(
        "moonvit", ["MoonViT (Kimi-VL, Kimi K2.5)"], "x theta^(-k/F) and y theta^(-k/F) in turn",
        ["Kimi Team 2025, arXiv:2504.07491", "transformers"],
        order="x_then_y", layout="alternating", coordinates="index", theta=1e4, cases=TOWER)
    axial_convention(
        "croco", ["CroCo v2", "DUSt3R", "MASt3R", "VGGT", "Depth Anything 3"],
        "y theta^(-k/F) on the first half of the head, x theta^(-k/F) on the second; VGGT and Depth Anything 3 count from 1",
        ["Weinzaepfel et al. 2023, arXiv:2211.10408", "naver/croco", "facebookresearch/vggt"],
        order="y_then_x", layout="halves_by_axis", coordinates="index", theta=100.0,
        cases=dict(plain={}, offset=dict(grid=[4, 2], head_dim=24, prefix=5, offset=1.0)))
    axial_convention(
        "gemma4", ["Gemma 4"], "x theta^(-k/F) on the first half of the head, y theta^(-k/F) on the second", ["transformers"],
        order="x_then_y", layout="halves_by_axis", coordinates="index", theta=100.0, cases=TOWER)
    axial_convention(
        "llama4", ["Llama 4"], "(x + 1) theta^(-k/F), then (y + 1) theta^(-k/F); the class token is last", ["transformers"],
        order="x_then_y", layout="neighbors", coordinates="index", theta=1e4,
        cases=dict(plain=dict(offset=1.0, suffix=1), small=dict(grid=[4, 2], head_dim=24, offset=1.0, suffix=1)))


def volumes():
    """Encodings of time, row and column. e = 2 floor(floor(d / 3) / 2) channels of each axis."""

    def rates(d, axes, per_pair):
        e = 2 * (d // 3 // 2)
        steps = ladder(e // 2, 1e4)
        found = []
        for axis in axes:  # index into (x, y, t)
            for i in range(e // 2 if per_pair else e):
                found.append([steps[i % (e // 2)] if a == axis else 0.0 for a in range(3)])
        return found + [[0.0] * 3] * ((d // 2 if per_pair else d) - len(found))

    tyx = (2, 1, 0)
    convention(
        "vjepa2", ["V-JEPA 2"],
        "e channels of t, y and x each; channel i of an axis has the angle p theta^(-2 (i mod e/2)/e), so the two channels of a "
        "pair have different angles: not a rotation", ["Assran et al. 2025, arXiv:2506.09985", "facebookresearch/vjepa2"],
        dict(clip=dict(grid=[2, 3], frames=2, axes=3, head_dim=20, coordinates="index", angles_per="channel",
                       normal_form=rates(20, tyx, False), pairs=channel_pairs("neighbors", 20)),
             image=dict(grid=[3, 5], axes=3, head_dim=16, coordinates="index", angles_per="channel",
                        normal_form=rates(16, tyx, False), pairs=channel_pairs("neighbors", 16))),
        coordinates="index", axis_order="t_then_y_then_x", layout="neighbors", theta=1e4)
    convention(
        "vjepa2.1", ["V-JEPA 2.1"],
        "as V-JEPA 2 with one angle per pair, p = i (g - 1)/(G - 1) for rows and columns, g = 16 (patches of 16) or 18 (of 14); "
        "registers are last",
        ["facebookresearch/vjepa2, app/vjepa_2_1"],
        dict(clip=dict(grid=[2, 3], frames=2, axes=3, head_dim=20, coordinates="corners", reference=[16, 16],
                       normal_form=rates(20, tyx, True), pairs=channel_pairs("neighbors", 20)),
             registers=dict(grid=[3, 5], axes=3, head_dim=16, suffix=2, coordinates="corners", reference=[18, 18],
                            normal_form=rates(16, tyx, True), pairs=channel_pairs("neighbors", 16))),
        coordinates="corners", axis_order="t_then_y_then_x", layout="neighbors", theta=1e4)
    e = 2 * (20 // 3 // 2)
    convention(
        "minimax-m3", ["MiniMax-M3"], "e channels of t, y and x each, pairs (j, j + 3e/2), the other channels are not rotated",
        ["transformers"],
        dict(clip=dict(grid=[2, 3], frames=2, axes=3, head_dim=20, coordinates="index", normal_form=rates(20, tyx, True)[:3 * e // 2],
                       pairs=channel_pairs("halves", 20, 3 * e))),
        coordinates="index", axis_order="t_then_y_then_x", layout="halves", theta=1e4)
    steps = ladder(8, 1e4)
    convention(
        "timm-mrope", ["timm's RotaryEmbeddingMRope (no published weights)"],
        "pair j: t, y, x in turn, theta^(-2j/d); t = 0 for images", ["timm"],
        dict(image=dict(grid=[3, 5], axes=3, head_dim=16, coordinates="index", pairs=channel_pairs("halves", 16),
                        normal_form=[[steps[j] if tyx[j % 3] == a else 0.0 for a in range(3)] for j in range(8)])),
        coordinates="index", axis_order="t_then_y_then_x", layout="halves", theta=1e4)


def directions():
    """Encodings with both axes in every angle, from formulas."""
    K, d = 4, 16
    steps = ladder(d // 4, 1e4)
    rates = []
    for k in range(K):
        for j in range(d // 2 // K):  # two neighboring frequencies, then those K further
            w = steps[2 * (k % (K // 2)) + j // 2 * K + j % 2]
            rates.append([w * math.cos(k * math.pi / K), w * math.sin(k * math.pi / K)])
    convention(
        "spiral", ["Spiral RoPE (by the abstract of the paper, and the README and frequencies of its code)"],
        "(x cos(k pi/K) + y sin(k pi/K)) theta^(-4m/d), K directions; perpendicular ones share frequencies, the others have "
        "different ones", ["Liu et al. 2026, arXiv:2602.03227, of which the abstract was read, not the paper's own formula",
                           "haoyuliu00's code: the directions of its README, frequencies and groups of its source"],
        dict(plain=dict(grid=[3, 5], head_dim=d, coordinates="index", normal_form=rates, pairs=channel_pairs("neighbors", d))),
        coordinates="index", layout="neighbors", theta=1e4, directions=K)

    F, H, low, high = 8, 2, 0.2, 20.0
    magnitudes = [low * math.pow(high / low, f / (F - 1)) for f in range(F)]
    golden = math.pi * (math.sqrt(5) - 1) / 2
    rates = [[[magnitudes[f] * math.cos((h * F + f) * golden), magnitudes[f] * math.sin((h * F + f) * golden)]
              for f in range(F)] for h in range(H)]
    convention(
        "golden-gate", ["golden gate RoPE, the form for images (no published weights)"],
        "w_f (x cos(n g) + y sin(n g)), g = pi (sqrt 5 - 1)/2, n = h P + f, w_f from low to high in geometric steps; x in sqrt(W/H) [-1, 1], "
        "y in sqrt(H/W) [-1, 1]",
        ["Xiong 2025, jerryxio.ng/posts/nd-rope"],
        dict(plain=dict(grid=[3, 5], head_dim=16, heads=H, coordinates="linspace", normal_form=rates, low=low, high=high,
                        pairs=channel_pairs("halves", 16))),
        coordinates="linspace", layout="halves")
    plastic = 2.0
    for _ in range(100):  # the root of g^3 = g + 1
        plastic = (1 + plastic) ** (1 / 3)
    low, high = 1.0, 10000.0
    rates = []
    for h in range(H):
        rates.append([])
        for f in range(F):
            n = h * F + f + 1
            row, column = (inverse_erf(2 * math.fmod(n * plastic ** -a, 1.0) - 1) for a in (1, 2))
            w = low * math.pow(high / low, f / (F - 1)) / math.hypot(row, column)
            rates[h].append([w * column, w * row])
    convention(
        "golden-gate-nd", ["golden gate RoPE, the form for any number of axes (vit-pytorch's ViTND; no published weights)"],
        "w_f (u . p), u = erfinv(2 frac(n g^-a) - 1) of unit length, a = 1 for y and 2 for x, g^3 = g + 1, n = h P + f + 1",
        ["Xiong 2025, jerryxio.ng/posts/nd-rope", "lucidrains/vit-pytorch, vit_nd_rotary.py"],
        dict(plain=dict(grid=[3, 5], head_dim=16, heads=H, coordinates="index", normal_form=rates, low=low, high=high,
                        pairs=channel_pairs("halves", 16))),
        coordinates="index", layout="halves")
    n = 12
    skew = numbers("string skew", n, n)
    skew = [[(skew[i][j] - skew[j][i]) / 8 for j in range(n)] for i in range(n)]
    convention(
        "string", ["Cayley-STRING"],
        "R(x, y) = B^T rotate(x f_x[j] + y f_y[j]) B, B = transpose of (I - S)(I + S)^-1, S skew-symmetric, f and S learned",
        ["Schenck et al. 2025, arXiv:2502.02562"],
        dict(plain=dict(grid=[3, 5], head_dim=n, coordinates="index", normal_form=numbers("string frequencies", n // 2, 2),
                        pairs=channel_pairs("neighbors", n), basis=transposed(cayley(skew)))),
        coordinates="index", layout="neighbors")
    commuting()


def commuting():
    """ComRoPE: R = exp(x A_x + y A_y) with commuting skew-symmetric A, block-diagonal. Computed from eigenplanes, compared with the
    exponential of the matrices."""
    d, b = 8, 4
    B = [[0.0] * d for _ in range(d)]
    for block in range(d // b):
        skew = numbers(f"comrope skew {block}", b, b)
        part = cayley([[(skew[i][j] - skew[j][i]) / 8 for j in range(b)] for i in range(b)])
        for i in range(b):
            B[block * b + i][block * b:block * b + b] = part[i]
    linear, each = numbers("comrope base", d // 2), numbers("comrope axes", d // b, 2)
    rates = dict(linearly_dependent=[[linear[j] * each[2 * j // b][0], linear[j] * each[2 * j // b][1]] for j in range(d // 2)],
                 axial_partition=[[linear[j] if 2 * j // b % 2 == 0 else 0.0, linear[j] if 2 * j // b % 2 else 0.0] for j in range(d // 2)])
    cases = {}
    for title, weights in rates.items():
        cases[title] = dict(grid=[3, 5], head_dim=d, coordinates="fraction", normal_form=weights, basis=B,
                            pairs=channel_pairs("neighbors", d))
        x, y, probe = 0.3, -0.7, numbers("comrope probe", d)
        planes = [[0.0] * d for _ in range(d)]
        for j, (w_x, w_y) in enumerate(weights):
            planes[2 * j + 1][2 * j] = x * w_x + y * w_y
            planes[2 * j][2 * j + 1] = -planes[2 * j + 1][2 * j]
        generator = product(product(transposed(B), planes), B)  # x A_x + y A_y
        by_series = applied(exponential(generator), probe)
        by_planes = applied(transposed(B), rotate(applied(B, probe), [x * w[0] + y * w[1] for w in weights],
                                                  channel_pairs("neighbors", d)))
        assert max(abs(a - c) for a, c in zip(by_series, by_planes)) < 1e-13
    convention(
        "comrope", ["ComRoPE-LD and ComRoPE-AP"],
        "R = exp(x A_x + y A_y), A skew-symmetric in blocks: multiples of one matrix (LD), or each block of one axis (AP); B: eigenplanes",
        ["Yu et al. 2025, arXiv:2506.03737", "Longin-Yu/ComRoPE"], cases, coordinates="fraction", layout="neighbors")


def lines_and_bands():
    for name, formula, layout, steps in (
            ("rope-1d", "t theta^(-2k/d), as a product of complex numbers (x_2k + i x_(2k+1)) e^(i angle)", "neighbors", ladder(8, 1e4)),
            ("rope-1d-exp-pi", "t exp(-pi 2k/d), half-split", "halves", [math.exp(-math.pi * k / 8) for k in range(8)])):
        convention(name, ["one-dimensional"], formula, ["Su et al. 2021, arXiv:2104.09864"],
                   dict(plain=dict(length=7, head_dim=16, prefix=1, normal_form=[[w] for w in steps], pairs=channel_pairs(layout, 16))),
                   coordinates="index", layout=layout)
    bands = [math.pi * (1 + (5 - 1) * k / 3) for k in range(4)]
    convention("rvt", ["RvT and Perceiver's bands (vit-pytorch; no published weights)"],
               "p in linspace(-1, 1, G); y w_k, then x w_k, w = pi linspace(1, max/2, F), max = 10", ["lucidrains/vit-pytorch, rvt.py"],
               dict(plain=dict(grid=[3, 5], head_dim=16, prefix=1, coordinates="linspace", normal_form=axial("y_then_x", bands, bands),
                               pairs=channel_pairs("neighbors", 16))),
               coordinates="linspace", axis_order="y_then_x", layout="neighbors", max_frequency=10.0)


def added_rows():
    """Encodings that are no rotations: {name: (facts, tensors)}."""
    def line(length, dim):
        return [[(math.sin, math.cos)[c % 2](t * math.pow(1e4, -(c // 2) * 2 / dim)) for c in range(dim)] for t in range(length)]

    rows, columns, dim = 3, 5, 16
    of_column, of_row = line(columns, dim // 2), line(rows, dim // 2)
    grid = [of_column[c] + of_row[r] for r in range(rows) for c in range(columns)]
    steps = [math.pow(1e4, -k / (dim // 4 - 1)) for k in range(dim // 4)]
    quarters = [[f(at * w) for at in (c, r) for f in (math.sin, math.cos) for w in steps] for r in range(rows) for c in range(columns)]
    sinusoidal = dict(name="sinusoidal", families=["fixed rows on lines and grids", "big_vision and SimpleViT (quarters)"],
                      formula="channel 2i sin(t theta^(-2i/D)), channel 2i + 1 the cosine; grid: column, then row; quarters: sin x, cos x, sin y, "
                              "cos y with theta^(-k/(F - 1))",
                      source=["Vaswani et al. 2017, arXiv:1706.03762", "google-research/big_vision"], theta=1e4, grid=[rows, columns], dim=dim)
    rows_of = {"line": line(7, dim), "grid": grid, "quarters": quarters}

    L, d, R, H = 6, 8, 2, 2
    keys, values = (numbers(f"shaw {which}", 2 * R + 1, d) for which in ("keys", "values"))
    q, k, v = (numbers(f"shaw {which}", H, L, d) for which in "qkv")
    index = [[max(-R, min(R, j - i)) + R for j in range(L)] for i in range(L)]
    scores = [[[math.fsum(a * (b + c) for a, b, c in zip(q[h][i], k[h][j], keys[index[i][j]])) / math.sqrt(d) for j in range(L)]
               for i in range(L)] for h in range(H)]
    weights = [[[math.exp(s - max(row)) for s in row] for row in head] for head in scores]
    weights = [[[w / math.fsum(row) for w in row] for row in head] for head in weights]
    out = [[[math.fsum(weights[h][i][j] * (v[h][j][c] + values[index[i][j]][c]) for j in range(L)) for c in range(d)]
            for i in range(L)] for h in range(H)]
    nezha = [[(math.sin, math.cos)[c % 2](r * math.pow(1e4, -(c // 2) * 2 / d)) for c in range(d)] for r in range(2 * R + 1)]
    shaw = dict(name="shaw", families=["clipped relative distances", "NEZHA's fixed table"],
                formula="score_ij = q_i . (k_j + a^K_r) / sqrt(d), out_i = sum_j p_ij (v_j + a^V_r), r = clip(j - i, -R, R) + R",
                source=["Shaw et al. 2018, arXiv:1803.02155", "Wei et al. 2019, arXiv:1909.00204"], max_distance=R, head_dim=d, heads=H)
    tensors = {"index": index, "keys": keys, "values": values, "q": q, "k": k, "v": v, "scores": scores, "probabilities": weights,
               "out": out, "nezha": nezha}
    return {"sinusoidal": (sinusoidal, rows_of), "shaw": (shaw, tensors)}


def everything():
    """{name: (facts, tensors)} of every convention."""
    CONVENTIONS.clear()
    published()
    volumes()
    directions()
    lines_and_bands()
    found = {}
    for name, facts in CONVENTIONS.items():
        tensors = {}
        for title, case in facts["cases"].items():
            tensors |= compute(name, case, title)
        found[name] = facts, tensors
    return found | added_rows()


def as_json(facts):
    """A line per fact and per case."""
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in facts.items() if key != "cases"]
    if "cases" in facts:
        cases = ",\n".join(f"  {json.dumps(title)}: {json.dumps(case)}" for title, case in facts["cases"].items())
        lines.append(f' "cases": {{\n{cases}\n }}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def difference(stored, tensors):
    """What differs between a stored file and the formulas, or an empty string. Another libm may differ by a few units in the last place."""
    if sorted(stored) != sorted(tensors):
        return f"tensors {sorted(set(stored) ^ set(tensors))} are in one of the two only"
    for name, values in tensors.items():
        shape, flat = stored[name]
        if shape != shape_of(values):
            return f"{name} has shape {shape}, expected {shape_of(values)}"
        expected = flatten(values)
        largest = max(map(abs, expected), default=0.0)
        worst = max((abs(a - b) for a, b in zip(flat, expected)), default=0.0)
        if worst > 1e-14 * max(1.0, largest):
            return f"{name} differs by {worst:.3g}"
    return ""


def page_with_table(found):
    """README.md with the table of all files."""
    rows = "".join(f"| {name} | {', '.join(facts['families'])} | {facts['formula']} |\n" for name, (facts, _) in found.items())
    page = (HERE / "README.md").read_text()
    begin, end = "<!-- table: begin -->\n", "<!-- table: end -->"
    return page[:page.index(begin) + len(begin)] + rows + page[page.index(end):]


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    wrong, found = [], everything()
    for name, (facts, tensors) in found.items():
        text = as_json(facts)
        files = HERE / f"{name}.json", HERE / f"{name}.safetensors"
        if check:
            said = "is missing" if not all(file.exists() for file in files) else (
                difference(read_safetensors(files[1]), tensors) or ("its JSON differs" if files[0].read_text() != text else ""))
            wrong += [f"{name}: {said}"] if said else []
        else:
            files[0].write_text(text)
            write_safetensors(files[1], tensors)
    page = page_with_table(found)
    if not check:
        (HERE / "README.md").write_text(page)
    if check:
        wrong += ["README.md: its table differs"] if (HERE / "README.md").read_text() != page else []
        wrong += [f"{file.name}: no convention of that name" for file in HERE.glob("*.safetensors") if file.stem not in found]
    print("\n".join(wrong) if wrong else f"{len(found)} conventions, {sum(f.stat().st_size for f in HERE.glob('*.safetensors'))} bytes")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
