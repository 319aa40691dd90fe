"""The C interface of the library through ctypes: structs, functions, handles. vit/c.h documents each."""

from __future__ import annotations

import ctypes
import operator
import os
from ctypes import POINTER, c_char_p, c_double, c_float, c_int32, c_int64, c_size_t, c_uint8, c_uint32, c_void_p
from pathlib import Path
from typing import Any

import numpy as np

from ._errors import CLASSES, ArgumentError, Error

REVISION = 1  # of the C interface that this module was written for


class Array(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("dtype", c_int32), ("ndim", c_uint32), ("shape", c_size_t * 5)]


_RANGES: dict[Any, tuple[int, int]] = {
    c_size_t: (0, (1 << 64) - 1),
    c_int32: (-(1 << 31), (1 << 31) - 1),
    c_uint32: (0, (1 << 32) - 1),
    c_int64: (-(1 << 63), (1 << 63) - 1),
}


def integer(name: str, value: Any, least: int = -(1 << 31), most: int = (1 << 31) - 1) -> int:
    """A whole number of an argument, of Python or numpy, that the library can hold."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected a whole number") from None
    if not least <= number <= most:
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected {least} to {most}")
    return number


def _held(name: str, kind: Any, value: Any) -> Any:
    """A number as its type in C holds it. ctypes takes integers modulo the size of the type."""
    if isinstance(kind, type) and isinstance(value, kind):
        return value
    if kind in _RANGES:
        return integer(name, value, *_RANGES[kind])
    if kind in (c_double, c_float):
        try:
            return float(value)
        except (OverflowError, TypeError, ValueError):
            raise ArgumentError(f"[vitcpp] {name}={value!r}; expected a number") from None
    return value


class Options(ctypes.Structure):
    """A struct whose first member is its size."""

    def __init__(self, **members: Any) -> None:
        kinds = {field[0]: field[1] for field in self._fields_}
        super().__init__(**{name: _held(name, kinds[name], value) for name, value in members.items()})
        self.struct_size = ctypes.sizeof(self)


class ModelOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("architecture", c_char_p),
        ("overrides", POINTER(c_char_p)),
        ("num_overrides", c_size_t),
        ("layout", c_char_p),
        ("kernels", c_char_p),
        ("precision", c_int32),
        ("resampler", c_int32),
        ("pillow", c_int32),
        ("exif", c_int32),
        ("channels", c_int32),
        ("pads_to_square", c_int32),
        ("pad_color", c_uint8 * 4),
        ("rope_scaling", c_char_p),
        ("max_pixels", c_size_t),
        ("adapter", c_char_p),
        ("prefix", c_char_p),
        ("min_area", c_size_t),
        ("max_area", c_size_t),
        ("mean", POINTER(c_double)),
        ("num_means", c_size_t),
        ("std", POINTER(c_double)),
        ("num_stds", c_size_t),
        ("dense_head", c_char_p),
        ("dense_taps", POINTER(c_size_t)),
        ("num_dense_taps", c_size_t),
        ("dense_depth_range", c_float * 2),
        ("dense_max_depth", c_float),
        ("dense_resize_rule", c_int32),
        ("dense_expert", c_size_t),
        ("clip_frames", c_size_t),
    ]


class ModelInfo(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("image_height", c_size_t),
        ("image_width", c_size_t),
        ("patch_size", c_size_t),
        ("embed_dim", c_size_t),
        ("depth", c_size_t),
        ("num_heads", c_size_t),
        ("num_prefix_tokens", c_size_t),
        ("projection_dim", c_size_t),
        ("num_classes", c_size_t),
        ("has_class_token", c_int32),
        ("has_pooled", c_int32),
        ("has_preprocessing", c_int32),
        ("precision", c_int32),
        ("kernels", c_char_p),
        ("path", c_char_p),
        ("fingerprint", c_char_p),
        ("config", c_char_p),
        ("preprocess", c_char_p),
    ]


class Input(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int32),
        ("format", c_int32),
        ("path", c_char_p),
        ("data", c_void_p),
        ("size", c_size_t),
        ("height", c_size_t),
        ("width", c_size_t),
        ("row_stride", c_size_t),
        ("frames", c_void_p),
        ("num_frames", c_size_t),
    ]


class SizeOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("kind", c_int32),
        ("threads", c_int32),
        ("height", c_size_t),
        ("width", c_size_t),
    ]


class SessionOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int32),
        ("size_kind", c_int32),
        ("height", c_size_t),
        ("width", c_size_t),
        ("batch", c_size_t),
    ]


class Request(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("features", c_uint32),
        ("normalize", c_int32),
        ("blocks", POINTER(c_int64)),
        ("num_blocks", c_size_t),
        ("attention", POINTER(c_int64)),
        ("num_attention", c_size_t),
    ]


class AnomalyOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("layers", POINTER(c_int64)),
        ("num_layers", c_size_t),
        ("neighborhood", c_size_t),
        ("coreset_fraction", c_double),
        ("coreset_count", c_size_t),
        ("quantile", c_double),
        ("score", c_int32),
        ("foreground", c_int32),
    ]


class PixelOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("layers", POINTER(c_int64)),
        ("num_layers", c_size_t),
        ("scales", POINTER(c_double)),
        ("num_scales", c_size_t),
        ("size_kind", c_int32),
        ("upsampling", c_int32),
        ("height", c_size_t),
        ("width", c_size_t),
        ("shifts", c_size_t),
        ("color", c_int32),
        ("method", c_int32),
        ("neighbors", c_size_t),
        ("strength", c_double),
        ("threads", c_int32),
        ("upsampler", c_char_p),
    ]


class SegmentOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("threshold", c_double),
        ("mask_threshold", c_double),
        ("overlap", c_double),
        ("stuff", POINTER(c_size_t)),
        ("num_stuff", c_size_t),
        ("task", c_int32),
        ("reserved", c_int32),
    ]


class TextOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("architecture", c_char_p),
        ("tokenizer", c_char_p),
        ("kernels", c_char_p),
        ("library", c_int32),
        ("precision", c_int32),
    ]


class RopeOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("coordinates", c_int32),
        ("centered_by", c_int32),
        ("axis_order", c_int32),
        ("pairing", c_int32),
        ("offset", c_double),
        ("reference_rows", c_size_t),
        ("reference_columns", c_size_t),
        ("dtype", c_int32),
        ("reserved", c_int32),
    ]


class RelativeOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("scale", c_double),
        ("threads", c_int32),
        ("reserved", c_int32),
    ]


class RopeFormOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("head_dim", c_size_t),
        ("num_frames", c_size_t),
        ("num_heads", c_size_t),
        ("reference_rows", c_size_t),
        ("reference_columns", c_size_t),
    ]


class RopeIdentifyOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("rows", c_size_t),
        ("columns", c_size_t),
        ("has_prefix", c_int32),
        ("reserved", c_int32),
        ("num_prefix_tokens", c_size_t),
        ("against", c_char_p),
    ]


class AttentionOptions(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("num_heads", c_size_t),
        ("num_key_heads", c_size_t),
        ("num_prefix_tokens", c_size_t),
        ("scale", c_double),
        ("causal", c_int32),
        ("threads", c_int32),
    ]


class Box(ctypes.Structure):
    _fields_ = [("x0", c_double), ("y0", c_double), ("x1", c_double), ("y1", c_double)]


class Prompt(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("text", c_char_p),
        ("boxes", POINTER(Box)),
        ("box_labels", POINTER(c_int32)),
        ("num_boxes", c_size_t),
        ("threshold", c_double),
        ("mask_threshold", c_double),
        ("rule", c_int32),
        ("gives", c_int32),
    ]


class ObjectPrompt(Options):
    _fields_ = [
        ("struct_size", c_size_t),
        ("points", c_void_p),
        ("point_labels", POINTER(c_int32)),
        ("num_points", c_size_t),
        ("box", POINTER(Box)),
        ("mask", c_void_p),
        ("mask_height", c_size_t),
        ("mask_width", c_size_t),
        ("single_mask", c_int32),
        ("rule", c_int32),
    ]


class Prediction(ctypes.Structure):
    _fields_ = [("index", c_size_t), ("label", c_char_p), ("probability", c_float), ("logit", c_float)]


class Handle:
    """An object of the library, freed when nothing in Python refers to it. Functions of the library take the handle, which
    its call holds, and no pointer: what another thread closes or replaces is not freed while a call uses it."""

    __slots__ = ("_free", "_pointer")

    def __init__(self, kind: str, constructor: str, *arguments: Any) -> None:
        self._pointer = c_void_p()
        self._free = getattr(library, f"vit_{kind}_free")
        call(constructor, *arguments, ctypes.byref(self._pointer))

    def __del__(self) -> None:
        pointer = getattr(self, "_pointer", None)
        if pointer:
            self._free(pointer)

    @classmethod
    def from_param(cls, value: Any) -> c_void_p:
        """For ctypes, which holds arguments until the function returns."""
        if not isinstance(value, Handle):
            raise TypeError(f"expected a Handle, found {type(value).__name__}")
        pointer: c_void_p = value._pointer
        return pointer


class OptionalHandle:
    """A Handle or None as a parameter."""

    @classmethod
    def from_param(cls, value: Any) -> c_void_p | None:
        return None if value is None else Handle.from_param(value)


class Data:
    """The numbers of an array as a parameter: the array, which the call holds, and no address."""

    @classmethod
    def from_param(cls, value: Any) -> c_void_p:
        if not isinstance(value, np.ndarray) or not value.flags.c_contiguous or not value.dtype.isnative:
            raise TypeError(f"expected an array without gaps, found {type(value).__name__}")
        return c_void_p(value.ctypes.data)


POOLED, PROJECTED, CLS, PATCHES, TOKENS, EMBEDDED, LOGITS = 1, 2, 4, 8, 16, 32, 64
BLOCK, ATTENTION, PIXELS, CROPPED, TEXT, IDS = 128, 256, 512, 1024, 2048, 4096
ROLLOUT, MERGED = 1 << 14, 1 << 15
ANOMALY_SCORE, ANOMALY_DISTANCES = 1 << 24, 1 << 25
DEPTH, NORMALS, SEGMENTATION = 1 << 26, 1 << 27, 1 << 28
BOXES, SCORES, CLASS_INDICES, KEYPOINTS = 1 << 29, (1 << 29) + 1, (1 << 29) + 2, (1 << 29) + 3
SEGMENT_IDS, AREAS, PROBABILITIES = (1 << 29) + 4, (1 << 29) + 5, (1 << 29) + 6
MASKS, MASK_LOGITS, QUERIES, OBJECT_LOGITS = (1 << 29) + 16, (1 << 29) + 17, (1 << 29) + 18, (1 << 29) + 19
PAGE_VECTORS = (1 << 29) + 20

_HANDLE = POINTER(c_void_p)
_STRINGS = POINTER(c_char_p)
_SIZES = POINTER(c_size_t)

# name -> arguments; all of these return a status
_CALLS: dict[str, list[Any]] = {
    "vit_results_create": [_HANDLE],
    "vit_results_status": [Handle, c_size_t, POINTER(c_char_p)],
    "vit_results_all": [Handle, c_uint32, c_int64, POINTER(Array)],
    "vit_results_one": [Handle, c_size_t, c_uint32, c_int64, POINTER(Array)],
    "vit_model_load": [c_char_p, POINTER(ModelOptions), _HANDLE],
    "vit_model_random": [c_char_p, POINTER(ModelOptions), _HANDLE],
    "vit_model_describe": [Handle, POINTER(ModelInfo)],
    "vit_model_label": [Handle, c_size_t, POINTER(c_char_p)],
    "vit_preprocessor_load": [c_char_p, POINTER(ModelOptions), POINTER(SizeOptions), _HANDLE],
    "vit_preprocessor_create": [Handle, POINTER(SizeOptions), _HANDLE],
    "vit_preprocessor_run": [Handle, POINTER(Input), c_size_t, c_uint32, Handle],
    "vit_session_create": [Handle, POINTER(SessionOptions), _HANDLE],
    "vit_session_run": [Handle, POINTER(Input), c_size_t, POINTER(Request), Handle],
    "vit_classifier_create": [Handle, _HANDLE],
    "vit_classifier_load_head": [Handle, c_char_p, _HANDLE],
    "vit_classifier_load_vectors": [Handle, c_char_p, _HANDLE],
    "vit_classifier_create_zero_shot": [Handle, Handle, _STRINGS, c_size_t, _STRINGS, c_size_t, _HANDLE],
    "vit_classifier_run": [Handle, Handle, POINTER(Input), c_size_t, Handle],
    "vit_classifier_top": [Handle, Handle, c_size_t, c_size_t, POINTER(Prediction), POINTER(c_size_t)],
    "vit_text_tower_load": [c_char_p, POINTER(TextOptions), _HANDLE],
    "vit_text_encoder_create": [Handle, c_int32, _HANDLE],
    "vit_text_encoder_run": [Handle, _STRINGS, _SIZES, c_size_t, c_int32, Handle, POINTER(c_size_t)],
    "vit_tokenizer_load": [c_char_p, c_int32, _HANDLE],
    "vit_tokenizer_load_for_model": [c_char_p, c_char_p, c_int32, _HANDLE],
    "vit_tokenizer_create": [Handle, _HANDLE],
    "vit_tokenizer_run": [Handle, _STRINGS, _SIZES, c_size_t, c_size_t, Handle],
    "vit_tokenizer_token": [Handle, c_int32, POINTER(c_void_p), POINTER(c_size_t)],
    "vit_anomaly_fit": [Handle, POINTER(Input), c_size_t, POINTER(AnomalyOptions), _HANDLE],
    "vit_anomaly_load": [Handle, c_char_p, _HANDLE],
    "vit_anomaly_save": [Handle, c_char_p],
    "vit_anomaly_threshold": [Handle, POINTER(c_float), POINTER(c_double)],
    "vit_pixels_fit": [
        Handle, POINTER(Input), POINTER(Array), c_size_t, POINTER(c_char_p), c_size_t, POINTER(PixelOptions), _HANDLE,
    ],
    "vit_pixels_load_upsampled": [Handle, c_char_p, c_char_p, c_int32, _HANDLE],
    "vit_pixels_save": [Handle, c_char_p],
    "vit_pixels_label": [Handle, c_size_t, POINTER(c_char_p)],
    "vit_pixels_iou": [Handle, POINTER(c_double), POINTER(c_int32)],
    "vit_pixels_run": [Handle, POINTER(Input), c_size_t, c_int32, Handle],
    "vit_anomaly_run": [Handle, Handle, POINTER(Input), c_size_t, Handle],
    "vit_model_depth_unit": [Handle, POINTER(c_int32)],
    "vit_model_head_label": [Handle, c_size_t, POINTER(c_char_p)],
    "vit_session_depth": [Handle, POINTER(Input), c_size_t, Handle],
    "vit_session_segment": [Handle, POINTER(Input), c_size_t, POINTER(SegmentOptions), Handle],
    "vit_session_pose": [Handle, POINTER(Input), c_size_t, POINTER(Box), _SIZES, Handle],
    "vit_detector_create": [Handle, _HANDLE],
    "vit_detector_create_zero_shot": [Handle, Handle, _STRINGS, c_size_t, _STRINGS, c_size_t, _HANDLE],
    "vit_detector_label": [Handle, c_size_t, POINTER(c_char_p)],
    "vit_detector_run": [Handle, Handle, POINTER(Input), c_size_t, c_float, Handle],
    "vit_prompt_model_load": [c_char_p, POINTER(ModelOptions), POINTER(TextOptions), _HANDLE],
    "vit_prompt_segmenter_create": [Handle, c_int32, _HANDLE],
    "vit_prompt_segmenter_encode": [Handle, POINTER(Input), c_uint32, _HANDLE],
    "vit_prompt_image_size": [Handle, _SIZES, _SIZES, _SIZES],
    "vit_prompt_segmenter_run": [Handle, Handle, POINTER(Prompt), Handle],
    "vit_prompt_segmenter_object": [Handle, Handle, POINTER(ObjectPrompt), Handle],
    "vit_page_model_load": [c_char_p, POINTER(ModelOptions), POINTER(TextOptions), _HANDLE],
    "vit_page_encoder_create": [Handle, c_int32, _HANDLE],
    "vit_page_encoder_page": [Handle, POINTER(Input), Handle],
    "vit_page_encoder_query": [Handle, c_char_p, Handle],
    "vit_page_score": [Data, c_size_t, Data, c_size_t, c_size_t, POINTER(c_float)],
    "vit_grid_coordinates": [c_size_t, c_size_t, POINTER(RopeOptions), Data, Data],
    "vit_rope_frequencies": [c_int32, c_size_t, c_double, c_double, Data],
    "vit_rope_axial": [c_size_t, c_size_t, Data, c_size_t, POINTER(RopeOptions), _HANDLE],
    "vit_rope_mixed": [c_size_t, c_size_t, Data, c_size_t, c_size_t, c_size_t, c_size_t, POINTER(RopeOptions),
                       _HANDLE],
    "vit_rope_line": [Data, c_size_t, Data, c_size_t, POINTER(RopeOptions), _HANDLE],
    "vit_rope_axial_scaled": [c_size_t, c_size_t, c_size_t, c_size_t, c_char_p, Data, c_size_t, POINTER(RopeOptions),
                              POINTER(c_double), _HANDLE],
    "vit_resample_table": [Data, c_size_t, c_size_t, c_size_t, c_size_t, c_size_t, c_size_t, c_int32, Data],
    "vit_relative_attention": [Data, Data, Data, _SIZES, Data, Data, c_size_t, POINTER(RelativeOptions),
                               Data, Data],
    "vit_nezha_rows": [c_size_t, c_size_t, Data],
    "vit_rope_table_get": [Handle, POINTER(Array), POINTER(Array)],
    "vit_rope_rotate": [Handle, Data, _SIZES, c_uint32, c_size_t],
    "vit_rope_conventions": [POINTER(c_char_p)],
    "vit_rope_form_create": [c_char_p, POINTER(RopeFormOptions), _HANDLE],
    "vit_rope_form_get": [Handle, c_int32, POINTER(Array)],
    "vit_rope_form_rotate": [Handle, Data, _SIZES, c_uint32, c_size_t],
    "vit_rope_identify": [c_char_p, POINTER(RopeIdentifyOptions), _HANDLE],
    "vit_rope_identify_arrays": [_STRINGS, POINTER(Array), c_size_t, POINTER(RopeIdentifyOptions), _HANDLE],
    "vit_rope_identity_json": [Handle, POINTER(c_char_p)],
    "vit_patchify": [Data, _SIZES, c_size_t, c_int32, Data],
    "vit_attention": [Data, Data, Data, _SIZES, OptionalHandle, POINTER(AttentionOptions), Data],
    "vit_sinusoidal": [c_int32, c_size_t, c_size_t, c_size_t, c_double, c_int32, Data],
}  # fmt: skip
# what one object is asked for -> what it answers, without a status
_ANSWERS: dict[str, Any] = {
    "vit_preprocessor_describe": c_char_p,
    "vit_results_size": c_size_t,
    "vit_model_num_head_labels": c_size_t,
    "vit_detector_size": c_size_t,
    "vit_pixels_size": c_size_t,
    "vit_page_model_dim": c_size_t,
    "vit_prompt_model_takes": c_uint32,
    "vit_tokenizer_context_length": c_size_t,
}
_FREES = ["results", "model", "preprocessor", "session", "classifier", "text_tower", "text_encoder", "tokenizer",
          "anomaly", "detector", "pixels", "page_model", "page_encoder", "prompt_model", "prompt_segmenter", "prompt_image", "rope_table", "rope_form", "rope_identity"]  # fmt: skip


def _path() -> str:
    """The library in the package; VITCPP_LIBRARY names another one."""
    return os.environ.get("VITCPP_LIBRARY") or str(Path(__file__).parent / "lib" / "libvit.so")


def included_model() -> str:
    """The folder of the model in the package, or in the checkout that the package lies in."""
    package = Path(__file__).parent
    for folder in (package / "share" / "vit" / "model", package.parents[2] / "data" / "model"):
        if folder.is_dir():
            return str(folder)
    raise CLASSES[2](f"[vitcpp] {package} includes no model; load() needs a path")


def _load() -> ctypes.CDLL:
    path = _path()
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"vitcpp: the library cannot be loaded: {error}") from error
    library.vit_version.restype = c_char_p
    library.vit_last_error.restype = c_char_p
    library.vit_c_revision.restype = c_int32
    if library.vit_c_revision() < REVISION:
        raise ImportError(f"vitcpp: {path} is older than this package")
    for name, kind in _ANSWERS.items():
        function = getattr(library, name)
        function.argtypes = [Handle]
        function.restype = kind
    for name, arguments in _CALLS.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = c_int32
    for name in _FREES:
        function = getattr(library, f"vit_{name}_free")
        function.argtypes = [c_void_p]
        function.restype = None
    return library


library = _load()


def error_of(status: int, text: str) -> Error:
    return CLASSES.get(status, Error)(text)


def call(name: str, *arguments: Any) -> None:
    """Calls a function of the library. Raises the Error of its status."""
    function = getattr(library, name)
    try:
        status = function(*(_held(name, kind, value) for kind, value in zip(function.argtypes, arguments)))
    except ctypes.ArgumentError as error:
        raise ArgumentError(f"[vitcpp] {name}: {error}") from None
    if status != 0:
        raise error_of(status, library.vit_last_error().decode("utf-8", "replace"))


def strings(texts: list[str]) -> Any:
    """An array of UTF-8 strings, which it keeps alive."""
    return (c_char_p * max(1, len(texts)))(*[encoded(text) for text in texts])


def encoded(text: str | os.PathLike[str]) -> bytes:
    """A text or path as the library takes it. Raises ArgumentError for what C cannot hold."""
    try:
        data = os.fsencode(text)
    except TypeError:
        raise ArgumentError(f"[vitcpp] {text!r}; expected a text or a path") from None
    except UnicodeEncodeError:
        raise ArgumentError(f"[vitcpp] {text!r} is not UTF-8") from None
    if b"\0" in data:
        raise ArgumentError(f"[vitcpp] {text!r} contains a zero character")
    return data
