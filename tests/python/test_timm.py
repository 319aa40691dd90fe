"""forward_features and forward_intermediates compared with timm, on random checkpoints that timm saves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vitcpp

torch = pytest.importorskip("torch")
timm = pytest.importorskip("timm")
safetensors = pytest.importorskip("safetensors.torch")

MODELS = {
    "vit_tiny_patch16_224": {"img_size": 64},
    "vit_small_patch16_rope_224": {"img_size": 64, "depth": 4},
    "vit_base_patch16_dinov3": {"img_size": 64, "depth": 3},
    "eva02_tiny_patch14_224": {"img_size": 56, "depth": 3},
}


def saved(name: str, arguments: dict[str, Any], folder: Path) -> Any:
    torch.manual_seed(0)
    model = timm.create_model(name, **arguments).eval()
    safetensors.save_file(model.state_dict(), folder / "model.safetensors")
    config = {"architecture": name, "num_classes": model.num_classes, "model_args": arguments}
    (folder / "config.json").write_text(json.dumps(config))
    return model


@pytest.mark.parametrize("name", MODELS)
def test_features_are_those_of_timm(name: str, tmp_path: Path) -> None:
    expected = saved(name, MODELS[name], tmp_path)
    model = vitcpp.load(tmp_path)
    edge = MODELS[name]["img_size"]
    x = torch.randn(2, 3, edge, edge, generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        features = expected.forward_features(x).numpy()
        found = model.forward_features(x)
        scale = max(1.0, float(np.abs(features).max()))
        assert found.shape == features.shape and np.abs(found - features).max() < 1e-5 * scale
        depth = model.config["depth"]
        for indices in (None, 2, [0, -1], [depth - 1, 1]):
            for options in ({}, {"output_fmt": "NLC"}, {"return_prefix_tokens": True}, {"intermediates_only": True}):
                compare(
                    expected.forward_intermediates(x, indices=indices, **options),
                    model.forward_intermediates(x, indices=indices, **options),
                )


def compare(expected: Any, found: Any) -> None:
    """Nested lists and tuples of tensors and arrays."""
    if isinstance(expected, (list, tuple)):
        assert type(found) is type(expected) and len(found) == len(expected)
        for one, other in zip(expected, found):
            compare(one, other)
        return
    values = expected.numpy()
    assert found.shape == values.shape and found.dtype == np.float32
    assert np.abs(found - values).max() < 1e-5 * max(1.0, float(np.abs(values).max()))
