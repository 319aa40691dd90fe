"""Models: images and texts to vectors, classes, tokens and feature maps.

Letters in shapes: n inputs, B images, H, W pixels, h, w patches per column and row, T = prefix + h w tokens,
C = embed_dim, E = dimension of the space of images and texts.
"""

from __future__ import annotations

import ctypes
import itertools
import json
import math
import operator
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from typing import Any, Literal, TypedDict, Union, overload

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._dense import DenseModel
from ._errors import ArgumentError, Error, MismatchError, UnsupportedError
from ._inputs import ImageLike, Images, Inputs, Pixels, SingleImage, images_of, integer, is_single, listed, number, truth
from ._results import Results
from ._text import LIBRARIES, Library, TextEncoder

Floats = npt.NDArray[np.float32]
#: Called with the number of images done, and of all, None if that is not known.
Progress = Callable[[int, Union[int, None]], object]
Precision = Literal["float32", "bfloat16", "int8"]
Size = Union[Literal["model", "native"], int, tuple[int, int]]

_PRECISIONS = {"float32": 0, "bfloat16": 1, "int8": 2}
_RESAMPLERS = {"auto": 0, "pillow": 1, "torchvision": 2}
_PILLOW = {"13.0": 0, "12.2": 1, "12.1": 2}
_EXIF = {"auto": 0, "apply": 1, "ignore": 2}
_CHANNELS = {"auto": 0, "rgb": 1, "bgr": 2}
_RESIZE_RULES = {"auto": 0, "library": 1, "repository": 2}
_CHUNK = 64  # images of a call of the library: between calls Python handles signals
_MAX_BATCH = 4096  # of the program
_MAX_PIXELS = (1 << 63) - 1
_MAX_CLASSIFIERS = 8  # sets of candidate labels whose vectors are kept


class Score(TypedDict):
    """A class and its probability, as transformers' pipelines return them."""

    label: str
    score: float


def _chosen(name: str, choices: dict[str, int], value: Any) -> int:
    if not isinstance(value, str) or value not in choices:
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected one of {', '.join(map(repr, choices))}")
    return choices[value]


def _absolute(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.path.abspath(os.fsdecode(lib.encoded(path)))


def _color(color: Sequence[int] | None) -> Any:
    """R, G, B and a filler for the library; zeros for None."""
    values = [0, 0, 0] if color is None else listed("pad", color)
    if len(values) != 3:
        raise ArgumentError(f"[vitcpp] pad={color!r}; expected three numbers from 0 to 255")
    return (ctypes.c_uint8 * 4)(*[integer("pad", value, 0, 255) for value in values])


def _pairs(overrides: Mapping[str, Any] | None) -> list[str]:
    """Names and values in turn, values as JSON spells them."""
    if overrides is not None and not isinstance(overrides, Mapping):
        raise ArgumentError(f"[vitcpp] overrides={overrides!r}; expected a dict of timm's model_args")
    pairs = (overrides or {}).items()
    return [text for name, value in pairs for text in (name, value if isinstance(value, str) else json.dumps(value))]


def _floats(name: str, values: Iterable[Any]) -> list[float]:
    try:
        return [float(value) for value in listed(name, values)]
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError(f"[vitcpp] {name}={values!r}; expected numbers") from None


def _numbers(name: str, values: float | Sequence[float] | None) -> Any:
    """An array of doubles; of one number, or none, too."""
    given = [] if values is None else _floats(name, values if isinstance(values, Iterable) else [values])
    return (ctypes.c_double * len(given))(*given)


def _pair(name: str, values: Sequence[float] | None) -> list[float]:
    pair = [0.0, 0.0] if values is None else _floats(name, values)
    if len(pair) != 2:
        raise ArgumentError(f"[vitcpp] {name}={values!r}; expected (least, most)")
    return pair


def _positive(name: str, value: float) -> float:
    number = _floats(name, [value])[0]
    if not number > 0.0:
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected a positive number")
    return number


def _chunks(images: Iterable[ImageLike]) -> Iterator[list[ImageLike]]:
    iterator = iter(images)
    while chunk := list(itertools.islice(iterator, _CHUNK)):
        yield chunk


def _size(size: Size) -> tuple[int, int, int]:
    if isinstance(size, str) and size in ("model", "native"):
        return int(size == "native"), 0, 0
    try:
        height, width = map(operator.index, size if isinstance(size, Sequence) else (size, size))  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"[vitcpp] size={size!r}; expected 'model', 'native', S or (H, W)") from error
    if height < 1 or width < 1:
        raise ArgumentError(f"[vitcpp] size={size!r}; expected positive edges")
    return 2, height, width


