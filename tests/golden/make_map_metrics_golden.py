#!/usr/bin/env python3
"""Measures of random maps, by plain numpy: data/golden/dense/metrics.safetensors.

    python3 tests/golden/make_map_metrics_golden.py
"""
import pathlib

import numpy as np
from safetensors.numpy import save_file

OUT = pathlib.Path(__file__).resolve().parents[2] / "data" / "golden" / "dense" / "metrics.safetensors"
LOW, HIGH, CLASSES = 0.5, 8.0, 5


def depth_measures(found, truth, alignment):
    valid = np.isfinite(truth) & (truth >= LOW) & (truth <= HIGH)
    p, t = found[valid].astype(np.float64), truth[valid].astype(np.float64)
    if alignment == "median":
        p = p * np.median(t) / np.median(p)
    if alignment in ("depth", "inverse"):
        target = t if alignment == "depth" else 1.0 / t
        factor, offset = np.linalg.lstsq(np.stack([p, np.ones_like(p)], 1), target, rcond=None)[0]
        p = factor * p + offset
        if alignment == "inverse":
            p = np.where(p > 0, 1.0 / np.where(p > 0, p, 1.0), np.inf)
    p = np.clip(p, LOW, HIGH)
    return [np.mean(np.abs(p - t) / t), np.mean(np.maximum(p / t, t / p) < 1.25), np.sqrt(np.mean((p - t) ** 2))]


def class_measures(pairs):
    confusion = np.zeros((CLASSES, CLASSES + 1))
    for found, truth in pairs:
        for t, f in zip(truth.ravel(), found.ravel()):
            if 0 <= t < CLASSES:
                confusion[t, f if 0 <= f < CLASSES else CLASSES] += 1
    union = confusion.sum(1) + confusion[:, :CLASSES].sum(0) - np.diag(confusion[:, :CLASSES])
    iou = np.diag(confusion[:, :CLASSES])[union > 0] / union[union > 0]
    return [iou.mean(), np.trace(confusion[:, :CLASSES]) / confusion.sum()]


def panoptic_measures(images):
    iou, matched, extra, missed = (np.zeros(CLASSES) for _ in range(4))
    for found, segments, truth, truths in images:
        index = {row[0]: row[1] for row in segments}
        seen = set()
        for tid, tclass, crowd in truths:
            hit = False
            for fid, fclass, _ in segments:
                inter = ((found == fid) & (truth == tid)).sum()
                union = (found == fid).sum() + (truth == tid).sum() - inter - ((found == fid) & (truth == -1)).sum()
                if not crowd and fclass == tclass and inter > 0.5 * union:
                    iou[tclass] += inter / union
                    matched[tclass] += 1
                    seen.add(fid)
                    hit = True
            if not crowd and not hit and (truth == tid).any():
                missed[tclass] += 1
        for fid, fclass in index.items():
            if fid in seen or not (found == fid).any():
                continue
            ignored = ((found == fid) & (truth == -1)).sum()
            for tid, tclass, crowd in truths:
                if crowd and tclass == fclass:
                    ignored += ((found == fid) & (truth == tid)).sum()
            if ignored <= 0.5 * (found == fid).sum():
                extra[fclass] += 1
    some = matched + extra + missed > 0
    iou, matched, extra, missed = iou[some], matched[some], extra[some], missed[some]
    every = matched + 0.5 * extra + 0.5 * missed
    sq = np.where(matched > 0, iou / np.maximum(matched, 1), 0.0)
    return [np.mean(iou / every), sq.mean(), np.mean(matched / every)]


def blocks(random, ids, void):
    """A map of 24 x 20 whose squares of 4 x 4 have one id each."""
    out = np.repeat(np.repeat(random.choice(ids, (6, 5)), 4, 0), 4, 1).astype(np.int32)
    out[random.random(out.shape) < void] = -1
    return out


def main():
    random = np.random.default_rng(5)
    truth = (0.2 + 10.0 * random.random((12, 9))).astype(np.float32)
    truth[random.random(truth.shape) < 0.1] = np.nan
    depth = np.nan_to_num(truth, nan=1.0) * (0.8 + 0.4 * random.random(truth.shape)).astype(np.float32)
    tensors = {"depth": depth, "truth": truth}
    tensors["depth_measures"] = np.array([depth_measures(depth, truth, a) for a in ("none", "median", "depth", "inverse")])
    pairs, images = [], []
    for i in range(2):
        classes = blocks(random, np.arange(4), 0.05)
        found = np.where(random.random(classes.shape) < 0.3, blocks(random, np.arange(5), 0.02), classes).astype(np.int32)
        pairs.append((found, classes))
        ids = blocks(random, np.arange(6), 0.03)
        segments = np.stack([np.arange(6), random.integers(0, CLASSES, 6), np.zeros(6)], 1).astype(np.int32)
        guess = np.where(random.random(ids.shape) < 0.25, blocks(random, np.arange(6), 0.1), ids).astype(np.int32)
        guesses = segments.copy()
        guesses[random.integers(0, 6), 1] = random.integers(0, CLASSES)
        segments[random.integers(0, 6), 2] = 1
        images.append((guess, guesses, ids, segments))
        tensors |= {f"{i}.classes": found, f"{i}.classes_truth": classes, f"{i}.ids": guess, f"{i}.segments": guesses,
                    f"{i}.ids_truth": ids, f"{i}.segments_truth": segments}
    tensors["class_measures"] = np.array(class_measures(pairs) + panoptic_measures(images))
    save_file({name: np.ascontiguousarray(value) for name, value in tensors.items()}, OUT)


if __name__ == "__main__":
    main()
