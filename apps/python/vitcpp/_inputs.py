"""Images in all the forms that Python has, as inputs of the library without copies where that is possible."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from typing import Any, Protocol, Union

import numpy as np
import numpy.typing as npt

from . import _library as lib
from ._errors import ArgumentError, Error, FileError
from ._library import integer as integer

class HasRead(Protocol):
    """A file open for reading."""

    def read(self, *args: Any, **kwargs: Any) -> Any: ...


class HasArray(Protocol):
    """numpy's conversion."""

    def __array__(self, *args: Any, **kwargs: Any) -> Any: ...


class HasArrayInterface(Protocol):
    """numpy's array interface: PIL."""

    @property
    def __array_interface__(self) -> Any: ...


class HasDlpack(Protocol):
    """DLPack: torch, jax, cupy."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


#: A path, the bytes of an image file, such a file open for reading, a PIL image, or uint8 pixels (H, W, 1, 3 or 4) or (H, W): a numpy array or
#: anything with DLPack (torch on the CPU) or numpy's array interface. Of models loaded with clip_frames also a list or
#: tuple of these, or an array (frames, H, W, 3): the frames of one clip.
OneImage = Union[str, "os.PathLike[str]", bytes, bytearray, memoryview, HasRead, HasArray, HasArrayInterface, HasDlpack]
ImageLike = Union[OneImage, "list[OneImage]", "tuple[OneImage, ...]"]
#: What is one image by its type; an array may hold several.
SingleImage = Union[str, bytes, "os.PathLike[str]"]
#: One image or several.
Images = Union[ImageLike, Iterable[ImageLike]]

_PATH, _ENCODED, _PIXELS, _PREPROCESSED, _CLIP = 0, 1, 2, 3, 4
_FORMATS = {1: 4, 3: 0, 4: 2}  # bytes per pixel -> grey, rgb, rgba


def is_single(x: Any) -> bool:
    """Whether this is one input and no collection of them."""
    if isinstance(x, (str, bytes, bytearray, memoryview, os.PathLike)) or _is_pil(x) or hasattr(x, "read"):
        return True
    shape = getattr(x, "shape", None)
    if shape is not None:
        return len(shape) not in (1, 4)
    return not isinstance(x, Iterable)


def images_of(x: Any) -> Iterable[Any]:
    """The images of one input or several: of a four-dimensional array its images, of a column of a table its values."""
    if is_single(x):
        return [x]
    images: Iterable[Any] = as_array(x) if len(getattr(x, "shape", ())) == 4 else x
    return images


def _is_pil(x: Any) -> bool:
    module = sys.modules.get("PIL.Image")
    return module is not None and isinstance(x, module.Image)


def as_array(x: Any) -> npt.NDArray[Any]:
    """A numpy array of an array of any library, without a copy where the library allows it."""
    if isinstance(x, np.ndarray):
        return x
    if hasattr(x, "detach") and getattr(x, "requires_grad", False):
        x = x.detach()
    try:
        return np.from_dlpack(x) if hasattr(x, "__dlpack__") else np.asarray(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"[vitcpp] no array in the memory of the CPU: {error}") from error


def _pil_pixels(image: Any) -> npt.NDArray[np.uint8]:
    """Pixels of a PIL image; one with a palette or rare mode is converted as the library does with files."""
    if image.mode == "La":
        image = image.convert("LA")
    if image.mode in ("LA", "PA", "RGBa") or (image.mode == "P" and "transparency" in image.info):
        image = image.convert("RGBA")
    elif image.mode not in ("RGB", "RGBA", "L"):
        image = image.convert("RGB")
    pixels: npt.NDArray[np.uint8] = np.asarray(image)
    return pixels


def _checked_pixels(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """(H, W, bytes per pixel) whose rows lie without gaps."""
    if array.dtype.kind in "OSU":
        raise ArgumentError(
            "[vitcpp] no image but an object of Python; expected paths, bytes, open files, PIL images or uint8 pixels "
            "(H, W, 3)"
        )
    if array.dtype != np.uint8:
        raise ArgumentError(
            f"[vitcpp] an image of dtype {array.dtype} and shape {array.shape}; expected uint8 pixels (H, W, 3). "
            "Preprocessed float32 pixels (B, 3, H, W) go to forward_features()"
        )
    if array.ndim == 2:
        array = array[:, :, np.newaxis]
    if array.ndim != 3 or array.shape[2] not in _FORMATS:
        planes = array.ndim == 3 and array.shape[0] in _FORMATS
        raise ArgumentError(
            f"[vitcpp] an image of shape {array.shape}; expected (H, W), (H, W, 1), (H, W, 3) or (H, W, 4)"
            + (". Channels come last: transpose(1, 2, 0), permute(1, 2, 0) of a tensor" if planes else "")
        )
    if 0 in array.shape:
        raise ArgumentError(f"[vitcpp] an image of shape {array.shape} has no pixels")
    channels = array.shape[2]
    rows_are_whole = array.strides[2] == 1 and (array.shape[1] == 1 or array.strides[1] == channels)
    if not rows_are_whole or array.strides[0] < array.shape[1] * channels:
        array = np.ascontiguousarray(array)
    return array


def listed(name: str, values: Any) -> list[Any]:
    """The items of an argument that is a sequence, but no text."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"[vitcpp] {name}={values!r}; expected a sequence")
    return list(values)


def blocks_of(name: str, values: Any) -> tuple[Any, int]:
    """Numbers of blocks for the library, negative ones from the end, and how many they are."""
    items = [integer(name, value) for value in listed(name, values)]
    return (ctypes.c_int64 * max(1, len(items)))(*items), len(items)


