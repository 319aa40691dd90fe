"""Writes data/golden/layouts: tiny random checkpoints that no library names, with inputs and named results.

    python tests/golden/make_vit_pytorch_golden.py     (a few seconds; needs what make_golden.py needs, and
                                                        vit-pytorch)

They are what a custom training writes: a state dict without any config, which is loaded by a layout
file (vit/weights/layouts.md). Every folder holds the weights and expected.safetensors, whose tensors are those of
make_golden.py. layout.json is for vit-pytorch's models the file of data/layouts with the sizes that a state dict does
not show, and written by hand for the third.

    vit-pytorch-vit          model.pth: the state dict of vit_pytorch.ViT. Heads wider than the model, norms around
                             the projection of patches whose pixels keep their channels side by side, a class token
                             and a learned table.
    vit-pytorch-simple-vit   model.safetensors: the state dict of vit_pytorch.SimpleViT. Heads narrower than the
                             model, no bias in attention, sines and cosines that are not stored, the mean of patches.
    own-rope                 model.pth: {"model": state dict, "step": a number} of the model in this file. Its
                             tensors:

        trunk.stem.weight (C, 3, P, P), .bias (C)                    convolution
        trunk.memory (R, C)                                          register tokens
        trunk.stage.K.ln_a.weight, .bias (C)                         before attention
        trunk.stage.K.attn.query|key|value.weight (A, C)             no bias
        trunk.stage.K.attn.merge.weight (C, A)                       no bias
        trunk.stage.K.ln_b.weight, .bias (C)                         before the MLP
        trunk.stage.K.ffn.expand.weight (2M, C), .bias (2M)          gate rows, then value rows
        trunk.stage.K.ffn.shrink.weight (C, M), .bias (C)
        trunk.ln_out.weight, .bias (C)
        classifier.weight (classes, C), .bias (classes)
        trunk.frequencies (d / 4)                                    a buffer, to be ignored

vit-pytorch's models run at one size only; that size is a rectangle, so that rows and columns differ.
"""

import argparse
import json
from pathlib import Path

import torch
from make_golden import expected_tensors, parameters_without_effect
from safetensors.torch import load_file, save_file
from torch import nn
from vit_pytorch import SimpleViT, ViT

DATA = Path(__file__).resolve().parents[2] / "data"
ROOT = DATA / "golden" / "layouts"
DEPTH = 2


