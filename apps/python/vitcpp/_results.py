"""What the library hands out, as numpy arrays that share its memory."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import Error

_DTYPES = ("<f4", "<f8", "|u1", "<i4")


class _Memory:
    """Memory of a handle by numpy's array interface: arrays keep this object, and so the handle, alive."""

    def __init__(self, owner: lib.Handle, array: lib.Array) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "typestr": _DTYPES[array.dtype],
            "shape": tuple(array.shape[: array.ndim]),
            "data": (array.data, False),
        }


def as_numpy(owner: lib.Handle, array: lib.Array) -> npt.NDArray[Any]:
    """An array of the library without a copy."""
    if 0 in array.shape[: array.ndim]:
        return np.empty(tuple(array.shape[: array.ndim]), _DTYPES[array.dtype])
    return np.asarray(_Memory(owner, array))


class Results:
    """The results of one call, which arrays made of them keep alive."""

    def __init__(self) -> None:
        self.handle = lib.Handle("results", "vit_results_create")

    def all(self, name: int, block: int = 0) -> npt.NDArray[Any]:
        array = lib.Array()
        lib.call("vit_results_all", self.handle, name, block, ctypes.byref(array))
        return as_numpy(self.handle, array)

    def one(self, index: int, name: int, block: int = 0) -> npt.NDArray[Any]:
        array = lib.Array()
        lib.call("vit_results_one", self.handle, index, name, block, ctypes.byref(array))
        return as_numpy(self.handle, array)

    def __len__(self) -> int:
        return int(lib.library.vit_results_size(self.handle))

    def error(self, index: int) -> Error | None:
        """Why an input failed; None if it did not."""
        message = ctypes.c_char_p()
        status = lib.library.vit_results_status(self.handle, index, ctypes.byref(message))
        return lib.error_of(status, (message.value or b"").decode("utf-8", "replace")) if status != 0 else None
