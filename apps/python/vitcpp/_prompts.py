"""What phrases, boxes and points mean, cut out of images, with SAM 3: results in the forms of transformers."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from typing import Any, TypedDict, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import ImageLike, Inputs, integer, listed, number, numbers, truth
from ._model import Precision, ThreadedModel, _chosen
from ._results import Results

_PHRASES, _OBJECTS = 1, 2
_RULES = {"library": 0, "repository": 1}
_MASKS, _BOXES, _PIXELS = 0, 1, 2


class Instances(TypedDict):
    """Of one prompt, as Sam3Processor.post_process_instance_segmentation gives them, in the order of the model's queries."""

    scores: npt.NDArray[np.float32]  # (n), each above the threshold
    boxes: npt.NDArray[np.float32]  # (n, 4), x0, y0, x1, y1 in pixels of the image; may reach beyond its edges
    masks: npt.NDArray[np.bool_]  # (n, H, W)


class FoundBoxes(TypedDict):
    """The same without masks."""

    scores: npt.NDArray[np.float32]  # (n)
    boxes: npt.NDArray[np.float32]  # (n, 4)


class ObjectMasks(TypedDict):
    """Of one object, with the names of Sam3TrackerModel's outputs; m masks, h, w = a mask as the model gives it."""

    masks: npt.NDArray[np.bool_]  # (m, H, W)
    iou_scores: npt.NDArray[np.float32]  # (m), estimated quality from 0 to 1
    pred_masks: npt.NDArray[np.float32]  # (m, h, w), logits; one of them is input_mask of a further prompt
    object_score_logits: float  # whether there is an object


class PromptImage:
    """An image that PromptModel.encode() looked at: any number of prompts may ask it, in any thread."""

    def __init__(self, handle: lib.Handle) -> None:
        self._handle = handle
        height, width, size = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
        lib.call("vit_prompt_image_size", handle, ctypes.byref(height), ctypes.byref(width), ctypes.byref(size))
        #: Height and width in pixels.
        self.size: tuple[int, int] = (height.value, width.value)
        #: Bytes of memory that it takes.
        self.nbytes: int = size.value


