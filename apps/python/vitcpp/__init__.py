"""Vision Transformers on CPUs: the library and the program vit from Python.

    import vitcpp
    model = vitcpp.load("siglip2")                            # a folder as downloaded; without a path the included model
    vectors = model.embed(["photo.jpg", "other.jpg"])         # float32 (2, E), bit-identical to `vit embed`
    model.classify("photo.jpg", candidate_labels=["a cat", "a dog"])
"""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ._errors import (
    ArgumentError,
    Error,
    FileError,
    FormatError,
    InternalError,
    MismatchError,
    UnsupportedError,
)

if TYPE_CHECKING:
    from . import parts as parts, position as position
    from ._dense import BoxEdges as BoxEdges, Depth as Depth, Detection as Detection, Pose as Pose, Segment as Segment
    from ._anomaly import AnomalyModel as AnomalyModel, AnomalyResult as AnomalyResult
    from ._pixels import PixelClassifier as PixelClassifier
    from ._pages import PageModel as PageModel
    from ._prompts import (
        FoundBoxes as FoundBoxes,
        Instances as Instances,
        ObjectMasks as ObjectMasks,
        PromptImage as PromptImage,
        PromptModel as PromptModel,
    )
    from ._model import Model as Model, Precision as Precision, Score as Score
    from ._text import Tokenizer as Tokenizer
    from .parts import attention as attention, patchify as patchify
    from .position import RopeTable as RopeTable

    __version__: str

__all__ = [
    "AnomalyModel",
    "AnomalyResult",
    "ArgumentError",
    "BoxEdges",
    "Depth",
    "Detection",
    "Error",
    "FileError",
    "FormatError",
    "FoundBoxes",
    "Instances",
    "InternalError",
    "MismatchError",
    "Model",
    "ObjectMasks",
    "PageModel",
    "PixelClassifier",
    "Pose",
    "PromptImage",
    "PromptModel",
    "RopeTable",
    "Score",
    "Segment",
    "Tokenizer",
    "UnsupportedError",
    "attention",
    "load",
    "parts",
    "patchify",
    "position",
    "version",
]

# numpy and the library are loaded when they are needed, so that importing takes no time.
_LAZY = {"Tokenizer": "_text", "RopeTable": "position", "attention": "parts", "patchify": "parts", "PixelClassifier": "_pixels"}
_LAZY.update(dict.fromkeys(("AnomalyModel", "AnomalyResult"), "_anomaly"))
_LAZY.update(dict.fromkeys(("Model", "Precision", "Score"), "_model"))
_LAZY.update(dict.fromkeys(("BoxEdges", "Depth", "Detection", "Pose", "Segment"), "_dense"))
_LAZY["PageModel"] = "_pages"
_LAZY.update(dict.fromkeys(("FoundBoxes", "Instances", "ObjectMasks", "PromptImage", "PromptModel"), "_prompts"))
_MODULES = ("parts", "position", "ray", "spark")


def __dir__() -> list[str]:  # what is lazy too, for help() and completion
    return sorted({*__all__, *_MODULES, *(name for name in globals() if name.startswith("__"))})


if not TYPE_CHECKING:  # to type checkers a name that is not imported above is an error

    def __getattr__(name: str) -> Any:
        if name in _LAZY:
            return getattr(importlib.import_module(f".{_LAZY[name]}", __name__), name)
        if name in _MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name == "__version__":
            return version()
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def load(
    path: str | os.PathLike[str] | None = None,
    precision: Precision = "float32",
    threads: int | None = None,
    **options: Any,
) -> Model:
    """Loads a checkpoint folder as downloaded (timm, Hugging Face, OpenCLIP, a publisher's) or a weight file.

    Args:
        path: The folder or file; None: the included model, a small classifier of ten classes for trying things out.
        precision: "float32", "bfloat16" or "int8": of the blocks, converted while loading.
        threads: That decode or compute in one call; None: all cores. Results do not depend on it.
        **options: size ("model", "native", S or (H, W)), batch, architecture, overrides (timm's model_args), layout,
            kernels, resampler, pillow, exif, tokenizer, library, rope_scaling, max_pixels, adapter, prefix, mean, std:
            as the options of the program, see `vit embed --help`; head, taps, depth_range, max_depth, resize_rule, expert: see
            `vit depth --help`; area_limits: least and most area of an image in pixels, as `--pixels`; clip_frames: frames of
            each clip, as `--frames`.

    Raises:
        Error: names the file or tensor and what is wrong with it.
    """
    from ._model import Model

    if path is None:
        from ._library import included_model

        path = included_model()
    return Model(path, precision, threads, **options)


def version() -> str:
    """The version of the library."""
    from . import _library

    return str(_library.library.vit_version().decode())
