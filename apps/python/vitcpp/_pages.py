"""Pages of documents and questions to them as many vectors each, with ColModernVBERT."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError
from ._inputs import Images, Inputs, images_of, listed, numbers
from ._model import Precision, ThreadedModel
from ._results import Results

Floats = npt.NDArray[np.float32]


class PageModel(ThreadedModel):
    """A checkpoint that gives pages and questions vectors for each token, ColModernVBERT.

    Args:
        path: A folder as downloaded.
        precision: "float32", "bfloat16" or "int8".
        threads: That compute in one call; None: all cores. Results do not depend on it.
        tokenizer: The vocabulary, where the folder has none.

    Threads may share a model: each has working memory of its own. Calls release the GIL.

    Raises:
        Error: names the file or tensor and what is wrong with it; UnsupportedError for a model without vectors of pages.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        precision: Precision = "float32",
        threads: int | None = None,
        *,
        tokenizer: str | os.PathLike[str] | None = None,
    ) -> None:
        super().__init__("page_model", "page_encoder", path, precision, threads, tokenizer)

    @property
    def dim(self) -> int:
        """Numbers of a vector, E."""
        return int(lib.library.vit_page_model_dim(self._handle))

    def encode_pages(self, images: Images) -> list[Floats]:
        """The vectors (t, E) of each image, of length 1; t differs from page to page. An image or a sequence of them, in any form that Model.embed() takes."""
        out: list[Floats] = []
        for image in images_of(images):
            inputs, found = Inputs([image]), Results()  # each array is a view of its results
            lib.call("vit_page_encoder_page", self._worker(), inputs, found.handle)
            out.append(found.one(0, lib.PAGE_VECTORS))
        return out

    def encode_queries(self, texts: Sequence[str]) -> list[Floats]:
        """The vectors (m, E) of each question, of length 1."""
        out: list[Floats] = []
        for text in listed("texts", texts):
            found = Results()
            lib.call("vit_page_encoder_query", self._worker(), lib.encoded(text), found.handle)
            out.append(found.one(0, lib.PAGE_VECTORS))
        return out

    def score(self, queries: Sequence[Floats], pages: Sequence[Floats]) -> Floats:
        """How well each page answers each question, (questions, pages), as the library's score_retrieval: the sum over the vectors of the question of its best match on the page."""
        rows = [self._vectors("queries", query) for query in listed("queries", queries)]
        columns = [self._vectors("pages", page) for page in listed("pages", pages)]
        out: Floats = np.empty((len(rows), len(columns)), np.float32)
        score = ctypes.c_float()
        for i, query in enumerate(rows):
            for j, page in enumerate(columns):
                lib.call("vit_page_score", query, len(query), page, len(page), self.dim, ctypes.byref(score))
                out[i, j] = score.value
        return out

    def _vectors(self, name: str, given: Floats) -> Floats:
        vectors: Floats = numbers(name, given, np.float32, 2)
        if vectors.shape[1] != self.dim:
            raise ArgumentError(f"[vitcpp] {name} of shape {vectors.shape}; expected (n, {self.dim})")
        return vectors
