"""Muon: orthogonalised momentum for matrices (Jordan et al. 2024)."""

import torch

# Quintic Newton-Schulz coefficients of Jordan et al.: steep at zero, so that five steps bring every singular
# value near one.
COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def orthogonalise(matrices):
    """(M, R, C) stacked matrices, each replaced by approximately U V^T of its singular value
    decomposition."""
    a, b, c = COEFFICIENTS
    transposed = matrices.shape[1] > matrices.shape[2]
    x = matrices.mT if transposed else matrices
    x = x / (x.norm(dim=(1, 2), keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = a * x + (b * gram + c * gram @ gram) @ x
    return x.mT if transposed else x


class Muon(torch.optim.Optimizer):
    """Matrices of one shape are orthogonalised in one batch. A fused qkv weight counts as three matrices, the
    filters of a convolution (O, I, H, W) as one of O rows. Directions are computed in dtype; map_over may be that of
    a pool of threads, which then take a shape each."""

    def __init__(self, named_parameters, lr, momentum=0.95, weight_decay=0.0, dtype=torch.float32, map_over=map):
        named = list(named_parameters)
        super().__init__([p for _, p in named],
                         {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self.dtype, self.map_over = dtype, map_over
        self.parts = {id(p): 3 if name.endswith("qkv.weight") else 1 for name, p in named}

    @torch.no_grad()
    def step(self):
        group = self.param_groups[0]
        by_shape = {}
        for p in group["params"]:
            state = self.state[p]
            if "momentum" not in state:
                state["momentum"] = torch.zeros_like(p)
            state["momentum"].lerp_(p.grad, 1 - group["momentum"])
            direction = p.grad.lerp(state["momentum"], group["momentum"])
            for target, update in zip(p.chunk(self.parts[id(p)]), direction.chunk(self.parts[id(p)])):
                by_shape.setdefault(target.flatten(1).shape, []).append((target, update.flatten(1)))
        stacks = [torch.stack([update for _, update in pairs]).to(self.dtype) for pairs in by_shape.values()]
        for (shape, pairs), updates in zip(by_shape.items(), self.map_over(orthogonalise, stacks)):
            scale = max(1.0, shape[0] / shape[1])**0.5
            for (target, _), update in zip(pairs, updates):
                target.mul_(1 - group["lr"] * group["weight_decay"])
                target.add_(update.view_as(target), alpha=-group["lr"] * scale)
