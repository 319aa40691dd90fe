"""Draws data/figures/speed.svg from the table "Overview" of apps/bench/measurements.md.  Run: python3 data/figures/make_speed.py

A group of bars for each model of SHOWN, as long as the engine's time divided by that of vit. Only the standard library is used.
"""
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
FONT = "font-family='DejaVu Sans, Verdana, sans-serif'"
INK, SOFT = "#1d2733", "#5d6b7a"
COLORS = {"vit": "#2f6f4f", "ONNX Runtime": "#7aa6d8", "OpenVINO": "#b59ad6", "torch": "#e6a15c", "OpenCV 5": "#d98a94", "llama.cpp": "#9db37c"}
LEFT, SCALE, BAR, GAP = 280, 150, 13, 16
SHOWN = ("axial RoPE tiny, 224, float32", "axial RoPE base, 224, float32", "axial RoPE base, 224, int8", "tower of Qwen2.5-VL-3B, 504, bfloat16")


def table():
    """The rows of the table: model and type, and engine to milliseconds (engines that did not run are left out)."""
    lines = [[cell.strip() for cell in line.strip("|\n ").split("|")]
             for line in (ROOT / "apps/bench/measurements.md").read_text(encoding="utf-8").split("## Overview")[1].split("\n## ")[0].split("\n")
             if line.startswith("|")]
    header, rows = lines[0], lines[2:]
    for row in rows:
        cells = dict(zip(header, row))
        for engine, time in re.findall(r"(\D\S*(?: \d)?) ([0-9.,]+?)(?:, |$)", cells.pop("others")):
            cells[engine] = time
        yield (f"{cells['model']}, {cells['type']}",
               {engine: float(cells[engine].replace(",", "")) for engine in COLORS if re.fullmatch(r"[0-9.,]+", cells.get(engine, "-"))})


def drawing():
    parts, y = [], 54
    for model, times in table():
        if model not in SHOWN:
            continue
        top = y
        for engine, time in times.items():
            ratio = time / times["vit"]
            weight = "bold" if engine == "vit" else "normal"
            parts.append(f"<rect x='{LEFT}' y='{y}' width='{SCALE * ratio:.1f}' height='{BAR - 2}' fill='{COLORS[engine]}'/>")
            parts.append(f"<text x='{LEFT + SCALE * ratio + 6:.1f}' y='{y + BAR - 4}' {FONT} font-size='10' fill='{INK}' "
                         f"font-weight='{weight}'>{time:g} ms{'' if engine == 'vit' else f' ({ratio:.2f})'}</text>")
            y += BAR
        parts.append(f"<text x='{LEFT - 10}' y='{(top + y) / 2 + 3}' text-anchor='end' {FONT} font-size='12' fill='{INK}'>{model}</text>")
        y += GAP
    x = LEFT
    for engine, color in COLORS.items():
        parts.append(f"<rect x='{x}' y='24' width='11' height='11' fill='{color}'/>")
        parts.append(f"<text x='{x + 16}' y='34' {FONT} font-size='12' fill='{INK}'>{engine}</text>")
        x += 40 + 8 * len(engine)
    parts.append(f"<text x='20' y='34' {FONT} font-size='12' fill='{SOFT}'>time, vit = 1</text>")
    return "\n".join([f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 940 {y}' role='img' "
                      "aria-label='Milliseconds per image of vit and other engines'>",
                      f"<rect width='940' height='{y}' fill='white'/>", *parts, "</svg>"]) + "\n"


if __name__ == "__main__":
    (ROOT / "data/figures/speed.svg").write_text(drawing(), encoding="utf-8")