def _reloaded(arguments: tuple[Any, ...], options: dict[str, Any], fingerprint: str) -> Model:
    """A pickled model, from the checkpoint that has to lie under the same path."""
    model = Model(*arguments, **options)
    if model.fingerprint != fingerprint:
        raise MismatchError(
            f"[vitcpp] {arguments[0]}: another checkpoint (fingerprint {model.fingerprint}) than the one that was "
            f"pickled ({fingerprint})"
        )
    return model


class ThreadedModel:
    """A model of images and texts, vit_KIND_load, that threads share: each has a vit_WORKER_create of its own."""

    def __init__(
        self,
        kind: str,
        worker: str,
        path: str | os.PathLike[str],
        precision: Precision,
        threads: int | None,
        tokenizer: str | os.PathLike[str] | None,
    ) -> None:
        options = lib.ModelOptions(precision=_chosen("precision", _PRECISIONS, precision))
        texts = lib.TextOptions(tokenizer=None if tokenizer is None else lib.encoded(os.path.abspath(os.fsdecode(lib.encoded(tokenizer)))))
        self._threads = 0 if threads is None else integer("threads", threads, 1, 1024)
        self._handle = lib.Handle(kind, f"vit_{kind}_load", lib.encoded(path), ctypes.byref(options), ctypes.byref(texts))
        self._kind_of_worker = worker
        self._local = threading.local()

    def _worker(self) -> lib.Handle:
        """That of this thread."""
        if not hasattr(self._local, "worker"):
            self._local.worker = lib.Handle(self._kind_of_worker, f"vit_{self._kind_of_worker}_create", self._handle, self._threads)
        worker: lib.Handle = self._local.worker
        return worker