def truth(name: str, value: Any) -> int:
    """1 or 0 of an argument that is true or false."""
    if not isinstance(value, (bool, np.bool_)) and not (isinstance(value, (int, np.integer)) and value in (0, 1)):
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected True or False")
    return int(value)


def number(name: str, value: Any) -> float:
    """A number of an argument."""
    try:
        return float(value)
    except (OverflowError, TypeError, ValueError):
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected a number") from None


def pair(name: str, value: Any, least: int = 0) -> tuple[int, int]:
    """Two whole numbers of an argument."""
    try:
        first, second = value
    except (TypeError, ValueError):
        raise ArgumentError(f"[vitcpp] {name}={value!r}; expected two whole numbers") from None
    return integer(name, first, least), integer(name, second, least)


def numbers(name: str, values: Any, dtype: npt.DTypeLike | None, ndim: int | None = None) -> npt.NDArray[Any]:
    """An array of an argument, row-major without gaps, of `ndim` dimensions."""
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O" and any(value is None for value in given.flat):
            raise TypeError("None is no number")
        if given.dtype.kind in "cmMSTU":  # numpy would cut off imaginary parts, count days and read texts
            raise TypeError(f"numbers of dtype {given.dtype} are not real")
        array = np.ascontiguousarray(given, dtype)
    except (BufferError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise ArgumentError(f"[vitcpp] {name}: {error}") from None
    if ndim is not None and given.ndim != ndim:
        found = f"the shape {given.shape}"
        raise ArgumentError(f"[vitcpp] {name} has {found}; expected {'an array' if ndim is None else f'{ndim} dimensions'}")
    return array


def _of(kind: type[Error], cause: Exception) -> Error:
    """An Error of an image that cannot be read for this cause."""
    error = kind(" ".join(f"[vitcpp] an image cannot be read: {type(cause).__name__}: {cause}".split()))
    error.__cause__ = cause
    return error


class Inputs:
    """An array of inputs for the library, which takes it as it is. Keeps alive what it points at."""

    def __init__(self, items: list[Any], errors: list[Error | None] | None = None) -> None:
        """Raises the Error of an item that is no image. With a list of `errors`, appends it, or None, for each item, and leaves
        out those that are none."""
        self._kept: list[Any] = []
        slots, filled = self._slots(len(items)), 0
        for item in items:
            slots[filled] = lib.Input(struct_size=ctypes.sizeof(lib.Input))
            error = self._error_of(slots[filled], item)
            if errors is not None:
                errors.append(error)
            elif error is not None:
                raise error
            filled += error is None
        self.count = filled

    def _error_of(self, slot: lib.Input, item: Any) -> Error | None:
        """Fills a slot, if the item is an image. What an item runs of its own may raise anything: read(), PIL's decoders, __array__()."""
        try:
            self._fill(slot, item)
        except Error as error:
            return error
        except (OSError, MemoryError) as error:
            return _of(FileError, error)
        except Exception as error:
            return _of(ArgumentError, error)
        return None

    def _slots(self, count: int) -> Any:
        self.count, slots = count, (lib.Input * max(1, count))()
        self._as_parameter_ = ctypes.pointer(slots[0])  # keeps them all
        return slots

    def _fill(self, slot: lib.Input, item: Any) -> None:
        if not _is_pil(item) and hasattr(item, "read"):
            item = item.read()
        if isinstance(item, (str, os.PathLike)):
            slot.kind, slot.path = _PATH, self._keep(lib.encoded(item))
        elif isinstance(item, (bytes, bytearray, memoryview)):
            data = self._keep(np.frombuffer(item, np.uint8))
            slot.kind, slot.data, slot.size = _ENCODED, data.ctypes.data, data.size
        elif isinstance(item, (list, tuple)) or len(getattr(item, "shape", ())) == 4:
            if isinstance(item, (list, tuple)) and any(isinstance(frame, (list, tuple, int, float)) for frame in item):
                raise ArgumentError("[vitcpp] a list within a list is the frames of a clip, which are images each")
            frames = self._keep(Inputs(list(images_of(item))))
            slot.kind, slot.num_frames = _CLIP, frames.count
            slot.frames = ctypes.addressof(frames._as_parameter_.contents)
        else:
            pixels = self._keep(_checked_pixels(_pil_pixels(item) if _is_pil(item) else as_array(item)))
            slot.kind, slot.format = _PIXELS, _FORMATS[pixels.shape[2]]
            slot.data, slot.height, slot.width = pixels.ctypes.data, pixels.shape[0], pixels.shape[1]
            slot.row_stride = pixels.strides[0] if pixels.shape[0] > 1 else 0

    def _keep(self, item: Any) -> Any:
        self._kept.append(item)
        return item


class Pixels(Inputs):
    """Preprocessed pixels float32 (B, channels, H, W), or (channels, H, W) of one image, as inputs; of clips the channels
    of all frames, one after the other."""

    def __init__(self, pixels: Any, channels: int) -> None:
        array = as_array(pixels)
        if array.ndim == 3:  # what preprocess() gives for one image
            array = array[None]
        if array.dtype != np.float32 or array.ndim != 4 or array.shape[1] % channels or array.shape[1] == 0:
            raise ArgumentError(
                f"[vitcpp] pixels of dtype {array.dtype} and shape {array.shape}; expected float32 "
                f"(B, {channels}, H, W)"
            )
        array = np.ascontiguousarray(array)
        super().__init__([])
        self._keep(array)
        for slot, image in zip(self._slots(len(array)), array):
            slot.struct_size = ctypes.sizeof(lib.Input)
            slot.kind, slot.data = _PREPROCESSED, image.ctypes.data
            slot.height, slot.width = image.shape[1:]
            slot.num_frames = image.shape[0] // channels
