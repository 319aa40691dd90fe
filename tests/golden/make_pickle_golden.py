"""Writes data/golden/pickle: one tiny torch.save file per form that checkpoints take, and expected.safetensors.

Run with PyTorch and safetensors installed: python tests/golden/make_pickle_golden.py
The tests open each file and compare its tensors with those named "<form>/<tensor>" in expected.safetensors.
"""

import argparse
import collections
import copy
import pathlib

import torch
from safetensors.torch import save_file

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "data" / "golden" / "pickle"


def numbers(*shape, dtype=torch.float32, start=0):
    """Distinct values that bfloat16 holds exactly, negative ones among them."""
    count = torch.Size(shape).numel()
    return (torch.arange(start, start + count, dtype=torch.float64) * 0.5 - 3.0).to(dtype).reshape(shape)


def build_forms():
    """form -> (object to save, keyword arguments of torch.save, tensors that a reader must find)"""
    weight, bias = numbers(3, 4), numbers(3, start=50)
    plain = {"weight": weight, "bias": bias}
    forms = {"plain": (plain, {}, plain)}

    module = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    with torch.no_grad():
        for index, tensor in enumerate(module.parameters()):
            tensor.copy_(numbers(*tensor.shape, start=20 * index))
    state = {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}
    forms["module_state"] = (module.state_dict(), {}, state)  # OrderedDict with _metadata, an integer scalar
    forms["parameters"] = (dict(module.named_parameters()), {}, {n: state[n] for n, _ in module.named_parameters()})
    forms["protocol5"] = (module.state_dict(), {"pickle_protocol": 5}, state)

    trained = copy.deepcopy(module)  # the forms above hold the tensors of module itself
    optimizer = torch.optim.AdamW(trained.parameters())
    trained(numbers(4, 2)).sum().backward()
    optimizer.step()
    after = {name: tensor.detach().clone() for name, tensor in trained.state_dict().items()}
    training = {
        "model": after,
        "optimizer": optimizer.state_dict(),
        "lr_scheduler": torch.optim.lr_scheduler.MultiStepLR(optimizer, [3, 5]).state_dict(),
        "epoch": 7,
        "seed": 2**63 + 5,
        "best": -(2**70),
        "args": argparse.Namespace(lr=1e-3, name="tiny", resume=None, sizes=[1, 2], betas=(0.9, 0.95)),
    }
    forms["training"] = (training, {}, after)
    forms["nested"] = ({"epoch": 1, "state_dict": {"module": plain, "step": 3}}, {}, plain)
    forms["teacher"] = ({"student": {"weight": bias}, "teacher": collections.OrderedDict(plain)}, {}, plain)
    forms["members"] = ({**plain, "epoch": 3, "name": "tiny", "sizes": torch.Size([1, 2])}, {}, plain)

    views = {
        "transposed": weight.t(),
        "column": weight[:, 1],
        "row": weight[2],
        "every_second": weight[:, ::2],
        "expanded": bias[:1].expand(5),
        "permuted": numbers(2, 3, 4).permute(2, 0, 1),
        "scalar": torch.tensor(2.5),
        "empty": torch.zeros(0, 3),
        "whole": weight,
    }
    forms["views"] = (views, {}, views)  # four of them share one storage

    types = {
        "f32": torch.tensor([0.0, -0.0, 1e-45, float("inf"), 3.4028235e38]),
        "f16": torch.tensor([0.0, 5.9604645e-08, 6.0975552e-05, 65504.0, float("-inf")], dtype=torch.float16),
        "bf16": numbers(5, dtype=torch.bfloat16),
        "f64": numbers(2, 2, dtype=torch.float64) / 3.0,
    }
    others = {
        str(dtype).removeprefix("torch."): torch.ones(2, dtype=dtype)
        for dtype in (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool, torch.complex64)
    }
    forms["types"] = ({**types, **others}, {}, types)
    return forms


def main():
    torch.manual_seed(0)
    FOLDER.mkdir(parents=True, exist_ok=True)
    expected = {}
    for form, (saved, arguments, tensors) in build_forms().items():
        torch.save(saved, FOLDER / f"{form}.pth", **arguments)
        for name, tensor in tensors.items():
            expected[f"{form}/{name}"] = tensor.detach().to(torch.float64).contiguous().clone()
    torch.save({"weight": numbers(2)}, FOLDER / "before_zip.pth", _use_new_zipfile_serialization=False)
    torch.save({"weight": numbers(2), "path": pathlib.PurePosixPath("x")}, FOLDER / "foreign_class.pth")
    torch.jit.script(torch.nn.Linear(1, 1)).save(str(FOLDER / "torchscript.pt"))
    save_file(expected, FOLDER / "expected.safetensors")


if __name__ == "__main__":
    main()
