"""Starting values that let a rotary transformer see neighbours from the first step: whitened patches, and
heads that look in fixed directions."""

import math

import torch

# Directions in patches (x, y); further heads start over.
OFFSETS = ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, -1), (1, -1), (-1, 1))


@torch.no_grad()
def whiten_patches(patch_projection, pixels):
    """Sets the patch embedding to the principal directions of real patches, each scaled to unit variance and
    taken with both signs.

    pixels: (B, 3, H, W) normalised images. Channels beyond twice the number of directions keep their random
    start.
    """
    weight = patch_projection.weight  # (C, 3, P, P)
    size = weight.shape[-1]
    patches = torch.nn.functional.unfold(pixels, size,
                                         stride=size).transpose(1, 2).reshape(-1, weight[0].numel())
    values, directions = torch.linalg.eigh(torch.cov(patches.T))
    filters = (directions / (values + 1e-2).sqrt()).T.flip(0)  # (3PP, 3PP), strongest first
    count = min(len(filters), weight.shape[0])
    weight[:count] = filters[:count].reshape(count, *weight.shape[1:])
    rest = min(len(filters), weight.shape[0] - count)
    weight[count:count + rest] = -weight[:rest]
    patch_projection.bias.zero_()


@torch.no_grad()
def point_heads(attention, theta, sharpness):
    """Gives the query and key biases values whose rotated product peaks where a key lies OFFSETS[head]
    patches from the query.

    With constant q and k, rotation leaves sum_i cos(w_i (dx - ox)) + sum_i cos(w_i (dy - oy)): the largest at
    (ox, oy).
    """
    heads, dim = attention.num_heads, attention.head_dim
    angles = dim // 4
    frequencies = theta**(-torch.arange(angles) / angles)
    amplitude = math.sqrt(sharpness * math.sqrt(dim))
    bias = torch.zeros(3, heads, dim // 2, 2)  # pairs of neighbors: x first, then y
    for head in range(heads):
        x, y = OFFSETS[head % len(OFFSETS)]
        turn = torch.cat([frequencies * x, frequencies * y])
        # The key is rotated back by the offset, so that it lines up with a query at a distance of
        # exactly that.
        bias[0, head, :, 0] = amplitude
        bias[1, head, :, 0] = amplitude * torch.cos(turn)
        bias[1, head, :, 1] = -amplitude * torch.sin(turn)
    attention.qkv.bias.copy_(bias.flatten())
    attention.qkv.weight[:2 * heads * dim] *= 0.5
