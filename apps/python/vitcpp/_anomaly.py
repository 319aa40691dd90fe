"""Anomalies without training: the patch features of good images as a bank, and how far other images are from it."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import ImageLike, Inputs, blocks_of, images_of, is_single, truth
from ._model import Model
from ._results import Results

_SCORES = {"top-percent": 0, "maximum": 1, "reweighted": 2}


class AnomalyResult(NamedTuple):
    """What one image gave."""

    score: float
    anomalous: bool | None  # whether the score is above the threshold; None without one
    distances: npt.NDArray[np.float32]  # (h, w): 1 - cosine of each patch to the nearest good one


class AnomalyModel:
    """A bank of good patches. Make one with fit() or load()."""

    def __init__(self, model: Model, handle: lib.Handle) -> None:
        self._model = model
        self._handle = handle

    @classmethod
    def fit(
        cls,
        model: Model,
        good: Sequence[ImageLike],
        layers: Sequence[int] = (),
        neighborhood: int = 1,
        coreset: float | int | None = None,
        score: str = "top-percent",
        foreground: bool = False,
        quantile: float = 0.95,
    ) -> AnomalyModel:
        """A bank of good images, with a threshold from scores of each against the others.

        Args:
            model: Whose features; its size is that of all images.
            good: Images in any form that Model.embed() takes.
            layers: Blocks whose tokens are the features, negative ones from the end; none: the patches after the final norm.
            neighborhood: Edge of the square of patches that are averaged, odd.
            coreset: The patches to keep: a fraction (float) or a number (int); None: all.
            score: "top-percent", "maximum" or "reweighted".
            foreground: Whether the background by the first principal component is left out.
            quantile: Of the held-out scores, the threshold.

        Raises:
            Error: for the first image that cannot be read.
        """
        if not isinstance(score, str) or score not in _SCORES:
            raise ArgumentError(f"[vitcpp] score must be one of {', '.join(_SCORES)}, found {score!r}")
        blocks, num_blocks = blocks_of("layers", layers)
        if coreset is not None and (isinstance(coreset, bool) or not isinstance(coreset, (int, float))):
            raise ArgumentError(f"[vitcpp] coreset={coreset!r}; expected a fraction or a number of patches")
        options = lib.AnomalyOptions(
            layers=blocks,
            num_layers=num_blocks,
            neighborhood=neighborhood,
            coreset_fraction=coreset if isinstance(coreset, float) else 0.0,
            coreset_count=coreset if isinstance(coreset, int) else 0,
            quantile=quantile,
            score=_SCORES[score],
            foreground=truth("foreground", foreground),
        )
        inputs = Inputs(list(images_of(good)))
        handle = lib.Handle(
            "anomaly", "vit_anomaly_fit", model._session(), inputs, inputs.count, ctypes.byref(options)
        )
        return cls(model, handle)

    @classmethod
    def load(cls, model: Model, path: str | os.PathLike[str]) -> AnomalyModel:
        """A bank that save() or `vit anomaly fit` wrote. Raises MismatchError if it belongs to another model."""
        return cls(model, lib.Handle("anomaly", "vit_anomaly_load", model._open(), lib.encoded(path)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the bank to a safetensors file, atomically."""
        lib.call("vit_anomaly_save", self._handle, lib.encoded(path))

    @property
    def threshold(self) -> float | None:
        """The score above which an image is anomalous; None if no image could be held out."""
        threshold = ctypes.c_float()
        lib.call("vit_anomaly_threshold", self._handle, ctypes.byref(threshold), None)
        return None if np.isnan(threshold.value) else float(threshold.value)

    @overload
    def score(self, x: str | bytes | os.PathLike[str]) -> AnomalyResult: ...

    @overload
    def score(self, x: Any) -> Any: ...

    def score(self, x: ImageLike | Sequence[ImageLike]) -> Any:
        """An AnomalyResult of an image, or a list of them of several.

        Raises:
            Error: for the first image that cannot be read.
        """
        inputs, results = Inputs(list(images_of(x))), Results()
        lib.call(
            "vit_anomaly_run",
            self._handle,
            self._model._session(),
            inputs,
            inputs.count,
            results.handle,
        )
        threshold = self.threshold
        found = []
        for index in range(inputs.count):
            score = float(results.one(index, lib.ANOMALY_SCORE)[0])
            anomalous = None if threshold is None else score > threshold
            found.append(AnomalyResult(score, anomalous, results.one(index, lib.ANOMALY_DISTANCES)))
        return found[0] if is_single(x) else found
