"""A checkpoint with its layout file, as the program `vit` reads them."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Union

import numpy as np
import numpy.typing as npt

from .conventions import Convention, convention
from .conversion import convert_qkv, convert_rows, layout_of

Path_ = Union[str, "os.PathLike[str]"]
Name = Union[str, Mapping[str, Any]]
_DTYPES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int64": "I64",
    "int32": "I32",
    "int16": "I16",
    "int8": "I8",
    "uint8": "U8",
    "bool": "BOOL",
}


def _array(tensor: Any) -> npt.NDArray[Any]:
    """A numpy array or torch tensor as an array; bfloat16 as float32."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach().cpu()
        tensor = (tensor.float() if "bfloat16" in str(tensor.dtype) else tensor).numpy()
    return np.asarray(tensor)


def save_safetensors(path: Path_, tensors: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Writes arrays or torch tensors as a safetensors file; a file of that name is replaced at once, when all is written."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    arrays, offset = [], 0
    for name in sorted(tensors):
        array = np.ascontiguousarray(_array(tensors[name]))
        if array.dtype.name not in _DTYPES:
            raise ValueError(f"{name}: type {array.dtype.name} has no place in a safetensors file")
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        header[name] = {
            "dtype": _DTYPES[array.dtype.name],
            "shape": list(_array(tensors[name]).shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        arrays.append(array)
        offset += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    target = Path(path)
    partial = target.with_name(f"{target.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(struct.pack("<Q", len(text)) + text)
            for array in arrays:
                file.write(array.tobytes())
        os.replace(partial, target)
    finally:
        partial.unlink(missing_ok=True)


def _position(rope: Convention) -> dict[str, Any]:
    """The members of `position` in a layout file."""
    if (
        rope.kind not in ("axial", "mixed")
        or rope.coordinates not in ("index", "scaled_to_reference", "centered")
        or rope.per_window
    ):
        raise ValueError(
            f"{rope.name}: `vit` reads axial and mixed rotations on index, scaled or centered coordinates from a layout file"
        )
    if rope.class_angles:
        raise ValueError(f"{rope.name}: a layout file has no place for the angles of a class token")
    found: dict[str, Any] = {
        "rope": rope.kind,
        "pairing": layout_of(rope),
        "coordinates": rope.coordinates,
        "axis_order": rope.axis_order,
    }
    if rope.kind == "axial":
        found["theta"] = rope.theta
    if rope.kind == "axial" and rope.angle_scale != 1.0:
        found["angle_scale"] = rope.angle_scale
    if rope.offset:
        found["coordinate_offset"] = rope.offset
    if rope.coordinates == "scaled_to_reference":
        if rope.reference is None:
            raise ValueError(f"{rope.name}: scaled coordinates need a reference grid")
        found["reference_grid"] = list(rope.reference)
    if rope.second_axis_shift not in (0.0, 0.5):
        raise ValueError(f"second_axis_shift={rope.second_axis_shift}: `vit` knows 0 and 0.5")
    if rope.second_axis_shift:
        found["frequencies"] = "alternating"
    return found


def _blocks(pattern: str, tensors: Mapping[str, Any]) -> list[str]:
    """Names in the checkpoint of a name of the layout: {block} is a number, * at the end weight or bias."""
    expression = re.escape(pattern).replace(re.escape("{block}"), r"\d+").replace(r"\*", "(?:weight|bias)")
    return [name for name in tensors if re.fullmatch(expression, name)]


def _permuted(tensors: Mapping[str, Any], names: Mapping[str, Any], rope: Convention, num_heads: int) -> dict[str, Any]:
    """The tensors with rows of q and k, and their norms, in the order that `vit` reads."""
    found = dict(tensors)
    target = replace(rope, layout=layout_of(rope))
    if target.layout == rope.layout:
        return found
    qkv = names["qkv"]
    parts: Sequence[Name] = [qkv] if isinstance(qkv, (str, Mapping)) else qkv
    for place, part in enumerate(parts):
        if not isinstance(part, str):
            raise ValueError(f"qkv: {part!r}: rows can be permuted of tensors that are named, not of parts of them")
        for name in _blocks(part, tensors):
            if len(parts) == 1:
                found[name] = convert_qkv(_array(tensors[name]), num_heads, rope, target)
            elif place < 2:
                found[name] = convert_rows(_array(tensors[name]), num_heads, rope, target)
    for key in ("q_norm", "k_norm"):
        for name in _blocks(str(names[key]), tensors) if key in names else []:
            found[name] = convert_rows(_array(tensors[name]), 1, rope, target)
    return found


def export_layout(
    path: Path_,
    tensors: Mapping[str, Any],
    names: Mapping[str, Any],
    rope: str | Convention,
    *,
    num_heads: int,
    config: Mapping[str, Any],
    preprocess: Mapping[str, Any] | None = None,
    labels: Sequence[str] | None = None,
    ignore: Mapping[str, str] | None = None,
    about: str = "",
) -> tuple[Path, Path]:
    """Writes PATH.safetensors and PATH.json, so that `vit classify --model PATH.safetensors --layout PATH.json IMAGE` runs the model.

    Args:
        path: of both files, without their endings.
        tensors: the state dict: torch tensors or arrays by name.
        names: for each tensor of the model its name in `tensors`, as in vit/weights/layouts.md: {"patch": "stem.*", "qkv":
            "blocks.{block}.qkv.*", ...}. qkv is one name, or those of q, k and v.
        rope: a convention or its name. If its layout is not one that `vit` computes with ("alternating", "halves_by_axis"), the
            rows of q and k, their biases and norms are permuted in what is written; `tensors` stay as they are.
        config: what cannot be inferred from the tensors: norm_eps, activation, pooling, image_height, ...
        preprocess, labels, ignore, about: as in the layout file.

    Returns the paths of both files. Raises ValueError for a rotation that `vit` does not read, names that are not there and
    tensors that are neither named nor ignored."""
    of_rope = convention(rope) if isinstance(rope, str) else rope
    position = _position(of_rope)
    if "qkv" not in names:
        raise ValueError("names: 'qkv' is missing")
    used = set()
    for key, value in names.items():
        for part in [value] if isinstance(value, (str, Mapping)) else value:
            source = part if isinstance(part, str) else part.get("source", "")
            matched = _blocks(str(source), tensors) if source else []
            if source and not matched:
                raise ValueError(f"names: {key!r} is {source!r}, and the state dict has no tensor of that name")
            used.update(matched)
    for name in tensors:
        ignored = any(re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), name) for pattern in ignore or {})
        if name not in used and not ignored:
            raise ValueError(f"{name!r} of the state dict is neither in names nor in ignore")
    written = _permuted(tensors, names, of_rope, num_heads)
    layout: dict[str, Any] = {"about": about or f"Written by rope2d; rotation of {of_rope.name}."}
    layout["config"] = {"num_heads": num_heads, **config, "position": {**dict(config.get("position", {})), **position}}
    layout["tensors"] = dict(names)
    for key, given in (("ignore", ignore), ("preprocess", preprocess), ("labels", labels)):
        if given is not None:
            layout[key] = dict(given) if isinstance(given, Mapping) else list(given)
    weights, text = Path(f"{os.fspath(path)}.safetensors"), Path(f"{os.fspath(path)}.json")
    weights.parent.mkdir(parents=True, exist_ok=True)
    save_safetensors(weights, written)
    text.write_text(json.dumps(layout, indent=2) + "\n", encoding="utf-8")
    return weights, text
