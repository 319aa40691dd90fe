"""`vit fit` and the heads that it makes, compared with scikit-learn and numpy on the same features.

    python apps/bench/compare/fit.py --vit build/release/vit --train TRAIN --test TEST [--model MODEL] [--features NAME]

TRAIN and TEST hold one folder of images for each label. Prints one JSON object; exits 1 if the strength chosen by
cross-validation differs, a coefficient is off by more than 1e-3 of the largest, an accuracy by more than 0.2 points, or
one image has another neighbor's label. scikit-learn's optimum is found with a tolerance of 1e-10, its choice of
strength with tol=1e-6 (its default, 1e-4, is printed beside it).
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import warnings

import numpy as np
from safetensors.numpy import load_file
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV
from sklearn.model_selection import StratifiedKFold
from sklearn.neighbors import NearestCentroid
from sklearn.preprocessing import StandardScaler

warnings.filterwarnings("ignore", category=FutureWarning)
METHODS = ("logistic", "knn", "centroid")


def vit(options, command, *arguments):
    model = ["--model", options.model] if options.model else []
    run = subprocess.run([options.vit, command, "--quiet", *model, *map(str, arguments)], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(run.stderr)
    return run.stdout


def features_of(options, folder, scratch):
    """Features (n, C) in double, labels and files, in the order in which `vit fit` reads a folder."""
    path = scratch / "features.npz"
    vit(options, "embed", folder, "--features", options.features, "--output", path)
    arrays = np.load(path)
    return arrays[options.features].astype(np.float64), [pathlib.Path(f).parent.name for f in arrays["files"]]


def choose_strength(x, y, tolerance):
    model = LogisticRegressionCV(Cs=10, cv=StratifiedKFold(5), scoring="accuracy", tol=tolerance, max_iter=100000,
                                 use_legacy_attributes=True).fit(x, y)
    scores = next(iter(model.scores_.values())).reshape(5, -1).mean(axis=0)
    return float(model.C_[0]), float(scores.max())


def neighbor_labels(train, classes, test, k, num_classes):
    """DINO's k-NN in float32 vectors of length 1 and double products."""
    unit = [(v / np.linalg.norm(v, axis=1, keepdims=True)).astype(np.float32).astype(np.float64) for v in (train, test)]
    cosines = unit[1] @ unit[0].T
    nearest = np.argsort(-cosines, axis=1, kind="stable")[:, :k]
    votes = np.zeros((len(test), num_classes))
    for image, row in enumerate(nearest):
        for neighbor in row:
            votes[image, classes[neighbor]] += np.exp(cosines[image, neighbor] / 0.07)
    return votes.argmax(axis=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--vit", default="build/release/vit")
    parser.add_argument("--train", required=True)
    parser.add_argument("--test", required=True)
    parser.add_argument("--model", default="")
    parser.add_argument("--features", default="pooled")
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        scratch = pathlib.Path(folder)
        x, labels = features_of(options, options.train, scratch)
        x_test, test_labels = features_of(options, options.test, scratch)
        names, y = np.unique(labels, return_inverse=True)
        y_test = np.searchsorted(names, test_labels)
        scaler = StandardScaler().fit(x)
        z, z_test = scaler.transform(x), scaler.transform(x_test)

        fitted, predicted = {}, {}
        for method in METHODS:
            head = scratch / f"{method}.safetensors"
            fitted[method] = json.loads(vit(options, "fit", options.train, "--features", options.features, "--method",
                                            method, "--output", head, "--format", "json"))
            lines = vit(options, "classify", options.test, "--classifier", head, "--top", 1, "--format", "json")
            predicted[method] = np.array([json.loads(line)["top"][0]["index"] for line in lines.splitlines()])
        tensors = load_file(scratch / "logistic.safetensors")

    strength, score = choose_strength(z, y, 1e-6)
    default_strength, _ = choose_strength(z, y, 1e-4)
    optimum = LogisticRegression(C=fitted["logistic"]["strength"], tol=1e-10, max_iter=100000).fit(z, y)
    coefficients = tensors["coefficients"]
    if len(names) == 2:
        coefficients = coefficients[1:] - coefficients[:1]
    error = float(np.abs(coefficients - optimum.coef_).max() / np.abs(optimum.coef_).max())
    references = {"logistic": optimum.predict(z_test), "centroid": NearestCentroid().fit(z, y).predict(z_test),
                  "knn": neighbor_labels(x, y, x_test, 20, len(names))}
    accuracy = {m: {"vit": float((predicted[m] == y_test).mean()), "reference": float((references[m] == y_test).mean()),
                    "labels_that_differ": int((predicted[m] != references[m]).sum())} for m in METHODS}
    print(json.dumps({
        "images": len(y), "test_images": len(y_test), "classes": len(names), "features": x.shape[1],
        "strength": {"vit": fitted["logistic"]["strength"], "scikit-learn": strength, "by default": default_strength},
        "cross_validated_top1": {"vit": fitted["logistic"]["cross_validated_top1"], "scikit-learn": score},
        "largest_error_of_coefficients": error, "accuracy": accuracy}, indent=2))
    fine = (np.isclose(fitted["logistic"]["strength"], strength) and error <= 1e-3
            and all(abs(a["vit"] - a["reference"]) <= 0.002 for a in accuracy.values())
            and accuracy["knn"]["labels_that_differ"] == 0)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
