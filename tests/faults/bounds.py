#!/usr/bin/env python3
"""Largest time and memory of the program for hostile inputs of each kind, as a table.

    bounds.py VIT MODEL [WORD]

WORD limits the table to the kinds that contain it.

Each input is small next to what it declares, or as large as its kind may be. A run may succeed or refuse; it may not
end by a signal. Needs Pillow.
"""
import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import zlib

from PIL import Image

Image.MAX_IMAGE_PIXELS = None
SIDE = 13377  # its square is just below the limit of pixels


# The peak of a process begins with that of the one that it was forked from: a small one, not this.
MEASURED_RUN = """
import json, os, subprocess, sys
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
err = process.stderr.read().decode(errors="replace")
_, status, used = os.wait4(process.pid, 0)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, os.waitstatus_to_exitcode(status), err]))
"""


def png(width, height, color=2, interlace=0):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    channels = {0: 1, 2: 3, 6: 4}[color]
    packer = zlib.compressobj(9)
    rows = []
    if interlace:
        for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
            w, h = (width - x0 + dx - 1) // dx, (height - y0 + dy - 1) // dy
            rows.append(packer.compress(bytes((1 + channels * w) * h)))
    else:
        line = bytes(1 + channels * width)
        rows += [packer.compress(line) for _ in range(height)]
    rows.append(packer.flush())
    header = struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, interlace)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"".join(rows)) + chunk(b"IEND", b"")


def saved(form, side, **options):
    out = io.BytesIO()
    Image.new("RGB", (side, side), (9, 200, 30)).save(out, form, **options)
    return out.getvalue()


def safetensors(header):
    return struct.pack("<Q", len(header)) + header


def inputs(folder):
    """Kind, file name, bytes, and the arguments of the run."""
    classify = lambda path: ["classify", path]
    yield "PNG, 179 megapixels of zeros", "a.png", lambda: png(SIDE, SIDE), classify
    yield "PNG, interlaced", "b.png", lambda: png(SIDE, SIDE, interlace=1), classify
    yield "PNG, one row of 2^31 - 1", "c.png", lambda: png(1, 1)[:16] + struct.pack(">II", 0x7FFFFFFF, 1) + png(1, 1)[24:], classify
    yield "JPEG, 179 megapixels", "a.jpg", lambda: saved("JPEG", SIDE), classify
    yield "JPEG, progressive, 179 megapixels", "b.jpg", lambda: saved("JPEG", SIDE, progressive=True), classify
    yield "WebP, lossless, 119 megapixels", "a.webp", lambda: saved("WEBP", 10900, lossless=True), classify
    yield "TIFF, deflate, 179 megapixels", "a.tif", lambda: saved("TIFF", SIDE, compression="tiff_adobe_deflate"), classify
    yield "TIFF, LZW, 179 megapixels", "b.tif", lambda: saved("TIFF", SIDE, compression="tiff_lzw"), classify
    yield "JPEG 2000, 36 megapixels", "a.jp2", lambda: saved("JPEG2000", 6000), classify
    yield "GIF, 179 megapixels", "a.gif", lambda: saved("GIF", SIDE), classify
    yield "PNM, only a header, of 2^31 x 2^31", "a.ppm", lambda: b"P6\n2147483647 2147483647\n255\n", classify
    yield "npy, header of 2^60 floats", "a.npy", lambda: npy((1 << 30, 3, 1 << 14, 1 << 14)), classify
    model = lambda path: ["info", "--model", path]
    yield "safetensors, 100 MB of empty names", "a.safetensors", lambda: safetensors(
        b"{" + b",".join(b'"%d":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}' % i for i in range(1_600_000)) + b"}"), model
    yield "safetensors, 90 MB of brackets", "b.safetensors", lambda: safetensors(b'{"a":' + b"[" * 90_000_000), model
    labels = lambda path: ["classify", "--labels", path, str(folder / "plain.ppm")]
    yield "JSON, 64 MB of numbers", "a.json", lambda: b"[" + b"1," * 32_000_000 + b"1]", labels
    yield "labels, 64 MB of lines", "a.txt", lambda: b"\n" * 64_000_000, labels
    tokens = lambda path: ["tokenize", "--tokenizer", str(pathlib.Path(path).parent), "--text", "a"]
    yield "tokenizer.json, 60 MB of merges", "t/tokenizer.json", lambda: json.dumps(
        {"model": {"type": "BPE", "vocab": {}, "merges": ["a b"] * 6_000_000}}).encode(), tokens


def npy(shape):
    text = str({"descr": "<f4", "fortran_order": False, "shape": shape}).encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def main():
    vit, model = sys.argv[1:3]
    word = sys.argv[3] if len(sys.argv) > 3 else ""
    failed = False
    with tempfile.TemporaryDirectory(prefix="vit-bounds-") as name:
        folder = pathlib.Path(name)
        (folder / "t").mkdir()
        (folder / "plain.ppm").write_bytes(b"P6\n8 8\n255\n" + bytes(192))
        print(f"| {'input':42} | {'bytes':>11} | {'seconds':>7} | {'MiB':>6} | exit |")
        print("|---|---:|---:|---:|---:|")
        for kind, file, make, arguments in inputs(folder):
            if word not in kind:
                continue
            path = folder / file
            data = make()
            path.write_bytes(data)
            command = [vit, *arguments(str(path))]
            if command[1] in ("classify", "embed"):
                command[2:2] = ["--model", model, "--threads", "1"]
            seconds, mib, code, err = json.loads(
                subprocess.run([sys.executable, "-c", MEASURED_RUN, *command], capture_output=True, check=True).stdout)
            print(f"| {kind:42} | {len(data):11} | {seconds:7.2f} | {mib:6.0f} | {code:4} |", flush=True)
            if code not in (0, 1) or (code == 1 and len(err.splitlines()) != 1):
                failed = True
                print(f"  ended badly: {err[-300:]!r}")
            path.unlink()
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