class PromptModel(ThreadedModel):
    """A checkpoint that takes prompts, SAM 3.

    Args:
        path: A folder as downloaded.
        precision: "float32", "bfloat16" or "int8".
        threads: That compute in one call; None: all cores. Results do not depend on it.
        prompt_rule: Whose program is reproduced where two differ: "library" (transformers) or "repository" (the publisher's).
        tokenizer: The vocabulary, where the folder has none.

    Threads may share a model: each has working memory of its own. Calls release the GIL.

    Raises:
        Error: names the file or tensor and what is wrong with it; UnsupportedError for a model that takes no prompts.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        precision: Precision = "float32",
        threads: int | None = None,
        *,
        prompt_rule: str = "library",
        tokenizer: str | os.PathLike[str] | None = None,
    ) -> None:
        self._rule = _chosen("prompt_rule", _RULES, prompt_rule)
        super().__init__("prompt_model", "prompt_segmenter", path, precision, threads, tokenizer)
        self._takes = int(lib.library.vit_prompt_model_takes(self._handle))

    @property
    def takes_phrases(self) -> bool:
        """Whether it finds instances of phrases and of what boxes show."""
        return bool(self._takes & _PHRASES)

    @property
    def takes_objects(self) -> bool:
        """Whether it cuts out one object by points, a box or a mask."""
        return bool(self._takes & _OBJECTS)

    def encode(self, image: ImageLike) -> PromptImage:
        """Looks at an image, in any form that Model.embed() takes, for all prompts that the model takes: most of the work."""
        inputs = Inputs([image])
        return PromptImage(
            lib.Handle("prompt_image", "vit_prompt_segmenter_encode", self._worker(), inputs, self._takes)
        )

    @overload
    def segment(
        self,
        image: ImageLike | PromptImage,
        text: str | None = ...,
        input_boxes: Any = ...,
        input_boxes_labels: Sequence[int] | None = ...,
        threshold: float = ...,
        mask_threshold: float = ...,
    ) -> Instances: ...

    @overload
    def segment(
        self,
        image: ImageLike | PromptImage,
        text: list[str] | tuple[str, ...],
        input_boxes: Any = ...,
        input_boxes_labels: Sequence[int] | None = ...,
        threshold: float = ...,
        mask_threshold: float = ...,
    ) -> list[Instances]: ...

    def segment(
        self,
        image: ImageLike | PromptImage,
        text: str | list[str] | tuple[str, ...] | None = None,
        input_boxes: Any = None,
        input_boxes_labels: Sequence[int] | None = None,
        threshold: float = 0.3,
        mask_threshold: float = 0.5,
    ) -> Any:
        """Every instance of a phrase, or of what boxes show, or of both.

        Args:
            image: What encode() gave, or an image.
            text: A noun phrase, or a list of them, each a prompt of its own.
            input_boxes: (n, 4), x0, y0, x1, y1 in pixels of the image.
            input_boxes_labels: For each box 1 if it shows what is meant, else 0; default: all do.
            threshold: Instances have a score above it.
            mask_threshold: Pixels of a mask have a probability above it.

        Returns:
            Instances of a phrase, a list of them of a list.
        """
        looked_at = self._looked_at(image)

        def one(phrase: str | None) -> Instances:
            found = self._run(looked_at, phrase, input_boxes, input_boxes_labels, threshold, mask_threshold, _MASKS)
            order = np.argsort(found.one(0, lib.QUERIES), kind="stable")
            masks: npt.NDArray[np.bool_] = found.one(0, lib.MASKS)[order].view(np.bool_)
            return {"scores": found.one(0, lib.SCORES)[order], "boxes": found.one(0, lib.BOXES)[order], "masks": masks}

        return one(text) if text is None or isinstance(text, str) else [one(phrase) for phrase in listed("text", text)]

    def detect(
        self,
        image: ImageLike | PromptImage,
        text: str | None = None,
        input_boxes: Any = None,
        input_boxes_labels: Sequence[int] | None = None,
        threshold: float = 0.3,
    ) -> FoundBoxes:
        """Boxes and scores as of segment(), without work on masks."""
        found = self._run(self._looked_at(image), text, input_boxes, input_boxes_labels, threshold, 0.5, _BOXES)
        order = np.argsort(found.one(0, lib.QUERIES), kind="stable")
        return {"scores": found.one(0, lib.SCORES)[order], "boxes": found.one(0, lib.BOXES)[order]}

    def pixels(
        self,
        image: ImageLike | PromptImage,
        text: str | None = None,
        input_boxes: Any = None,
        input_boxes_labels: Sequence[int] | None = None,
    ) -> npt.NDArray[np.float32]:
        """The probability (H, W) that each pixel is part of what is meant, all instances together."""
        found = self._run(self._looked_at(image), text, input_boxes, input_boxes_labels, 0.3, 0.5, _PIXELS)
        probabilities: npt.NDArray[np.float32] = found.one(0, lib.PROBABILITIES)[0]
        return probabilities

    def segment_object(
        self,
        image: ImageLike | PromptImage,
        input_points: Any = None,
        input_labels: Sequence[int] | None = None,
        input_box: Sequence[float] | None = None,
        input_mask: Any = None,
        multimask_output: bool = True,
    ) -> ObjectMasks:
        """One object by points, a box, a mask, or several of these.

        Args:
            image: What encode() gave, or an image.
            input_points: (n, 2), x, y in pixels of the image.
            input_labels: For each point 1 if it is on the object, else 0; default: all are.
            input_box: x0, y0, x1, y1 around the object.
            input_mask: (h, w), logits as pred_masks of an earlier prompt.
            multimask_output: The masks of an ambiguous prompt (its part, the whole, ...); False: one.
        """
        points = numbers("input_points", np.zeros((0, 2)) if input_points is None else input_points, np.float64, 2)
        if points.shape[1] != 2:
            raise ArgumentError(f"[vitcpp] input_points of shape {points.shape}; expected (n, 2)")
        labels = _labels("input_labels", input_labels, len(points))
        mask = None if input_mask is None else numbers("input_mask", input_mask, np.float32)
        if mask is not None and mask.ndim != 2:
            raise ArgumentError(f"[vitcpp] input_mask of shape {mask.shape}; expected logits (h, w)")
        box = None if input_box is None else _boxes([input_box])
        prompt = lib.ObjectPrompt(
            points=points.ctypes.data,
            point_labels=labels,
            num_points=len(points),
            box=box,
            mask=None if mask is None else mask.ctypes.data,
            mask_height=0 if mask is None else mask.shape[0],
            mask_width=0 if mask is None else mask.shape[1],
            single_mask=1 - truth("multimask_output", multimask_output),
            rule=self._rule,
        )
        found = Results()
        looked_at = self._looked_at(image)  # lives as long as the call
        lib.call(
            "vit_prompt_segmenter_object",
            self._worker(),
            looked_at._handle,
            ctypes.byref(prompt),
            found.handle,
        )
        return {
            "masks": found.one(0, lib.MASKS).view(np.bool_),
            "iou_scores": found.one(0, lib.SCORES),
            "pred_masks": found.one(0, lib.MASK_LOGITS),
            "object_score_logits": float(found.one(0, lib.OBJECT_LOGITS)[0]),
        }

    def _looked_at(self, image: ImageLike | PromptImage) -> PromptImage:
        return image if isinstance(image, PromptImage) else self.encode(image)

    def _run(
        self, image: PromptImage, text: str | None, boxes: Any, labels: Any, threshold: float, mask_threshold: float, gives: int
    ) -> Results:
        rows = [] if boxes is None else listed("input_boxes", boxes)
        prompt = lib.Prompt(
            text=None if text is None else lib.encoded(text),
            boxes=_boxes(rows) if rows else None,
            box_labels=_labels("input_boxes_labels", labels, len(rows)),
            num_boxes=len(rows),
            threshold=_threshold("threshold", threshold),
            mask_threshold=_threshold("mask_threshold", mask_threshold),
            rule=self._rule,
            gives=gives,
        )
        found = Results()
        lib.call(
            "vit_prompt_segmenter_run",
            self._worker(),
            image._handle,
            ctypes.byref(prompt),
            found.handle,
        )
        return found


def _threshold(name: str, value: float) -> float:
    """For C, where 0 is the default and a negative number is 0."""
    if not isinstance(value, (int, float, np.number)) or not 0 <= value <= 1:
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected a number from 0 to 1")
    return float(value) or -1.0


def _boxes(rows: Sequence[Any]) -> Any:
    """An array of boxes for the library."""
    out = (lib.Box * len(rows))()
    for slot, row in zip(out, rows):
        edges = [number("a box", edge) for edge in listed("a box", row)]
        if len(edges) != 4:
            raise ArgumentError(f"[vitcpp] a box of {len(edges)} numbers; expected x0, y0, x1, y1")
        slot.x0, slot.y0, slot.x1, slot.y1 = edges
    return out


def _labels(name: str, labels: Sequence[int] | None, count: int) -> Any:
    """1 and 0 for the library; None for None, which means 1."""
    if labels is None:
        return None
    labels = listed(name, labels)
    if len(labels) != count:
        raise ArgumentError(f"[vitcpp] {len(labels)} {name} for {count}")
    return (ctypes.c_int32 * max(1, count))(*[integer(name, label, 0, 1) for label in labels])
