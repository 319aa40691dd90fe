"""Calls that mypy --strict refuses: an ignored error that it does not find is an error."""

import numpy as np

import vitcpp
from vitcpp import position

model = vitcpp.load("model")
model.embed(3)  # type: ignore[arg-type]
model.embed([1, 2])  # type: ignore[list-item]
model.embed(None)  # type: ignore[arg-type]
model.classify(3)  # type: ignore[call-overload]
model.patches(3.5)  # type: ignore[call-overload]
model.attention(3, block=0)  # type: ignore[call-overload]
vitcpp.load(3)  # type: ignore[arg-type]
position.RopeTable.axial(3, [1.0])  # type: ignore[arg-type]
position.RopeTable.axial((2, 2), [1.0], coordinates="centred")  # type: ignore[arg-type]
position.resample_table(np.zeros((4, 2)), (2, 2), (3, 3), resampling="cubic")  # type: ignore[arg-type]
position.relative_attention(np.zeros((1, 1, 2, 4)))  # type: ignore[call-arg]
