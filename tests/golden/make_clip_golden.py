#!/usr/bin/env python3
"""Writes a short video, data/golden/clips/squares.mp4: nine frames of a square that moves over a gradient. Needs OpenCV's
Python package.

  python3 tests/golden/make_clip_golden.py data/golden/clips
"""
import sys
from pathlib import Path

import cv2
import numpy as np


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    height, width = 48, 64
    video = cv2.VideoWriter(str(folder / "squares.mp4"), cv2.VideoWriter_fourcc(*"mp4v"), 8, (width, height))
    for i in range(9):
        frame = np.zeros((height, width, 3), np.uint8)
        frame[:, :, 0] = np.linspace(0, 255, width)
        frame[:, :, 1] = np.linspace(255, 0, height)[:, None]
        frame[8 + 3 * i % 24:24 + 3 * i % 24, 5 * i:5 * i + 16] = (20 * i, 40, 255 - 20 * i)
        video.write(frame)
    video.release()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
