"""Tiny random instances of the classes of transformers, and what the library computes with them."""

import importlib
import re
from pathlib import Path

import numpy as np
import torch
import transformers

VOCABULARY = 99
# Sizes that are enough to show how a class computes; larger ones are reduced to these.
SMALL = {
    "hidden_size": 32, "embed_dim": 32, "d_model": 32, "text_embed_dim": 32, "encoder_hidden_size": 32, "cross_attention_hidden_size": 32,
    "num_hidden_layers": 3, "num_layers": 3, "depth": 3, "layers": 3, "encoder_layers": 2, "decoder_layers": 2,
    "num_attention_heads": 4, "attention_heads": 4, "num_heads": 4, "num_key_value_heads": 4, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "head_dim": 8, "intermediate_size": 48, "ffn_dim": 48, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
    "d_ff": 48, "d_kv": 8, "projection_dim": 24, "image_text_hidden_size": 24, "out_hidden_size": 40, "projector_hidden_size": 40,
    "alignment_intermediate_size": 56, "num_experts": 2, "num_local_experts": 2, "n_routed_experts": 2, "moe_intermediate_size": 24,
    "q_lora_rank": 8, "kv_lora_rank": 8, "vocab_size": VOCABULARY, "max_position_embeddings": 64, "num_patches": 16,
    "position_embedding_size": 64, "pooler_output_size": 32, "num_position_embeddings": 16, "window_size": 32}
TOKEN_IDS = ("pad_token_id", "bos_token_id", "eos_token_id", "sep_token_id", "image_token_id", "image_token_index", "video_token_id",
             "video_token_index", "vision_start_token_id", "vision_end_token_id", "image_start_token_id", "image_end_token_id")


def reduce_config(config, image=64, patch=8, changes=None):
    """Shrinks a configuration and those inside it, in place. `changes` are set where the key is there, those of
    "inner.key" in the configuration of that name."""
    for key, value in list(vars(config).items()):
        if hasattr(value, "to_dict"):
            reduce_config(value, image, patch, changes)
        elif key in SMALL and isinstance(value, int) and not isinstance(value, bool) and value > SMALL[key]:
            setattr(config, key, SMALL[key])
        elif key in ("image_size", "crop_size") and value is not None:
            setattr(config, key, [image, image] if isinstance(value, (list, tuple)) else image)
        elif key == "patch_size" and value is not None:
            setattr(config, key, [patch, patch] if isinstance(value, (list, tuple)) else patch)
        elif key in TOKEN_IDS and isinstance(value, int) and value >= VOCABULARY:
            setattr(config, key, VOCABULARY - 1)
        elif key == "layer_types" and isinstance(value, (list, tuple)):
            setattr(config, key, list(value)[:SMALL["num_hidden_layers"]])
    for key, value in (changes or {}).items():
        inner, _, name = key.rpartition(".")
        if not inner and hasattr(config, key):
            setattr(config, key, value)
        elif inner and hasattr(config, inner):
            setattr(getattr(config, inner), name, value)
    return config


def find_class(name):
    """A class of transformers, exported or not."""
    if hasattr(transformers, name):
        return getattr(transformers, name)
    for file in (Path(transformers.__file__).parent / "models").glob("*/modeling_*.py"):
        if re.search(rf"^class {name}\(", file.read_text(encoding="utf-8"), re.M):
            return getattr(importlib.import_module(f"transformers.models.{file.parent.name}.{file.stem}"), name)
    raise LookupError(f"transformers {transformers.__version__} has no class {name}")


def randomize(model, seed):
    """Weights of the scale of trained ones: norms near 1, matrices that keep the variance, biases that matter."""
    generator = torch.Generator().manual_seed(seed)
    saved = set(model.state_dict())
    with torch.no_grad():
        for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
            if name not in saved or not tensor.is_floating_point() or "inv_freq" in name or "clip" in name.rsplit(".", 1)[-1]:
                continue
            noise = torch.randn(tensor.shape, generator=generator)
            last = name.rsplit(".", 1)[-1]
            if tensor.ndim == 0:
                continue
            if tensor.ndim == 1 and ("weight" in last or "lambda" in last or "scale" in last or "gamma" in last):
                tensor.copy_(1 + 0.2 * noise)
            elif tensor.ndim == 1:
                tensor.copy_(0.1 * noise)
            elif "position" in name or "pos_emb" in name or "token" in last or "newline" in last:
                tensor.copy_(0.5 * noise)
            else:
                tensor.copy_(noise * 1.2 / max(1, tensor[0].numel()) ** 0.5)
    return model.eval()


def make(name, seed=0, image=64, patch=8, changes=None):
    """A random instance of a class, float32."""
    cls = find_class(name)
    torch.manual_seed(seed)
    config = reduce_config(cls.config_class(), image, patch, changes)
    config._attn_implementation = "eager"
    return randomize(cls(config), seed).float()


def pixels_of(rows, columns, seed, channels=3):
    """Pixels as a preprocessor gives them, (1, channels, rows, columns)."""
    return np.random.default_rng(seed).standard_normal((1, channels, rows, columns)).astype(np.float32)
