"""Classes of pixels from a few labeled ones, in the manner of scikit-learn: fit, predict and predict_proba on images."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import ImageLike, Inputs, blocks_of, images_of, integer, is_single, listed, number, numbers, truth
from ._model import Model, Size, _size
from ._results import Results

_METHODS = {"logistic": 0, "knn": 1, "centroid": 2}
_UPSAMPLINGS = {"bilinear": 0, "shift": 1, "guided": 2}
_LEARNED = 3
_HELD_OUT = ("nothing", "strokes", "images")
_INT32 = 3


class PixelClassifier:
    """Classes of pixels, learned from labels of some of them on the patch features of a model.

    Args:
        model: Whose features.
        method: "logistic", "knn" or "centroid".
        layers: Blocks whose features are joined, negative ones from the end; none: the patches after the final norm.
        size: "model" or S: the shortest edge, the whole image in its aspect ratio; (H, W): squashed to it; "native": its own.
        scales: Features at these multiples of the size are joined.
        upsample: From patches to pixels: "bilinear", "shift", "guided", or the published file of NAF, AnyUp or JAFAR.
        color: Whether red, green and blue of a pixel are features, too.
        strength: C of scikit-learn's LogisticRegression; None: by cross-validation.
        neighbors: That vote (knn).
        threads: 0: all cores.

    After fit() and load(), `classes_` has the labels (integers of fit(), names of load()), and `cross_validated_iou_` the mean IoU of
    what was held out: `held_out_` is "images", "strokes" or "nothing" (None then).
    """

    def __init__(
        self,
        model: Model,
        method: str = "logistic",
        layers: Sequence[int] = (),
        size: Size = "model",
        scales: Sequence[float] = (),
        upsample: str | os.PathLike[str] = "bilinear",
        color: bool = False,
        strength: float | None = None,
        neighbors: int = 20,
        threads: int = 0,
    ) -> None:
        if not isinstance(method, str) or method not in _METHODS:
            raise ArgumentError(f"[vitcpp] method must be one of {', '.join(_METHODS)}, found {method!r}")
        is_word = isinstance(upsample, str) and upsample in _UPSAMPLINGS
        if not is_word and not (isinstance(upsample, (str, os.PathLike)) and os.path.isfile(upsample)):
            raise ArgumentError(
                f"[vitcpp] upsample must be one of {', '.join(_UPSAMPLINGS)}, or a file, found {upsample!r}"
            )
        self.model = model
        self.threads = integer("threads", threads, 0)
        kind, height, width = _size(size)
        self._layers, num_layers = blocks_of("layers", layers)
        multiples = [number("scales", scale) for scale in listed("scales", scales)]
        self._scales = (ctypes.c_double * max(1, len(multiples)))(*multiples)
        self._options = lib.PixelOptions(
            layers=self._layers,
            num_layers=num_layers,
            scales=self._scales,
            num_scales=len(multiples),
            size_kind=kind,
            height=height,
            width=width,
            upsampling=_UPSAMPLINGS.get(upsample, _LEARNED) if isinstance(upsample, str) else _LEARNED,
            color=truth("color", color),
            method=_METHODS[method],
            neighbors=integer("neighbors", neighbors, 1),
            strength=0.0 if strength is None else strength,
            threads=self.threads,
            upsampler=None if is_word else lib.encoded(upsample),
        )
        self._handle: lib.Handle | None = None
        self.classes_: npt.NDArray[Any] = np.empty(0, np.int64)
        self.cross_validated_iou_: float | None = None
        self.held_out_ = "nothing"

    def fit(self, X: ImageLike | Sequence[ImageLike], y: Any, names: Sequence[str] | None = None) -> PixelClassifier:
        """Learns from images and their labels (H, W): integers, where a negative one is a pixel without a label.

        Args:
            X: Images in any form that Model.embed() takes.
            y: An array of labels for each, of the size of the image.
            names: Of the classes in the order of their numbers, for save().

        Raises:
            Error: for the first image that cannot be read, labels of another size, and fewer than two classes.
        """
        images = list(images_of(X))
        given = [numbers("y", labels, None) for labels in ([y] if is_single(X) else listed("y", y))]
        if len(given) != len(images):
            raise ArgumentError(f"[vitcpp] {len(given)} arrays of labels for {len(images)} images")
        for labels in given:
            if labels.ndim != 2 or labels.dtype.kind not in "iub":
                raise ArgumentError(
                    f"[vitcpp] labels of dtype {labels.dtype} and shape {labels.shape}; expected integers (H, W)"
                )
            if labels.dtype.kind == "u" and labels.size and int(labels.max()) > np.iinfo(np.int64).max:
                raise ArgumentError(f"[vitcpp] a label {labels.max()}; expected at most {np.iinfo(np.int64).max}, or -1 for none")
        values = np.unique(np.concatenate([np.unique(labels).astype(np.int64) for labels in given]))
        classes = values[values >= 0]
        texts = [str(c) for c in classes] if names is None else listed("names", names)
        if len(texts) != len(classes):
            raise ArgumentError(f"[vitcpp] {len(texts)} names for {len(classes)} classes")
        numbered = []
        for labels in given:
            places = np.searchsorted(classes, labels).astype(np.int32)
            numbered.append(np.ascontiguousarray(np.where(labels >= 0, places, np.int32(-1)), np.int32))
        arrays = (lib.Array * max(1, len(numbered)))()
        for slot, part in zip(arrays, numbered):
            slot.data, slot.dtype, slot.ndim = part.ctypes.data, _INT32, 2
            slot.shape[0], slot.shape[1] = part.shape
        inputs = Inputs(images)
        self._handle = lib.Handle(
            "pixels",
            "vit_pixels_fit",
            self.model._open(),
            inputs,
            arrays,
            inputs.count,
            lib.strings(texts),
            len(texts),
            ctypes.byref(self._options),
        )
        self.classes_ = classes
        self._describe()
        return self

    @classmethod
    def load(
        cls,
        model: Model,
        path: str | os.PathLike[str],
        threads: int = 0,
        upsample: str | os.PathLike[str] | None = None,
    ) -> PixelClassifier:
        """Classes that save() or `vit fit --truth` wrote. Raises MismatchError if they belong to another model.

        Args:
            upsample: The file of their learned upsampler, if it is no longer where it was.
        """
        if upsample is not None and not (isinstance(upsample, (str, os.PathLike)) and os.path.isfile(upsample)):
            raise ArgumentError(f"[vitcpp] upsample must be a file, found {upsample!r}")
        out = cls(model, threads=threads)
        out._handle = lib.Handle(
            "pixels",
            "vit_pixels_load_upsampled",
            model._open(),
            lib.encoded(path),
            None if upsample is None else lib.encoded(upsample),
            out.threads,
        )
        labels = []
        for index in range(lib.library.vit_pixels_size(out._handle)):
            label = ctypes.c_char_p()
            lib.call("vit_pixels_label", out._handle, index, ctypes.byref(label))
            labels.append((label.value or b"").decode("utf-8", "replace"))
        out.classes_ = np.array(labels)
        out._describe()
        return out

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the classes to a safetensors file, atomically; `vit segment --classifier` reads it."""
        lib.call("vit_pixels_save", self._fitted(), lib.encoded(path))

    def predict(self, X: ImageLike | Sequence[ImageLike]) -> Any:
        """The class (H, W) of each pixel of an image, from classes_ (after load(): its number), or a list of them of several.

        Raises:
            Error: for the first image that cannot be read.
        """
        found = self._run(X, lib.SEGMENTATION)
        if self.classes_.dtype.kind == "U":
            return found
        return self.classes_[found] if is_single(X) else [self.classes_[map_] for map_ in found]

    def predict_proba(self, X: ImageLike | Sequence[ImageLike]) -> Any:
        """Probabilities (H, W, classes) of an image, or a list of them of several. Raises as predict() does."""
        found = self._run(X, lib.PROBABILITIES)
        return np.moveaxis(found, 0, -1) if is_single(X) else [np.moveaxis(planes, 0, -1) for planes in found]

    def _fitted(self) -> lib.Handle:
        if self._handle is None:
            raise ArgumentError("[vitcpp] this PixelClassifier is not fitted; call fit(), or make one with load()")
        return self._handle

    def _describe(self) -> None:
        iou, held_out = ctypes.c_double(), ctypes.c_int32()
        lib.call("vit_pixels_iou", self._fitted(), ctypes.byref(iou), ctypes.byref(held_out))
        self.cross_validated_iou_ = None if np.isnan(iou.value) else iou.value
        self.held_out_ = _HELD_OUT[held_out.value]

    def _run(self, x: Any, name: int) -> Any:
        inputs, results = Inputs(list(images_of(x))), Results()
        lib.call(
            "vit_pixels_run",
            self._fitted(),
            inputs,
            inputs.count,
            int(name == lib.PROBABILITIES),
            results.handle,
        )
        found = [results.one(index, name) for index in range(inputs.count)]
        return found[0] if is_single(x) else found
