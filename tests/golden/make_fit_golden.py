"""Writes data/golden/fit: small matrices of features with the optimum of scikit-learn's LogisticRegression, the choice of
LogisticRegressionCV, StratifiedKFold's folds, NearestCentroid's labels, and DINO's votes of neighbors in numpy.

    python3 tests/golden/make_fit_golden.py

Needs numpy, safetensors and scikit-learn.
"""

import pathlib
import warnings

import numpy as np
from safetensors.numpy import save_file
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler

OUT = pathlib.Path(__file__).resolve().parents[2] / "data/golden/fit"
STRENGTHS = (0.01, 1.0, 1000.0)
warnings.filterwarnings("ignore")

# Images of each class; features; how far the classes lie apart. `rare`: a class with fewer images than folds.
CASES = {"four": ((40, 25, 31, 18), 24, 0.55), "two": ((30, 22), 10, 0.8), "rare": ((20, 12, 3), 8, 0.9)}


def features(counts, width, distance, random):
    """Correlated columns with offsets and scales of many sizes; the last one does not vary. Rows in random order."""
    classes = random.permutation(np.repeat(np.arange(len(counts)), counts))
    mixing = random.normal(size=(width, width))
    centers = distance * random.normal(size=(len(counts), width))
    x = (random.normal(size=(len(classes), width)) + centers[classes]) @ mixing
    x = x * np.exp(random.normal(size=width)) + 3 * random.normal(size=width)
    x[:, -1] = 0.3
    return x.astype(np.float32), classes


def votes(train, classes, queries, k, num_classes):
    unit = [(v / np.linalg.norm(v.astype(np.float64), axis=1, keepdims=True)).astype(np.float32).astype(np.float64)
            for v in (train, queries)]
    cosines = unit[1] @ unit[0].T
    out = np.zeros((len(queries), num_classes))
    for image, row in enumerate(np.argsort(-cosines, axis=1, kind="stable")[:, :k]):
        np.add.at(out[image], classes[row], np.exp(cosines[image, row] / 0.07))
    return out


def main():
    random = np.random.default_rng(29)
    tensors = {}
    for name, (counts, width, distance) in CASES.items():
        x32, y = features(counts, width, distance, random)
        queries = (x32[::3] + x32[1::3][: len(x32[::3])].mean(axis=0) * 0.1).astype(np.float32)
        scaler = StandardScaler().fit(x32.astype(np.float64))
        z, z_queries = scaler.transform(x32.astype(np.float64)), scaler.transform(queries.astype(np.float64))
        case = {"features": x32, "classes": y.astype(np.int32), "queries": queries,
                "mean": scaler.mean_, "scale": scaler.scale_}
        folds = StratifiedKFold(5)
        case["folds"] = np.empty(len(y), np.int32)
        for fold, (_, held_out) in enumerate(folds.split(z, y)):
            case["folds"][held_out] = fold
        chosen = LogisticRegressionCV(Cs=10, cv=folds, scoring="accuracy", tol=1e-8, max_iter=1000000,
                                      use_legacy_attributes=True).fit(z, y)
        scores = next(iter(chosen.scores_.values())).reshape(5, -1).mean(axis=0)
        case["chosen"] = np.array([chosen.C_[0], scores.max()])
        for strength in STRENGTHS:
            model = LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-14, max_iter=1000).fit(z, y)
            case[f"optimum.{strength:g}"] = np.hstack([model.coef_, model.intercept_[:, None]])
        case["centroid_labels"] = NearestCentroid().fit(z, y).predict(z_queries).astype(np.int32)
        case["votes"] = votes(x32, y, queries, 20, len(counts))
        tensors.update({f"{name}.{key}": np.ascontiguousarray(value) for key, value in case.items()})
    OUT.mkdir(parents=True, exist_ok=True)
    save_file(tensors, OUT / "fit.safetensors")


if __name__ == "__main__":
    main()
