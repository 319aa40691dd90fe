"""Text towers and tokenizers."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import truth
from ._results import Results

Library = Literal["auto", "transformers", "open_clip", "openai"]
LIBRARIES = {"auto": 0, "transformers": 1, "open_clip": 2, "openai": 3}


def _texts(texts: list[str]) -> tuple[Any, Any]:
    """UTF-8 and sizes for the library; zero characters are part of a text."""
    try:
        data = [text.encode("utf-8") for text in texts]
    except (AttributeError, UnicodeEncodeError) as error:
        raise ArgumentError(f"[vitcpp] a text is no Unicode string: {error}") from error
    count = max(1, len(data))
    return (ctypes.c_char_p * count)(*data), (ctypes.c_size_t * count)(*map(len, data))


class TextEncoder:
    """The text tower of a checkpoint; calls of several threads take turns."""

    def __init__(self, path: bytes, threads: int, **options: Any) -> None:
        self._tower = lib.Handle(
            "text_tower", "vit_text_tower_load", path, ctypes.byref(lib.TextOptions(**options))
        )
        self._encoder = lib.Handle("text_encoder", "vit_text_encoder_create", self._tower, threads)
        self._tokenizer = lib.Handle("tokenizer", "vit_tokenizer_create", self._tower)
        self._lock = threading.Lock()

    def encode(self, texts: list[str], normalize: bool) -> npt.NDArray[np.float32]:
        """(n, E)"""
        pointers, sizes = _texts(texts)
        if not texts:
            raise ArgumentError("[vitcpp] no texts")
        results = Results()
        with self._lock:
            lib.call(
                "vit_text_encoder_run",
                self._encoder,
                pointers,
                sizes,
                len(texts),
                truth("normalize", normalize),
                results.handle,
                None,
            )
        return results.all(lib.TEXT)

    def tokenize(self, texts: list[str]) -> npt.NDArray[np.int32]:
        """(n, context length)"""
        pointers, sizes = _texts(texts)
        if not texts:
            raise ArgumentError("[vitcpp] no texts")
        results = Results()
        places = lib.library.vit_tokenizer_context_length(self._tokenizer)
        lib.call(
            "vit_tokenizer_run",
            self._tokenizer,
            pointers,
            sizes,
            len(texts),
            places,
            results.handle,
        )
        return results.all(lib.IDS)

    def classifier(self, model: lib.Handle, labels: tuple[str, ...], templates: tuple[str, ...]) -> lib.Handle:
        return self._of_labels("classifier", model, labels, templates)

    def detector(self, model: lib.Handle, labels: tuple[str, ...], templates: tuple[str, ...]) -> lib.Handle:
        return self._of_labels("detector", model, labels, templates)

    def _of_labels(
        self, kind: str, model: lib.Handle, labels: tuple[str, ...], templates: tuple[str, ...]
    ) -> lib.Handle:
        with self._lock:
            return lib.Handle(
                kind,
                f"vit_{kind}_create_zero_shot",
                model,
                self._encoder,
                lib.strings(list(labels)),
                len(labels),
                lib.strings(list(templates)),
                len(templates),
            )


class Tokenizer:
    """The tokenizer of a text tower, free of its weights.

    Args:
        path: A folder as published, or a file with CLIP's merges.
        library: Whose cleaning of texts applies; "auto": the library of the folder.
    """

    def __init__(self, path: str | os.PathLike[str], library: Library = "auto") -> None:
        if not isinstance(library, str) or library not in LIBRARIES:
            raise ArgumentError(f"[vitcpp] library={library!r}; expected one of {', '.join(map(repr, LIBRARIES))}")
        self._arguments = os.path.abspath(os.fsdecode(lib.encoded(path))), library
        self._handle = lib.Handle("tokenizer", "vit_tokenizer_load", lib.encoded(path), LIBRARIES[library])

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, self._arguments

    def __call__(self, text: str) -> list[int]:
        """Ids with the special tokens that the library adds, neither padded nor cut."""
        pointers, sizes = _texts([text])
        results = Results()
        lib.call("vit_tokenizer_run", self._handle, pointers, sizes, 1, 0, results.handle)
        return [int(token) for token in results.one(0, lib.IDS)]

    def token(self, index: int) -> str:
        """The token of an id as the vocabulary spells it; empty where there is none."""
        data, size = ctypes.c_void_p(), ctypes.c_size_t()
        lib.call("vit_tokenizer_token", self._handle, index, ctypes.byref(data), ctypes.byref(size))
        return ctypes.string_at(data, size.value).decode("utf-8", "replace") if size.value else ""