class Model(DenseModel):
    """A checkpoint ready to run; `vitcpp.load` makes one.

    Threads may share a model: each has working memory of its own. Calls release the GIL. After `close()`, or at the end
    of a `with` block, calls raise ArgumentError; arrays that were returned stay valid. A pickle holds the path and the
    options: another process loads the checkpoint again, from the same path.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        precision: Precision = "float32",
        threads: int | None = None,
        *,
        size: Size = "model",
        batch: int = 0,
        architecture: str | None = None,
        overrides: Mapping[str, Any] | None = None,
        layout: str | os.PathLike[str] | None = None,
        kernels: str | None = None,
        resampler: Literal["auto", "pillow", "torchvision"] = "auto",
        pillow: Literal["13.0", "12.2", "12.1"] = "13.0",
        exif: Literal["auto", "apply", "ignore"] = "auto",
        channels: Literal["auto", "rgb", "bgr"] = "auto",
        pad: tuple[int, int, int] | None = None,
        tokenizer: str | os.PathLike[str] | None = None,
        library: Library = "auto",
        rope_scaling: str | None = None,
        max_pixels: int | None = None,
        adapter: str | os.PathLike[str] | None = None,
        prefix: str | None = None,
        area_limits: tuple[int, int] | None = None,
        mean: float | Sequence[float] | None = None,
        std: float | Sequence[float] | None = None,
        head: str | os.PathLike[str] | None = None,
        taps: Sequence[int] | None = None,
        depth_range: tuple[float, float] | None = None,
        max_depth: float | None = None,
        resize_rule: Literal["auto", "library", "repository"] = "auto",
        expert: int = 0,
        clip_frames: int = 0,
    ) -> None:
        self._path = lib.encoded(path)
        self._place = os.path.abspath(self._path)  # where the text tower is found after a chdir
        self._arguments = (os.fsdecode(self._place), precision, threads)
        self._options = {
            "size": size,
            "batch": batch,
            "architecture": architecture,
            "overrides": overrides,
            "layout": _absolute(layout),
            "kernels": kernels,
            "resampler": resampler,
            "pillow": pillow,
            "exif": exif,
            "channels": channels,
            "pad": pad,
            "tokenizer": _absolute(tokenizer),
            "library": library,
            "rope_scaling": rope_scaling,
            "max_pixels": max_pixels,
            "adapter": _absolute(adapter),
            "prefix": prefix,
            "area_limits": area_limits,
            "mean": mean,
            "std": std,
            "head": _absolute(head),
            "taps": taps,
            "depth_range": depth_range,
            "max_depth": max_depth,
            "resize_rule": resize_rule,
            "expert": expert,
            "clip_frames": clip_frames,
        }
        pairs = _pairs(overrides)
        self._architecture = lib.encoded(architecture) if architecture else None
        self._kernels = lib.encoded(kernels) if kernels else None
        self._precision = _chosen("precision", _PRECISIONS, precision)
        areas = [0, 0] if area_limits is None else [integer("area_limits", x, 1, _MAX_PIXELS) for x in listed("area_limits", area_limits)]
        if len(areas) != 2:
            raise ArgumentError(f"[vitcpp] area_limits={area_limits!r}; expected (least, most) in pixels")
        means, stds = _numbers("mean", mean), _numbers("std", std)
        blocks = [integer("taps", x, 0) for x in listed("taps", () if taps is None else taps)]
        tapped = (ctypes.c_size_t * len(blocks))(*blocks)
        options = lib.ModelOptions(
            architecture=self._architecture,
            overrides=lib.strings(pairs),
            num_overrides=len(pairs) // 2,
            layout=lib.encoded(layout) if layout is not None else None,
            kernels=self._kernels,
            precision=self._precision,
            resampler=_chosen("resampler", _RESAMPLERS, resampler),
            pillow=_chosen("pillow", _PILLOW, pillow),
            exif=_chosen("exif", _EXIF, exif),
            channels=_chosen("channels", _CHANNELS, channels),
            pads_to_square=int(pad is not None),
            pad_color=_color(pad),
            rope_scaling=lib.encoded(rope_scaling) if rope_scaling is not None else None,
            max_pixels=0 if max_pixels is None else integer("max_pixels", max_pixels, 1, _MAX_PIXELS),
            adapter=lib.encoded(adapter) if adapter is not None else None,
            prefix=lib.encoded(prefix) if prefix is not None else None,
            min_area=areas[0],
            max_area=areas[1],
            mean=means,
            num_means=len(means),
            std=stds,
            num_stds=len(stds),
            dense_head=lib.encoded(head) if head is not None else None,
            dense_taps=tapped,
            num_dense_taps=len(tapped),
            dense_depth_range=(ctypes.c_float * 2)(*_pair("depth_range", depth_range)),
            dense_max_depth=0.0 if max_depth is None else _positive("max_depth", max_depth),
            dense_resize_rule=_chosen("resize_rule", _RESIZE_RULES, resize_rule),
            dense_expert=integer("expert", expert, 0, 63),
            clip_frames=integer("clip_frames", clip_frames, 0, 4096),
        )
        kind, height, width = _size(size)
        self._threads = 0 if threads is None else integer("threads", threads, 0)
        batch = integer("batch", batch, 0, _MAX_BATCH)
        self._session_options = lib.SessionOptions(
            threads=self._threads, size_kind=kind, height=height, width=width, batch=batch
        )
        self._size_options = lib.SizeOptions(kind=kind, threads=self._threads, height=height, width=width)
        self._tokenizer = _absolute(tokenizer)
        self._library = _chosen("library", LIBRARIES, library)
        self._handle: lib.Handle | None = lib.Handle("model", "vit_model_load", self._path, ctypes.byref(options))
        self._info = lib.ModelInfo()
        lib.call("vit_model_describe", self._handle, ctypes.byref(self._info))
        self._facts = self._read_facts(self._handle)
        self._local = threading.local()
        self._lock = threading.Lock()  # guards what follows
        self._preprocessor: lib.Handle | None = None
        self._classifier: lib.Handle | None = None
        self._detectors: dict[Any, lib.Handle] = {}
        self._zero_shot: OrderedDict[tuple[tuple[str, ...], tuple[str, ...]], lib.Handle] = OrderedDict()
        self._text: TextEncoder | None = None

    def _read_facts(self, handle: lib.Handle) -> dict[str, Any]:
        info, label = self._info, ctypes.c_char_p()
        labels = []
        for index in range(info.num_classes):
            lib.call("vit_model_label", handle, index, ctypes.byref(label))
            labels.append((label.value or b"").decode("utf-8", "replace"))
        return {
            "labels": labels,
            "config": json.loads(info.config),
            "preprocess": json.loads(info.preprocess) if info.preprocess else None,
            "fingerprint": info.fingerprint.decode(),
            "kernels": info.kernels.decode(),
        }

    # ------------------------------------------------------------------------------------------------- facts

    @property
    def config(self) -> dict[str, Any]:
        """Every value of the model's configuration, as `vit info --json` names them."""
        return dict(self._facts["config"])

    @property
    def preprocess_config(self) -> dict[str, Any] | None:
        """Every value of the preprocessing; None if no file of the checkpoint tells it."""
        facts = self._facts["preprocess"]
        return dict(facts) if facts is not None else None

    @property
    def labels(self) -> list[str]:
        """Names of the classes; empty if the model has no classifier."""
        return list(self._facts["labels"])

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that tell models apart, whatever the precision."""
        return str(self._facts["fingerprint"])

    @property
    def precision(self) -> str:
        """"float32", "bfloat16" or "int8"."""
        return next(name for name, number in _PRECISIONS.items() if number == self._info.precision)

    @property
    def kernels(self) -> str:
        """Name of the kernels that compute, for example "avx2"."""
        return str(self._facts["kernels"])

    @property
    def embedding_dim(self) -> int:
        """Length of what `embed` returns: E with a projection, else C, of several tokens side by side."""
        facts = self._facts["config"]
        tokens = len(facts.get("pooled_tokens") or ()) or (2 if facts["pooling"] == "cls+mean" else 1)
        return int(self._info.projection_dim or tokens * self._info.embed_dim)

    def close(self) -> None:
        """Gives the memory back as soon as no call and no array uses it."""
        with self._lock:
            self._handle = self._preprocessor = self._classifier = self._text = None
            self._zero_shot.clear()
            self._detectors.clear()
            self._local = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the path and the options, no weights."""
        self._open()
        return _reloaded, (self._arguments, self._options, self.fingerprint)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        state = "closed" if self._handle is None else f"{self.precision}, {self.kernels}"
        return f"<vitcpp.Model {os.fsdecode(self._path)!r} ({state})>"

    # ----------------------------------------------------------------------------------------------- running

    def _open(self) -> lib.Handle:
        handle = self._handle
        if handle is None:
            raise ArgumentError(f"[vitcpp] the model {os.fsdecode(self._path)!r} is closed")
        return handle

    def _session(self) -> lib.Handle:
        """That of this thread."""
        local, handle = self._local, self._open()  # in this order, because close() forgets the handle first
        session = getattr(local, "session", None)
        if session is None:
            session = lib.Handle(
                "session", "vit_session_create", handle, ctypes.byref(self._session_options)
            )
            local.session = session
        return session

    def _run(
        self,
        inputs: Inputs,
        features: int,
        blocks: Sequence[int] = (),
        normalize: bool = False,
        attention: Sequence[int] = (),
    ) -> Results:
        """Runs inputs; those that fail do not raise here."""
        request = lib.Request(
            features=features,
            normalize=truth("normalize", normalize),
            blocks=(ctypes.c_int64 * max(1, len(blocks)))(*blocks),
            num_blocks=len(blocks),
            attention=(ctypes.c_int64 * max(1, len(attention)))(*attention),
            num_attention=len(attention),
        )
        results, session = Results(), self._session()
        status = lib.library.vit_session_run(
            session, inputs, inputs.count, ctypes.byref(request), results.handle
        )
        if status != 0 and len(results) == 0:
            raise lib.error_of(status, lib.library.vit_last_error().decode("utf-8", "replace"))
        return results

    def _embedding(self) -> int:
        return lib.PROJECTED if self._info.projection_dim else lib.POOLED

    def _embed(
        self, images: Iterable[ImageLike], normalize: bool, fail: bool, progress: Progress | None = None
    ) -> tuple[Floats, list[Error | None]]:
        """Vectors and errors; with `fail` the first error is raised."""
        self._open()
        parts: list[Floats] = []
        errors: list[Error | None] = []
        count = len(images) if isinstance(images, Sized) else None
        for chunk in _chunks(images):
            vectors, failures = self._embed_chunk(chunk, normalize, fail)
            parts.append(vectors)
            errors += failures
            if progress is not None:
                progress(len(errors), count)
        if not parts:
            return np.empty((0, self.embedding_dim), np.float32), errors
        return parts[0] if len(parts) == 1 else np.concatenate(parts), errors

    def _embed_chunk(self, chunk: list[ImageLike], normalize: bool, fail: bool) -> tuple[Floats, list[Error | None]]:
        refused: list[Error | None] = []
        inputs = Inputs(chunk, None if fail else refused)
        errors = refused or [None] * len(chunk)
        present = [index for index, error in enumerate(errors) if error is None]
        found = np.full((len(chunk), self.embedding_dim), np.nan, np.float32)
        if not present:
            return found, errors
        results = self._run(inputs, self._embedding(), normalize=normalize)
        for place, index in enumerate(present):
            errors[index] = error = results.error(place)
            if fail and error is not None:
                raise error
        if all(error is not None for error in errors):
            return found, errors
        if len(present) == len(chunk):
            return results.all(self._embedding()), errors
        found[present] = results.all(self._embedding())
        return found, errors

    def embed(self, x: Images, normalize: bool = False, progress: Progress | None = None) -> Floats:
        """Vectors of images, with the bits of `vit embed`.

        Args:
            x: An image or a sequence of them: paths, bytes of image files, PIL images, uint8 arrays (H, W, 3), torch
                tensors or other arrays with DLPack on the CPU. A uint8 array (n, H, W, 3) is n images. Arrays and PIL
                images are taken as they are: no EXIF tag rotates them.
            normalize: Divide each vector by its length.
            progress: Called as progress(done, count) after every few images; what it raises ends the call.

        Returns:
            float32 (E) of one image, (n, E) of several: the projected vector if the model has a projection, else the
            pooled one (E = C).

        Raises:
            Error: an image cannot be read or run; the first one is named.
        """
        vectors, _ = self._embed(images_of(x), normalize, fail=True, progress=progress)
        return vectors[0] if is_single(x) else vectors

    def _maps(self, x: Images, name: int, block: int | None = None) -> Any:
        """An array of one image, a list of arrays of several, whose sizes may differ."""
        inputs = Inputs(list(images_of(x)))
        blocks = () if block is None else (integer("block", block),)
        results = self._run(inputs, 0 if blocks else name, attention=blocks)
        for index in range(inputs.count):
            error = results.error(index)
            if error is not None:
                raise error
        maps = [results.one(index, name, block or 0) for index in range(inputs.count)]
        return maps[0] if is_single(x) else maps

    @overload
    def patches(self, x: SingleImage) -> Floats: ...

    @overload
    def patches(self, x: Images) -> Any: ...

    def patches(self, x: Images) -> Any:
        """Features of the patches of images after the final norm.

        Returns:
            float32 (h, w, C) of one image, row by row; a list of them of several, whose sizes may differ.
        """
        return self._maps(x, lib.PATCHES)

    @overload
    def attention(self, x: SingleImage, block: int = ...) -> Floats: ...

    @overload
    def attention(self, x: Images, block: int = ...) -> Any: ...

    def attention(self, x: Images, block: int = -1) -> Any:
        """Attention probabilities of a block; negative numbers count from the last one.

        Returns:
            float32 (heads, T, T) of one image, rows are queries; a list of them of several.

        Raises:
            ArgumentError: the model has no such block.
        """
        return self._maps(x, lib.ATTENTION, block)

    @overload
    def rollout(self, x: SingleImage) -> Floats: ...

    @overload
    def rollout(self, x: Images) -> Any: ...

    def rollout(self, x: Images) -> Any:
        """Attention rollout (Abnar and Zuidema 2020) from the first token at the last block to all that enter block 0.

        Returns:
            float32 (T) of one image, which sum to 1; a list of them of several.
        """
        return self._maps(x, lib.ROLLOUT)

    @overload
    def merged(self, x: SingleImage) -> Floats: ...

    @overload
    def merged(self, x: Images) -> Any: ...

    def merged(self, x: Images) -> Any:
        """Visual tokens of images, as the language model of a vision tower gets them (Qwen-VL, Mistral 3, ...).

        Returns:
            float32 (h, w, E) of one image, row by row; a list of them of several, whose sizes may differ.

        Raises:
            Error: an image cannot be read or run, or the model has no merger.
        """
        return self._maps(x, lib.MERGED)

    def embed_or_errors(self, x: Iterable[ImageLike], normalize: bool = False) -> tuple[Floats, list[str | None]]:
        """As `embed`, but images that fail do not stop the others.

        Returns:
            float32 (n, E), rows of NaN for images that failed, and for each image why it failed or None.
        """
        vectors, errors = self._embed(images_of(x), normalize, fail=False)
        return vectors, [None if error is None else str(error) for error in errors]

    def embed_stream(
        self, iterable: Iterable[ImageLike], batch_size: int = 32, normalize: bool = False
    ) -> Iterator[Floats]:
        """The vectors (E) of any number of images, in their order; at most `batch_size` are held at a time.

        Raises:
            Error: as `embed`, when the image is reached.
        """
        batch_size = integer("batch_size", batch_size, 1)
        if is_single(iterable) and not isinstance(iterable, Iterator):
            raise ArgumentError(f"[vitcpp] embed_stream of {type(iterable).__name__}; expected an iterable of images")
        self._open()
        return self._stream(iter(iterable), batch_size, normalize)

    def _stream(self, images: Iterator[ImageLike], batch_size: int, normalize: bool) -> Iterator[Floats]:
        while batch := list(itertools.islice(images, batch_size)):
            vectors, errors = self._embed(batch, normalize, fail=False)
            for vector, error in zip(vectors, errors):
                if error is not None:
                    raise error
                yield vector.copy()  # one that is kept does not keep its batch

    def encode_image(self, image: Any, normalize: bool = False) -> Floats:
        """Vectors of images under open_clip's name.

        Args:
            image: Preprocessed pixels, float32 (B, 3, H, W), or whatever `embed` takes.

        Returns:
            float32 (B, E), also of a single image.
        """
        dtype = getattr(image, "dtype", None)
        if dtype is not None and str(dtype).endswith("float32"):
            results = self._run(Pixels(image, self._channels()), self._embedding(), normalize=normalize)
            return self._whole(results, self._embedding())
        return self._embed(images_of(image), normalize, fail=True)[0]

    def encode_text(self, text: str | Sequence[str], normalize: bool = False) -> Floats:
        """Vectors of texts in the space of images, under open_clip's name; tokenized as the model's library does.

        Returns:
            float32 (n, E), also of a single text.

        Raises:
            UnsupportedError: the checkpoint has no text tower.
        """
        return self._texts().encode([text] if isinstance(text, str) else listed("text", text), normalize)

    def tokenize(self, text: str | Sequence[str]) -> npt.NDArray[np.int32]:
        """Token ids (n, context length), padded and cut as the model's library does."""
        return self._texts().tokenize([text] if isinstance(text, str) else listed("text", text))

    # ----------------------------------------------------------------------------------------------- features

    def _whole(self, results: Results, name: int, block: int = 0) -> npt.NDArray[Any]:
        for index in range(len(results)):
            error = results.error(index)
            if error is not None:
                raise error
        return results.all(name, block)

    def forward_features(self, pixels: Any) -> Floats:
        """All tokens after the final norm, prefix tokens first, as timm's `forward_features`.

        Args:
            pixels: float32 (B, 3, H, W), preprocessed, or (3, H, W) as `preprocess` gives it of one image; a numpy
                array, or a torch tensor or other array with DLPack. Models of other images take their channels for 3.

        Returns:
            float32 (B, T, C); B = 1 of one image.
        """
        inputs = Pixels(pixels, self._channels())
        if inputs.count == 0:
            raise ArgumentError("[vitcpp] no images")
        return self._whole(self._run(inputs, lib.TOKENS), lib.TOKENS)

    def forward_intermediates(
        self,
        pixels: Any,
        indices: int | Sequence[int] | None = None,
        return_prefix_tokens: bool = False,
        norm: bool = False,
        output_fmt: Literal["NCHW", "NLC"] = "NCHW",
        intermediates_only: bool = False,
    ) -> Any:
        """Features of blocks, as timm's `forward_intermediates`: its names, shapes and order.

        Args:
            pixels: float32 (B, 3, H, W) or (3, H, W), preprocessed.
            indices: Blocks: a number takes the last so many, None all, a sequence those (negative ones from the end);
                the result is in the order of the blocks.
            return_prefix_tokens: Pairs (features, prefix tokens (B, prefix, C)) instead of features.
            norm: Not supported but for the last block alone.
            output_fmt: "NCHW" for maps (B, C, h, w), "NLC" for tokens (B, h w, C).
            intermediates_only: Leave out the first part of the result.

        Returns:
            (tokens after the final norm (B, T, C), list of features), or the list alone.
        """
        if output_fmt not in ("NCHW", "NLC"):
            raise ArgumentError(f"[vitcpp] output_fmt={output_fmt!r}; expected 'NCHW' or 'NLC'")
        blocks = self._take_blocks(indices)
        last = int(self._info.depth) - 1
        if norm and blocks != [last]:
            raise UnsupportedError("[vitcpp] norm=True: the final norm is applied to the last block alone")
        inputs = Pixels(pixels, self._channels())
        if inputs.count == 0:
            raise ArgumentError("[vitcpp] no images")
        results = self._run(inputs, lib.TOKENS | lib.PATCHES, [] if norm else blocks)
        tokens, (rows, columns) = self._whole(results, lib.TOKENS), results.all(lib.PATCHES).shape[1:3]
        prefix = int(self._info.num_prefix_tokens)
        taken = []
        for block in blocks:
            whole = tokens if norm else results.all(lib.BLOCK, block)
            features = whole[:, prefix:]
            if output_fmt == "NCHW":
                features = features.reshape(len(whole), rows, columns, -1).transpose(0, 3, 1, 2)
                features = np.ascontiguousarray(features)
            taken.append((features, whole[:, :prefix]) if return_prefix_tokens and prefix else features)
        return taken if intermediates_only else (tokens, taken)

    def _channels(self) -> int:
        """Planes of the pixels that the model takes."""
        return int(self._facts["config"].get("num_channels", 3))

    def _take_blocks(self, indices: int | Sequence[int] | None) -> list[int]:
        """Numbers of blocks in their order, each once."""
        depth = int(self._info.depth)
        if indices is None:
            return list(range(depth))
        if not isinstance(indices, Iterable):
            count = integer("indices", indices)
            if not 0 < count <= depth:
                raise ArgumentError(f"[vitcpp] indices={count}: the model has {depth} blocks")
            return list(range(depth - count, depth))
        numbers = [integer("indices", index) for index in indices]
        found = {index + depth if index < 0 else index for index in numbers}
        if not found or min(found) < 0 or max(found) >= depth:
            raise ArgumentError(f"[vitcpp] indices={numbers}: the model has blocks 0 to {depth - 1}")
        return sorted(found)

    def preprocess(self, x: Images, stage: Literal["pixels", "cropped"] = "pixels") -> Any:
        """What the model sees of images.

        Returns:
            Stage "pixels": float32 (3, H, W) of one image, (n, 3, H, W) of several, normalized. Stage "cropped": uint8
            (H, W, 3) or (n, H, W, 3), before normalization. A list where several images have different sizes.
        """
        name = _chosen("stage", {"pixels": lib.PIXELS, "cropped": lib.CROPPED}, stage)
        inputs, results, rules = Inputs(list(images_of(x))), Results(), self._rules()
        lib.call(
            "vit_preprocessor_run", rules, inputs, inputs.count, name, results.handle
        )
        if is_single(x):
            return results.one(0, name)
        images = [results.one(index, name) for index in range(inputs.count)]
        if len({image.shape for image in images}) > 1:
            return images
        return results.all(name) if images else np.empty((0, 3, 0, 0), np.float32)

    # ------------------------------------------------------------------------------------------------ classes

    @overload
    def classify(
        self,
        x: SingleImage,
        top: int | None = ...,
        candidate_labels: Sequence[str] | None = ...,
        template: str | Sequence[str] | None = ...,
        threshold: float | None = ...,
    ) -> list[Score]: ...

    @overload
    def classify(
        self,
        x: Images,
        top: int | None = ...,
        candidate_labels: Sequence[str] | None = ...,
        template: str | Sequence[str] | None = ...,
        threshold: float | None = ...,
    ) -> Any: ...

    def classify(
        self,
        x: Images,
        top: int | None = None,
        candidate_labels: Sequence[str] | None = None,
        template: str | Sequence[str] | None = None,
        threshold: float | None = None,
    ) -> Any:
        """The most probable classes of images, as transformers' pipelines return them.

        Args:
            x: As in `embed`.
            top: Classes for each image; default 5, with candidate labels or a threshold all.
            candidate_labels: Classes in your own words, for models with a text tower.
            template: Text with {} for the label, or several, whose normalized vectors are averaged as open_clip does.
                Default: "This is a photo of {}.".
            threshold: Only classes of at least this probability.

        Returns:
            [{"label": ..., "score": ...}, ...], best first; of several images a list of these.
        """
        if candidate_labels is None and template is not None:
            raise ArgumentError("[vitcpp] template requires candidate_labels")
        if isinstance(candidate_labels, str):
            raise ArgumentError(f"[vitcpp] candidate_labels={candidate_labels!r}; expected a list of labels")
        if threshold is not None and (not isinstance(threshold, (int, float, np.number)) or math.isnan(number("threshold", threshold))):
            raise ArgumentError(f"[vitcpp] threshold={threshold!r}; expected a number")
        if top is not None:
            top = integer("top", top, 1)
        if candidate_labels is None:
            classifier, classes = self._own_classes(), len(self.labels)
            count = 5 if threshold is None else max(1, classes)
        else:
            labels = tuple(listed("candidate_labels", candidate_labels))
            templates = () if template is None else (template,) if isinstance(template, str) else tuple(listed("template", template))
            classifier, count = self._classes_of(labels, templates), len(labels)
            classes = count
        found: list[list[Score]] = []
        for chunk in _chunks(images_of(x)):
            inputs, results, session = Inputs(chunk), Results(), self._session()
            lib.call(
                "vit_classifier_run",
                classifier,
                session,
                inputs,
                inputs.count,
                results.handle,
            )
            found += [self._scores(classifier, results, index, min(top or count, classes)) for index in range(inputs.count)]
        if threshold is not None:
            found = [[score for score in scores if score["score"] >= threshold] for scores in found]
        return found[0] if is_single(x) else found

    @staticmethod
    def _scores(classifier: lib.Handle, results: Results, index: int, top: int) -> list[Score]:
        predictions, count = (lib.Prediction * top)(), ctypes.c_size_t()
        lib.call(
            "vit_classifier_top",
            classifier,
            results.handle,
            index,
            top,
            predictions,
            ctypes.byref(count),
        )
        return [
            {"label": prediction.label.decode("utf-8", "replace"), "score": float(prediction.probability)}
            for prediction in predictions[: count.value]
        ]

    # ---------------------------------------------------------------------------------- parts made when needed

    def _rules(self) -> lib.Handle:
        with self._lock:
            if self._preprocessor is None:
                self._preprocessor = lib.Handle(
                    "preprocessor",
                    "vit_preprocessor_create",
                    self._open(),
                    ctypes.byref(self._size_options),
                )
            return self._preprocessor

    def _own_classes(self) -> lib.Handle:
        with self._lock:
            if self._classifier is None:
                self._classifier = lib.Handle("classifier", "vit_classifier_create", self._open())
            return self._classifier

    def _texts(self) -> TextEncoder:
        with self._lock:
            self._open()
            if self._text is None:
                self._text = TextEncoder(
                    self._place,
                    self._threads,
                    architecture=self._architecture,
                    tokenizer=lib.encoded(self._tokenizer) if self._tokenizer is not None else None,
                    kernels=self._kernels,
                    library=self._library,
                    precision=self._precision,
                )
            return self._text

    def _classes_of(self, labels: tuple[str, ...], templates: tuple[str, ...]) -> lib.Handle:
        """The classifier of these labels, kept for the next call."""
        key = (labels, templates)
        texts = self._texts()
        with self._lock:
            if key in self._zero_shot:
                self._zero_shot.move_to_end(key)
                return self._zero_shot[key]
        handle = texts.classifier(self._open(), labels, templates)
        with self._lock:
            if self._handle is None:  # closed meanwhile
                return handle
            self._zero_shot[key] = handle
            while len(self._zero_shot) > _MAX_CLASSIFIERS:
                self._zero_shot.popitem(last=False)
        return handle
