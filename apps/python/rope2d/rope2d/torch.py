"""The rotation as a torch module, with gradients through queries, keys and learned frequencies."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from ._types import Grid
from .conventions import Convention, convention


class RotaryEmbedding(nn.Module):
    """Rotates queries and keys (B, H, T, d) of a grid by a convention.

        rope = RotaryEmbedding("dinov3", head_dim=64)
        q, k = rope(q, k, grid=(14, 20), num_prefix_tokens=5)

    Tables are computed in float64, rounded to float32, cached for the last grids, and are no part of the state dict; the rotation is
    computed in float32 for halves of types. Of a mixed convention `frequencies` (H, d / 2, 2), x first, is a parameter, initialized
    as in rope-vit: random directions per head, magnitudes theta^(-k / F)."""

    pairs: Tensor

    def __init__(self, of: str | Convention, head_dim: int, num_heads: int = 1, *, theta: float = 10.0) -> None:
        super().__init__()
        self.convention = convention(of) if isinstance(of, str) else of
        self.head_dim, self.num_heads = head_dim, num_heads
        self.register_buffer("pairs", torch.as_tensor(self.convention.pairs(head_dim)), persistent=False)
        self._tables: dict[Any, tuple[Tensor, Tensor]] = {}
        self.frequencies: nn.Parameter | None = None
        if self.convention.kind == "mixed":
            if head_dim % 4:
                raise ValueError(f"head_dim={head_dim}: expected a multiple of 4")
            size = theta ** (-torch.arange(head_dim // 4) / (head_dim / 4))
            turn = torch.rand(num_heads, 1) * 2 * torch.pi
            directions = torch.stack([torch.cos(turn), torch.sin(turn)], -1)  # (H, 1, 2), and perpendicular ones
            across = torch.stack([-torch.sin(turn), torch.cos(turn)], -1)
            self.frequencies = nn.Parameter(torch.cat([size[:, None] * directions, size[:, None] * across], 1))

    def tables(self, grid: Grid, device: Any = None, **of_grid: Any) -> tuple[Tensor, Tensor]:
        """Cosines and sines (N, A), or (H, N, A); of a mixed convention with gradients of its frequencies."""
        if self.frequencies is not None:
            coords = self.convention.coords(grid, **of_grid)
            at = torch.stack([torch.as_tensor(coords.t_x), torch.as_tensor(coords.t_y)]).to(self.frequencies)
            angles = at[0, :, None] * self.frequencies[:, None, :, 0] + at[1, :, None] * self.frequencies[:, None, :, 1]
            return angles.cos(), angles.sin()
        key = (tuple(grid), str(device), tuple(sorted(of_grid.items())))
        if key not in self._tables:
            table = self.convention.table(grid, self.head_dim, self.num_heads, dtype="float32", **of_grid)
            while len(self._tables) >= 8:
                self._tables.pop(next(iter(self._tables)))
            self._tables[key] = (torch.tensor(table.cos, device=device), torch.tensor(table.sin, device=device))
        return self._tables[key]

    def rotate(
        self, x: Tensor, cos: Tensor, sin: Tensor, num_prefix_tokens: int = 0, num_suffix_tokens: int = 0
    ) -> Tensor:
        """x (B, H, T, d) rotated; the first and last tokens stay as they are."""
        first, last = num_prefix_tokens, x.shape[-2] - num_suffix_tokens
        if x.shape[-1] != self.head_dim or last - first != cos.shape[-2]:
            raise ValueError(
                f"x {tuple(x.shape)}: expected {cos.shape[-2]} patches and heads of {self.head_dim} channels"
            )
        p, q = self.pairs[:, 0], self.pairs[:, 1]
        patches = x[..., first:last, :]
        wide = patches if patches.dtype == torch.float64 else patches.float()
        x_p, x_q = wide[..., p], wide[..., q]
        per_channel = self.convention.angles_per == "per_channel"
        cos_p, sin_p, cos_q, sin_q = (t[..., at] if per_channel else t for at in (p, q) for t in (cos, sin))
        rotated = wide.clone()
        rotated[..., p] = x_p * cos_p - x_q * sin_p
        rotated[..., q] = x_q * cos_q + x_p * sin_q
        return torch.cat([x[..., :first, :], rotated.to(x.dtype), x[..., last:, :]], -2)

    def forward(
        self, q: Tensor, k: Tensor, grid: Grid, num_prefix_tokens: int = 0, num_suffix_tokens: int = 0, **of_grid: Any
    ) -> tuple[Tensor, Tensor]:
        """q and k (B, H, T, d), rotated; `of_grid` are frames, window and reference of Convention.coords()."""
        cos, sin = self.tables(grid, q.device, **of_grid)
        return (
            self.rotate(q, cos, sin, num_prefix_tokens, num_suffix_tokens),
            self.rotate(k, cos, sin, num_prefix_tokens, num_suffix_tokens),
        )
