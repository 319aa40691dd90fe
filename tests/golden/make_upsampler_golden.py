#!/usr/bin/env python3
"""Tiny learned upsamplers and what the published code makes with them: data/golden/upsamplers.

The classes are those of the published repositories, whose checkouts are given; weights are random, and files have the form that
their authors distribute. NAME.expected.safetensors has cases, each with `image` (H, W, 3) bytes, `features` (h, w, C) and
`pixels` (H, W, C): the run in float64, rounded to float32. Its metadata has the largest error of PyTorch's float32 run.

    python3 tests/golden/make_upsampler_golden.py --naf valeoai/NAF --anyup wimmerth/anyup --jafar PaulCouairon/JAFAR

Needs torch, einops, natten (its CPU form is enough), numpy and safetensors.
"""
import argparse
import json
import pathlib
import sys

import numpy as np
import torch
from safetensors.torch import save_file

ROOT = pathlib.Path(__file__).resolve().parents[2] / "data" / "golden" / "upsamplers"
WIDTH, FEATURES = 32, 8
MEAN, STD = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
# Pixels a multiple of the patches, and not.
CASES = {"even": ((40, 52), (10, 13)), "uneven": ((33, 45), (9, 11))}


def fresh(checkout):
    """Imports from a checkout: packages of two of them have the same name."""
    for name in [n for n in sys.modules if n.split(".")[0] in ("src", "utils", "anyup")]:
        del sys.modules[name]
    sys.path.insert(0, str(checkout))


def randomized(model):
    """Norms are those of a trained network: neither one nor zero."""
    for name, parameter in model.named_parameters():
        if "norm" in name or ".block.0." in name or ".block.3." in name or name.endswith("in_proj_bias"):
            with torch.no_grad():
                parameter += 0.3 * torch.randn_like(parameter)
    return model.eval()


def windows_in_float64(q, k, v, kernel, dilation):
    """Neighborhood attention by its definition: every dilation-th pixel, as many on each side as the edges allow."""

    def neighbors(count, size, step):
        lists = []
        for i in range(count):
            places = range(i % step, count, step)
            first = min(max(i // step - size // 2, 0), len(places) - size)
            lists.append(list(places[first : first + size]))
        return lists

    rows, columns = (neighbors(q.shape[1 + axis], kernel[axis], dilation[axis]) for axis in (0, 1))
    out = torch.zeros_like(v)
    for y, down in enumerate(rows):
        for x, across in enumerate(columns):
            keys, values = (t[0][down][:, across].flatten(0, 1) for t in (k, v))
            scores = torch.einsum("nd,pnd->np", q[0, y, x], keys) * q.shape[-1] ** -0.5
            out[0, y, x] = torch.einsum("np,pnd->nd", scores.softmax(-1), values)
    return out


def naf(checkout):
    fresh(checkout)
    from natten import na2d
    import src.layers.attentions as attentions
    from src.model.naf import NAF

    def on_any_device(q, k, v, backend, **options):
        if q.dtype == torch.float64:  # which natten does not have; its run in float32 agrees with these windows
            return windows_in_float64(q, k, v, options["kernel_size"], options["dilation"])
        # which computes values as wide as queries only
        wide = torch.nn.functional.pad(v, (0, q.shape[-1] - v.shape[-1]))
        return na2d(q, k, wide, backend="flex-fna", **options)[..., : v.shape[-1]]

    attentions.na2d = on_any_device
    return randomized(NAF(dim=WIDTH)), lambda state: state


def anyup(checkout):
    fresh(checkout)
    from anyup.model import AnyUp

    return randomized(AnyUp(qk_dim=WIDTH)), lambda state: state


def jafar(checkout):
    fresh(checkout)
    import src.upsampler.jafar as module

    coordinates = module.create_coordinate
    module.create_coordinate = lambda h, w: coordinates(h, w, device="cpu", dtype=torch.get_default_dtype())
    # as its training writes it, next to the state of the optimizer
    return randomized(module.JAFAR(qk_dim=WIDTH, v_dim=FEATURES)), lambda state: {"epoch": 0, "jafar": state}


def run(model, image, features, dtype):
    torch.set_default_dtype(dtype)
    x = (image.to(dtype) / 255 - MEAN.to(dtype)) / STD.to(dtype)
    with torch.no_grad():
        out = model.to(dtype)(x.permute(2, 0, 1)[None], features.to(dtype).permute(2, 0, 1)[None], image.shape[:2])
    torch.set_default_dtype(torch.float32)
    return out[0].permute(1, 2, 0).to(torch.float64)


def main():
    parser = argparse.ArgumentParser()
    makers = {"naf": naf, "anyup": anyup, "jafar": jafar}
    for name in makers:
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    ROOT.mkdir(parents=True, exist_ok=True)
    for seed, (name, make) in enumerate(makers.items()):
        torch.manual_seed(seed)
        model, as_published = make(getattr(arguments, name).resolve())
        torch.save(as_published({k: v.clone() for k, v in model.state_dict().items()}), ROOT / f"{name}.pth")
        random, tensors, errors = np.random.default_rng(seed), {}, {}
        for case, ((height, width), (rows, columns)) in CASES.items():
            noise = random.normal(size=(height, width, 3)) * 20
            slope = np.linspace(60, 200, width)[None, :, None] * np.linspace(0.6, 1.2, height)[:, None, None]
            image = torch.from_numpy(np.clip(slope + noise, 0, 255).astype(np.uint8))
            features = torch.from_numpy(random.normal(size=(rows, columns, FEATURES)).astype(np.float32))
            exact = run(model, image, features, torch.float64)
            errors[case] = float((run(model, image, features, torch.float32) - exact).abs().max() / exact.abs().max())
            tensors |= {f"{case}.image": image, f"{case}.features": features, f"{case}.pixels": exact.float().contiguous()}
        save_file(tensors, ROOT / f"{name}.expected.safetensors", {"float32_errors": json.dumps(errors)})
        print(name, errors, sum(p.numel() for p in model.parameters()))


if __name__ == "__main__":
    main()
