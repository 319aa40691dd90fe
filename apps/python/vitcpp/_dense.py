"""What dense heads give, as transformers' pipelines return it: depth, segments, boxes, keypoints."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any, TypedDict, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import Images, Inputs, SingleImage, images_of, integer, is_single, listed, number
from ._results import Results
from ._text import TextEncoder

_UNITS = ("metre", "inverse", "relative")
_TASKS = (None, "semantic", "instance", "panoptic")


class Depth(TypedDict):
    """Depth of one image, at its size."""

    predicted_depth: npt.NDArray[np.float32]  # (H, W)
    depth: npt.NDArray[np.uint8]  # (H, W), the smallest to the largest value as 0 to 255


class Segment(TypedDict):
    """A thing, or a class, of one image and where it is."""

    score: float | None  # None for a class of "semantic"
    label: str
    mask: npt.NDArray[np.uint8]  # (H, W), 0 or 255


class BoxEdges(TypedDict):
    """In pixels of the image. The pipeline cuts them to whole numbers: int() of each."""

    xmin: float
    ymin: float
    xmax: float
    ymax: float


class Detection(TypedDict):
    """Something in an image."""

    score: float
    label: str
    box: BoxEdges


class Pose(TypedDict):
    """Keypoints in one box, in the order of `head_labels`."""

    keypoints: npt.NDArray[np.float32]  # (K, 2), x and y in pixels of the image
    scores: npt.NDArray[np.float32]  # (K)
    labels: list[str]
    box: BoxEdges


def _share(name: str, value: float) -> float:
    """For C, where 0 is the default and a negative number is 0."""
    if not isinstance(value, (int, float, np.number)) or not 0 <= value <= 1:
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected a number from 0 to 1")
    return float(value) or -1.0


def _edges(box: npt.NDArray[np.float32]) -> BoxEdges:
    xmin, ymin, xmax, ymax = (float(edge) for edge in box)
    return {"xmin": xmin, "ymin": ymin, "xmax": xmax, "ymax": ymax}


class DenseModel:
    """The part of a Model that its dense head is for. Raises MismatchError where the head does not give it."""

    _handle: lib.Handle | None
    _detectors: dict[Any, lib.Handle]
    _lock: Any

    def _open(self) -> lib.Handle:
        raise NotImplementedError

    def _session(self) -> lib.Handle:
        raise NotImplementedError

    def _texts(self) -> TextEncoder:
        raise NotImplementedError

    @property
    def head_labels(self) -> list[str]:
        """Names that the dense head has, of classes of pixels or boxes, or of keypoints; empty if there are none."""
        handle, label = self._open(), ctypes.c_char_p()
        names = []
        for index in range(lib.library.vit_model_num_head_labels(handle)):
            lib.call("vit_model_head_label", handle, index, ctypes.byref(label))
            names.append((label.value or b"").decode("utf-8", "replace"))
        return names

    @property
    def depth_unit(self) -> str:
        """What depths are: "metre" (larger is farther), "inverse" (larger is nearer, no unit), "relative"."""
        unit = ctypes.c_int32()
        lib.call("vit_model_depth_unit", self._open(), ctypes.byref(unit))
        return _UNITS[unit.value]

    def _run_dense(self, call: str, *arguments: Any, of: Inputs, more: tuple[Any, ...] = ()) -> Results:
        """Raises the error of the first input that failed."""
        results = Results()
        lib.call(call, *arguments, of, of.count, *more, results.handle)
        return results

    @overload
    def depth(self, x: SingleImage) -> Depth: ...

    @overload
    def depth(self, x: Images) -> Any: ...

    def depth(self, x: Images) -> Any:
        """Depth of images, as transformers' depth-estimation pipeline returns it; `depth_unit` says what it is.

        Returns:
            A Depth of one image, a list of them of several.
        """
        inputs = Inputs(list(images_of(x)))
        results = self._run_dense("vit_session_depth", self._session(), of=inputs)
        found: list[Depth] = []
        for index in range(inputs.count):
            depth = results.one(index, lib.DEPTH)
            low, high = float(depth.min()), float(depth.max())
            gray = (depth - low) / (high - low) * 255.0 if high > low else np.zeros_like(depth)
            found.append({"predicted_depth": depth, "depth": gray.astype(np.uint8)})
        return found[0] if is_single(x) else found

    @overload
    def segment(
        self,
        x: SingleImage,
        subtask: str | None = ...,
        threshold: float = ...,
        mask_threshold: float = ...,
        overlap_mask_area_threshold: float = ...,
        stuff_classes: Sequence[int] = ...,
    ) -> list[Segment]: ...

    @overload
    def segment(
        self,
        x: Images,
        subtask: str | None = ...,
        threshold: float = ...,
        mask_threshold: float = ...,
        overlap_mask_area_threshold: float = ...,
        stuff_classes: Sequence[int] = ...,
    ) -> Any: ...

    def segment(
        self,
        x: Images,
        subtask: str | None = None,
        threshold: float = 0.9,
        mask_threshold: float = 0.5,
        overlap_mask_area_threshold: float = 0.5,
        stuff_classes: Sequence[int] = (),
    ) -> Any:
        """Segments of images, as transformers' image-segmentation pipeline returns them.

        The thresholds are that pipeline's; those of the program and of C are the post-processing's, 0.8, 0.5 and 0.8.

        Args:
            x: As in `embed`.
            subtask: "semantic": a class of each pixel; "instance": things; "panoptic": things and stuff; None: what the
                model's files are made for.
            threshold: Smallest score of a segment (instance, panoptic).
            mask_threshold: Smallest probability of a pixel of a segment (panoptic).
            overlap_mask_area_threshold: Smallest part of a mask that must be left to its segment (panoptic).
            stuff_classes: Indices of classes whose segments are one (panoptic).

        Returns:
            A list of Segments of one image, classes in their order, other segments in that of the model's queries; of
            several images a list of these.
        """
        if subtask not in _TASKS:
            raise ArgumentError(f"[vitcpp] subtask={subtask!r}; expected one of {', '.join(map(repr, _TASKS))}")
        stuff = [integer("stuff_classes", index, least=0) for index in listed("stuff_classes", stuff_classes)]
        options = lib.SegmentOptions(
            threshold=_share("threshold", threshold),
            mask_threshold=_share("mask_threshold", mask_threshold),
            overlap=_share("overlap_mask_area_threshold", overlap_mask_area_threshold),
            stuff=(ctypes.c_size_t * len(stuff))(*stuff) if stuff else None,
            num_stuff=len(stuff),
            task=_TASKS.index(subtask),
        )
        inputs, labels = Inputs(list(images_of(x))), self.head_labels
        results = self._run_dense(
            "vit_session_segment", self._session(), of=inputs, more=(ctypes.byref(options),)
        )
        found: list[list[Segment]] = []
        for index in range(inputs.count):
            ids, classes, scores = (
                results.one(index, name) for name in (lib.SEGMENT_IDS, lib.CLASS_INDICES, lib.SCORES)
            )
            pixels = results.one(index, lib.SEGMENTATION)
            found.append(
                [
                    {
                        "score": None if score != score else round(score, 6),
                        "label": labels[number] if number < len(labels) else str(number),
                        "mask": np.where(pixels == name, np.uint8(255), np.uint8(0)),
                    }
                    for name, number, score in zip(ids.tolist(), classes.tolist(), scores.tolist())
                ]
            )
        return found[0] if is_single(x) else found

    @overload
    def detect(
        self,
        x: SingleImage,
        candidate_labels: Sequence[str] | None = ...,
        threshold: float | None = ...,
        template: str | Sequence[str] | None = ...,
    ) -> list[Detection]: ...

    @overload
    def detect(
        self,
        x: Images,
        candidate_labels: Sequence[str] | None = ...,
        threshold: float | None = ...,
        template: str | Sequence[str] | None = ...,
    ) -> Any: ...

    def detect(
        self,
        x: Images,
        candidate_labels: Sequence[str] | None = None,
        threshold: float | None = None,
        template: str | Sequence[str] | None = None,
    ) -> Any:
        """Boxes in images, as transformers' (zero-shot) object-detection pipelines return them.

        Args:
            x: As in `embed`.
            candidate_labels: What to look for, for OWL-ViT and OWLv2; models with classes of their own take none.
            threshold: Boxes with a score above it; default: that of the model's library.
            template: Text with {} for the label, or several; default: the labels as they are.

        Returns:
            A list of Detections of one image, in the model's order; of several a list of these.
        """
        if isinstance(candidate_labels, str):
            raise ArgumentError(f"[vitcpp] candidate_labels={candidate_labels!r}; expected a list of labels")
        if candidate_labels is None and template is not None:
            raise ArgumentError("[vitcpp] template requires candidate_labels")
        if threshold is not None and not isinstance(threshold, (int, float, np.number)):
            raise ArgumentError(f"[vitcpp] threshold={threshold!r}; expected a number")
        above = ctypes.c_float(-1.0 if threshold is None else max(number("threshold", threshold), 0.0))
        templates = () if template is None else (template,) if isinstance(template, str) else tuple(listed("template", template))
        detector = self._detector(None if candidate_labels is None else tuple(listed("candidate_labels", candidate_labels)), templates)
        labels = self._labels_of(detector)
        inputs = Inputs(list(images_of(x)))
        results = self._run_dense(
            "vit_detector_run", detector, self._session(), of=inputs, more=(above,)
        )
        found: list[list[Detection]] = []
        for index in range(inputs.count):
            boxes, scores = results.one(index, lib.BOXES), results.one(index, lib.SCORES)
            classes = results.one(index, lib.CLASS_INDICES)
            found.append(
                [
                    {"score": float(score), "label": labels[number], "box": _edges(box)}
                    for box, score, number in zip(boxes, scores, classes.tolist())
                ]
            )
        return found[0] if is_single(x) else found

    @overload
    def pose(self, x: SingleImage, boxes: Any = ...) -> list[Pose]: ...

    @overload
    def pose(self, x: Images, boxes: Any = ...) -> Any: ...

    def pose(self, x: Images, boxes: Any = None) -> Any:
        """Keypoints in boxes of images, as transformers' post_process_pose_estimation gives them (ViTPose).

        Args:
            x: As in `embed`.
            boxes: Of one image (n, 4) as x0, y0, x1, y1 in pixels, or Detections of `detect`; of several images a list
                of these. Default: each image is one box.

        Returns:
            A list of Poses of one image, one for each box; of several a list of these. Keypoints of a box outside of
            the image are NaN, their scores 0.
        """
        inputs, labels = Inputs(list(images_of(x))), self.head_labels
        more: tuple[Any, ...] = (None, None)
        if boxes is not None:
            rows = [_rows(own) for own in ([boxes] if is_single(x) else listed("boxes", boxes))]
            if len(rows) != inputs.count:
                raise ArgumentError(f"[vitcpp] boxes of {len(rows)} images for {inputs.count}")
            given = [lib.Box(*row) for own in rows for row in own]
            more = (
                (lib.Box * max(1, len(given)))(*given),
                (ctypes.c_size_t * max(1, len(rows)))(*[len(own) for own in rows]),
            )
        results = self._run_dense("vit_session_pose", self._session(), of=inputs, more=more)
        found: list[list[Pose]] = []
        for index in range(inputs.count):
            points, seen = results.one(index, lib.KEYPOINTS), results.one(index, lib.BOXES)
            names = labels or [str(number) for number in range(points.shape[1])]
            found.append(
                [
                    {"keypoints": of_box[:, :2], "scores": of_box[:, 2], "labels": names, "box": _edges(box)}
                    for of_box, box in zip(points, seen)
                ]
            )
        return found[0] if is_single(x) else found

    def _detector(self, labels: tuple[str, ...] | None, templates: tuple[str, ...]) -> lib.Handle:
        """That of these labels, kept for the next call."""
        handle = self._open()
        key = (labels, templates)
        with self._lock:
            if key in self._detectors:
                return self._detectors[key]
        if labels is None:
            made = lib.Handle("detector", "vit_detector_create", handle)
        else:
            made = self._texts().detector(handle, labels, templates)
        with self._lock:
            if self._handle is None:  # closed meanwhile
                return made
            if len(self._detectors) >= _MAX_DETECTORS:
                self._detectors.clear()
            self._detectors[key] = made
        return made

    @staticmethod
    def _labels_of(detector: lib.Handle) -> list[str]:
        label, names = ctypes.c_char_p(), []
        for index in range(lib.library.vit_detector_size(detector)):
            lib.call("vit_detector_label", detector, index, ctypes.byref(label))
            names.append((label.value or b"").decode("utf-8", "replace"))
        return names


_MAX_DETECTORS = 8  # sets of candidate labels whose vectors are kept


def _rows(boxes: Any) -> list[list[float]]:
    """Boxes of one image as rows of four numbers."""
    rows = []
    for box in listed("boxes", boxes):
        edges = box.get("box", box) if isinstance(box, dict) else box
        if isinstance(edges, dict):
            edges = [edges.get(name) for name in ("xmin", "ymin", "xmax", "ymax")]
        row = [number("a box", edge) for edge in listed("a box", edges)]
        if integer("edges of a box", len(row)) != 4:
            raise ArgumentError(f"[vitcpp] a box of {len(row)} numbers; expected x0, y0, x1, y1")
        rows.append(row)
    return rows
