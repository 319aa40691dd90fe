"""The forward pass of timm's axial rotary ViT as this project trains it, in few and large operations, for training in
bfloat16.

On a processor that multiplies bfloat16 it costs half of timm's own pass, whose fused attention is slow backwards for
few tokens. Weights, names and values are those of the timm model that it is made from.
"""

import torch
from torch.nn import functional


def norm(x, layer):
    return functional.layer_norm(x, layer.normalized_shape, layer.weight, layer.bias, layer.eps)


def scaled_linear(x, layer, gamma):
    """gamma * layer(x), LayerScale at the price of the weights instead of the tokens."""
    return functional.linear(x, gamma[:, None] * layer.weight, gamma * layer.bias)


def rotated(qk, cos, sin):
    """qk (B, N, 2, heads, head_dim): every pair of channels (2i, 2i + 1) turned by its token's angle, cos and sin
    (N, 1, 1, head_dim / 2), or with a B before that."""
    even, odd = qk.unflatten(-1, (-1, 2)).unbind(-1)
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)


def attention(x, layer, cos, sin):
    batch, tokens, _ = x.shape
    heads, width = layer.num_heads, layer.head_dim
    qkv = functional.linear(x, layer.qkv.weight, layer.qkv.bias).view(batch, tokens, 3, heads, width)
    if x.is_cuda:
        q, k = rotated(qkv[:, :, :2], cos, sin).permute(2, 0, 3, 1, 4).unbind(0)
        return functional.scaled_dot_product_attention(q, k, qkv[:, :, 2].transpose(1, 2)).transpose(1, 2).flatten(2)
    q, k = rotated(qkv[:, :, :2], cos, sin).permute(2, 0, 3, 1, 4).reshape(2, -1, tokens, width).unbind(0)
    v = qkv[:, :, 2].transpose(1, 2).reshape(-1, tokens, width)
    weights = (torch.bmm(q, k.transpose(1, 2)) * layer.scale).softmax(-1)
    return torch.bmm(weights, v).view(batch, heads, tokens, width).transpose(1, 2).reshape(batch, tokens, -1)


def logits_of(model, images, cos, sin, kept):
    """(B, classes) of normalised images (B, 3, H, W); cos and sin have a row for each token. kept: indices (B, N) of the
    patches that are not dropped, or None."""
    edge = model.patch_embed.patch_size[0]
    batch, channels, height, width = images.shape
    patches = images.view(batch, channels, height // edge, edge, width // edge, edge).permute(0, 2, 4, 1, 3, 5)
    projection = model.patch_embed.proj
    patches = patches.reshape(batch, -1, channels * edge**2)
    if kept is not None:
        patches = patches.gather(1, kept[:, :, None].expand(-1, -1, patches.shape[2]))
    x = functional.linear(patches, projection.weight.flatten(1), projection.bias)
    x = torch.cat([model.cls_token.expand(batch, -1, -1), x], 1)
    for block in model.blocks:
        x = x + scaled_linear(attention(norm(x, block.norm1), block.attn, cos, sin), block.attn.proj, block.gamma_1)
        hidden = functional.gelu(functional.linear(norm(x, block.norm2), block.mlp.fc1.weight, block.mlp.fc1.bias))
        x = x + scaled_linear(hidden, block.mlp.fc2, block.gamma_2)
    return model.head(norm(x[:, 1:].mean(1), model.fc_norm))


def turns(model, edge):
    """cos and sin (tokens, 1, 1, head_dim / 2) for images of edge x edge pixels; the class token is not turned."""
    grid = (edge // model.patch_embed.patch_size[0],) * 2
    sin, cos = (part[:, ::2] for part in model.rope.get_embed(grid).chunk(2, -1))
    return (torch.cat([torch.ones_like(cos[:1]), cos])[:, None, None],
            torch.cat([torch.zeros_like(sin[:1]), sin])[:, None, None])


class LeanForward(torch.nn.Module):
    """Images (B, 3, edge, edge), normalised floats, in, logits (B, classes) out, in the type of the weights."""

    def __init__(self, model, edges):
        super().__init__()
        self.model = model
        # Not buffers: frequencies would lose their digits before angles are made of them.
        self.turns = {edge: turns(model, edge) for edge in edges}
        self.compute = torch.compile(logits_of, dynamic=False)

    @property
    def patch_drop(self):
        """Where, as in timm's model, `prob` says what share of the patches is dropped in training."""
        return self.model.patch_drop

    def forward(self, images):
        kind = self.model.head.weight.dtype
        tables, kept = self.turns[images.shape[-1]], None
        if self.patch_drop and self.patch_drop.prob:
            order = torch.rand(len(images), len(tables[0]) - 1).argsort(1)
            kept = order[:, :max(1, int(order.shape[1] * (1 - self.patch_drop.prob)))]
            tokens = torch.cat([torch.zeros_like(kept[:, :1]), kept + 1], 1)
            tables = [table[tokens] for table in tables]
        return self.compute(self.model, images.to(kind), *(table.to(kind) for table in tables), kept)