class OwnAttention(nn.Module):

    def __init__(self, dim, heads, head_dim):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(dim, heads * head_dim, bias=False) for _ in range(3))
        self.merge = nn.Linear(heads * head_dim, dim, bias=False)

    def forward(self, x, cosines, sines, num_registers):
        q, k, v = (part(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
                   for part in (self.query, self.key, self.value))
        q, k = (rotate(part, cosines, sines, num_registers) for part in (q, k))
        weights = (q @ k.transpose(-1, -2) * q.shape[-1]**-0.5).softmax(-1)
        return self.merge((weights @ v).transpose(1, 2).flatten(2))


def rotate(x, cosines, sines, num_registers):
    """Channel i and channel i + d / 2 of every patch by angle i; registers stay."""
    registers, patches = x[:, :, :num_registers], x[:, :, num_registers:]
    first, second = patches.chunk(2, -1)
    rotated = torch.cat((first * cosines - second * sines, second * cosines + first * sines), -1)
    return torch.cat((registers, rotated), 2)


class OwnFeedForward(nn.Module):

    def __init__(self, dim, hidden):
        super().__init__()
        self.expand, self.shrink = nn.Linear(dim, 2 * hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        gate, value = self.expand(x).chunk(2, -1)
        return self.shrink(nn.functional.silu(gate) * value)


class OwnStage(nn.Module):

    def __init__(self, dim, heads, head_dim, hidden):
        super().__init__()
        self.ln_a, self.ln_b = nn.LayerNorm(dim), nn.LayerNorm(dim)
        self.attn, self.ffn = OwnAttention(dim, heads, head_dim), OwnFeedForward(dim, hidden)

    def forward(self, x, *rotation):
        x = x + self.attn(self.ln_a(x), *rotation)
        return x + self.ffn(self.ln_b(x))


class OwnTrunk(nn.Module):

    def __init__(self, patch, dim, heads, head_dim, hidden, registers, theta):
        super().__init__()
        self.stem = nn.Conv2d(3, dim, patch, patch)
        self.memory = nn.Parameter(torch.zeros(registers, dim))
        self.stage = nn.ModuleList(OwnStage(dim, heads, head_dim, hidden) for _ in range(DEPTH))
        self.ln_out = nn.LayerNorm(dim)
        count = head_dim // 4
        self.register_buffer("frequencies", theta**(-torch.arange(count, dtype=torch.float64) / count))

    def rotation(self, rows, columns):
        """One value per angle: the first half of the angles counts rows, the second columns."""
        row, column = (index.flatten()[:, None] * self.frequencies.double() for index in torch.meshgrid(
            torch.arange(rows), torch.arange(columns), indexing="ij"))
        angles = torch.cat((row, column), -1)
        return (part.to(self.memory.dtype) for part in (angles.cos(), angles.sin()))

    def forward(self, pixels):
        x = self.stem(pixels)
        rotation = (*self.rotation(*x.shape[2:]), len(self.memory))
        x = torch.cat((self.memory.expand(len(x), -1, -1), x.flatten(2).transpose(1, 2)), 1)
        for stage in self.stage:
            x = stage(x, *rotation)
        return self.ln_out(x)


class OwnModel(nn.Module):

    def __init__(self, classes, **kwargs):
        super().__init__()
        self.trunk = OwnTrunk(**kwargs)
        self.classifier = nn.Linear(kwargs["dim"], classes)

    def forward(self, pixels):
        return self.classifier(self.trunk(pixels)[:, len(self.trunk.memory):].mean(1))


# Sizes as in make_golden.py. Where pixels are normalized once more, they have so little contrast that the
# epsilon of that norm shows.
CASES = {
    "vit-pytorch-vit": dict(build=lambda: ViT(image_size=(16, 24), patch_size=8, num_classes=7, dim=36,
                                              depth=DEPTH, heads=3, dim_head=20, mlp_dim=58),
                            sizes=dict(image_height=16, image_width=24, head_dim=20),
                            file="model.pth", contrast=0.05, native=(16, 24)),
    "vit-pytorch-simple-vit": dict(build=lambda: SimpleViT(image_size=(24, 16), patch_size=8, num_classes=5,
                                                           dim=40, depth=DEPTH, heads=3, dim_head=8, mlp_dim=70),
                                   sizes=dict(image_height=24, image_width=16, head_dim=8),
                                   file="model.safetensors", contrast=0.05, native=(24, 16)),
    "own-rope": dict(build=lambda: OwnModel(classes=6, patch=8, dim=28, heads=2, head_dim=20, hidden=38, registers=3,
                                            theta=30.0),
                     file="model.pth", contrast=1.0, native=(24, 24), wide=(16, 40), large=(40, 40)),
}  # fmt: skip # yapf: disable


@torch.no_grad()
def randomize(model, seed):
    """Weights that make every detail visible: norms away from one, biases away from zero, and tokens so small
    that a wrong epsilon shows."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        noise = torch.randn(p.shape, generator=generator)
        if p.ndim == 4:
            p.copy_(noise * 0.04 / p[0].numel()**0.5)
        elif "embedding.3" in name or name.endswith("stem.bias"):  # the norm after the projection
            p.copy_(0.02 * noise)
        elif name.endswith(("pos_embedding", "cls_token", "memory")):
            p.copy_(0.02 * noise)
        elif p.ndim == 2:
            p.copy_(noise * 1.5 / p.shape[1]**0.5)
        elif name.endswith("weight"):
            p.copy_(1 + 0.3 * noise)
        else:
            p.copy_(0.4 * noise)
    return model.eval()


@torch.no_grad()
def run_vit_pytorch(model, pixels):
    kept = {}
    inner = model.transformer
    readers = [layer[0] for layer in inner.layers[1:]] + [inner.norm]  # what reads the output of a block
    hooks = [inner.register_forward_pre_hook(lambda _, inputs: kept.update(tokens_in=inputs[0].clone()))]
    hooks += [
        reader.register_forward_pre_hook(lambda _, inputs, k=k: kept.update({f"block.{k}": inputs[0]}))
        for k, reader in enumerate(readers)
    ]
    hooks.append(inner.register_forward_hook(lambda _, inputs, output: kept.update(tokens=output)))
    hooks.append(model.to_latent.register_forward_hook(lambda _, inputs, output: kept.update(pooled=output)))
    kept["logits"] = model(pixels)
    for hook in hooks:
        hook.remove()
    return kept


@torch.no_grad()
def run_own(model, pixels):
    kept = {}
    trunk = model.trunk
    rows, columns = (edge // trunk.stem.kernel_size[0] for edge in pixels.shape[2:])
    kept["rope_cos"], kept["rope_sin"] = trunk.rotation(rows, columns)
    hooks = [trunk.stage[0].register_forward_pre_hook(lambda _, inputs: kept.update(tokens_in=inputs[0]))]
    hooks += [
        stage.register_forward_hook(lambda _, inputs, output, k=k: kept.update({f"block.{k}": output}))
        for k, stage in enumerate(trunk.stage)
    ]
    hooks.append(trunk.register_forward_hook(lambda _, inputs, output: kept.update(tokens=output)))
    hooks.append(
        model.classifier.register_forward_pre_hook(lambda _, inputs: kept.update(pooled=inputs[0])))
    kept["logits"] = model(pixels)
    for hook in hooks:
        hook.remove()
    return kept


def inputs_of(case, seed):
    generator = torch.Generator().manual_seed(seed)
    return {
        name: case["contrast"] * torch.randn((2 if name == "native" else 1, 3, *case[name]), generator=generator)
        for name in ("native", "wide", "large") if name in case
    }


def save(model, path):
    state = model.state_dict()
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        torch.save({"model": state, "step": 1200} if isinstance(model, OwnModel) else state, path)


def save_layout(name, sizes, folder):
    layout = json.loads((DATA / "layouts" / f"{name}.json").read_text(encoding="utf-8"))
    layout["config"].update(sizes)
    text = json.dumps(layout, indent=2, ensure_ascii=False) + "\n"
    (folder / "layout.json").write_text(text, encoding="utf-8")


def load(case, path):
    state = load_file(path) if path.suffix == ".safetensors" else torch.load(path, weights_only=True)
    model = case["build"]()
    model.load_state_dict(state.get("model", state))
    return model.eval()


def write_case(name, case, seed):
    torch.manual_seed(seed)
    model = randomize(case["build"](), seed)
    run = run_own if isinstance(model, OwnModel) else run_vit_pytorch
    inputs = inputs_of(case, 1000 + seed)
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / case["file"]
    save(model, path)
    if "sizes" in case:
        save_layout(name, case["sizes"], folder)
    tensors = expected_tensors(model, run, inputs)
    for key, value in run(load(case, path), inputs["native"]).items():
        if not torch.equal(value, tensors[f"native.{key}"]):
            raise SystemExit(f"{name}: the stored model gives another native.{key}")
    save_file(tensors, folder / "expected.safetensors")
    if unseen := parameters_without_effect(model, run, inputs["native"]):
        raise SystemExit(f"{name}: no effect of {', '.join(unseen)}")
    for file in folder.iterdir():
        file.chmod(0o644)
    size = sum(f.stat().st_size for f in folder.iterdir())
    print(f"{name:24} {size / 1e3:6.0f} kB  spread {tensors['native.logits'].std().item():.2f}")


def main():
    argparse.ArgumentParser(description=__doc__,
                            formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    torch.set_num_threads(1)
    for seed, (name, case) in enumerate(CASES.items(), start=400):
        write_case(name, case, seed)


if __name__ == "__main__":
    main()
