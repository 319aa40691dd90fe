#!/usr/bin/env python3
"""Writes what is known of published architectures: table.inc next to this file, and the numbers of parameters that
tests/weights/families_tests.cpp compares.

    python3 vit/weights/architectures/make_table.py            write both files
    python3 vit/weights/architectures/make_table.py --check    exit with 1 where a committed file is not current

Needs timm and PyTorch; building and testing the library does not. Every model of timm's classes VisionTransformer,
VisionTransformerDistilled and Eva, and the image towers of SigLIP 2 NaFlex, are constructed without memory ("meta" tensors). A row holds the arguments with which
timm's registry calls the constructor, where they differ from the defaults of TimmArgs, and the preprocessing of the
first tag of the name. A model that asks for something the library does not have is left out; the header of the table
says why. What the publishers call these models is listed below with its source.
"""

import argparse
import contextlib
import functools
import inspect
import re
import sys
import textwrap
from pathlib import Path

import timm
import torch
from timm.layers import Mlp, PatchEmbed, RmsNorm, SwiGLU, SwiGLUPacked
from timm.layers import LayerNorm as TimmLayerNorm
from timm.models import _registry, beit, deit, eva, naflexvit, vision_transformer, vision_transformer_relpos
from torch import nn

HERE = Path(__file__).resolve().parent
TABLE = HERE / "table.inc"
PARAMETERS = HERE.parents[2] / "tests/weights/architecture_parameters.inc"

MODULES = ("vision_transformer", "deit", "eva", "beit", "vision_transformer_relpos")

# The word of this library for a line of models; the first pattern that is found in timm's name decides.
FAMILIES = (
    (r"_patch16_rope_reg\d_gap", "sbb-rope"),
    (r"_rope_", "rope-vit"),
    (r"^eva02_", "eva02"),
    (r"^eva_", "eva"),
    (r"_dinov3", "dinov3"),
    (r"_lingbot", "lingbot"),
    (r"^vit_pe_", "pe"),
    (r"_dinov2", "dinov2"),
    (r"_tipsv2", "tipsv2"),
    (r"_radio_", "radio"),
    (r"_siglip_", "siglip"),
    (r"_clip_", "clip"),
    (r"^deit3_", "deit3"),
    (r"^deit_", "deit"),
    (r"^beit", "beit"),
    (r"", "vit"),
)

# Tags that timm's list of former names still calls by a name of before.
RENAMED_TAGS = {"sam": "sam_in1k"}

# ---------------------------------------------------------------------------------------------- publishers' names
# {name: timm's name}, and the preprocessing of the publisher's own evaluation where it is not that of timm's row.


def naver():
    """github.com/naver-ai/rope-vit, models/vit_rope.py and deit/models_v2.py: names of the model functions."""
    rules = {"axial": "", "mixed": "mixed_", "axial_ape": "ape_", "mixed_ape": "mixed_ape_"}
    for kind, middle in rules.items():
        for size in ("small", "base", "large"):
            yield f"rope_{kind}_deit_{size}_patch16_LS", f"vit_{size}_patch16_rope_{middle}224", {}


BAAI = {
    "eva02_Ti_pt_in21k_p14": "eva02_tiny_patch14_224",
    "eva02_S_pt_in21k_p14": "eva02_small_patch14_224",
    "eva02_B_pt_in21k_p14": "eva02_base_patch14_224",
    "eva02_L_pt_in21k_p14": "eva02_large_patch14_224",
    "eva02_L_pt_m38m_p14": "eva02_large_patch14_224",
    "eva02_Ti_pt_in21k_ft_in1k_p14": "eva02_tiny_patch14_336",
    "eva02_S_pt_in21k_ft_in1k_p14": "eva02_small_patch14_336",
    "eva02_B_pt_in21k_ft_in1k_p14": "eva02_base_patch14_448",
    "eva02_L_pt_in21k_ft_in1k_p14": "eva02_large_patch14_448",
    "eva02_L_pt_m38m_ft_in1k_p14": "eva02_large_patch14_448",
    "eva02_B_pt_in21k_medft_in21k_p14": "eva02_base_patch14_448",
    "eva02_L_pt_in21k_medft_in21k_p14": "eva02_large_patch14_448",
    "eva02_L_pt_m38m_medft_in21k_p14": "eva02_large_patch14_448",
    "eva02_B_pt_in21k_medft_in21k_ft_in1k_p14": "eva02_base_patch14_448",
    "eva02_L_pt_in21k_medft_in21k_ft_in1k_p14": "eva02_large_patch14_448",
    "eva02_L_pt_m38m_medft_in21k_ft_in1k_p14": "eva02_large_patch14_448",
    "EVA02_CLIP_B_psz16_s8B": "eva02_base_patch16_clip_224",
    "EVA02_CLIP_L_psz14_s4B": "eva02_large_patch14_clip_224",
    "EVA02_CLIP_L_336_psz14_s6B": "eva02_large_patch14_clip_336",
}


def baai():
    """github.com/baaivision/EVA, EVA-02/asuka/README.md and EVA-CLIP/README.md: names of the weight files."""
    for name, timm_name in BAAI.items():
        # fine-tuned straight from masked image modelling: center crop; after an intermediate fine-tuning: squash
        yield name, timm_name, {"squash": "medft" in name}


DINOV3 = {
    "dinov3_vits16": "vit_small_patch16_dinov3_qkvb",
    "dinov3_vits16plus": "vit_small_plus_patch16_dinov3_qkvb",
    "dinov3_vitb16": "vit_base_patch16_dinov3_qkvb",
    "dinov3_vitl16": "vit_large_patch16_dinov3_qkvb",
    "dinov3_vith16plus": "vit_huge_plus_patch16_dinov3_qkvb",
    "dinov3_vit7b16": "vit_7b_patch16_dinov3",
}


def meta_dinov3():
    """github.com/facebookresearch/dinov3, hubconf.py; the class token, and the transforms of its README."""
    values = {"squash": True, "filter": "bilinear", "resampler": "torchvision_uint8"}
    for name, timm_name in DINOV3.items():
        yield name, timm_name, {"args": {"global_pool": "token"}, **values}


def meta_dinov2():
    """github.com/facebookresearch/dinov2, hubconf.py; evaluated at 224 pixels of 256 whatever the table's size."""
    for registers, middle in (("", ""), ("_reg", "reg4_")):
        for letter, size in (("s", "small"), ("b", "base"), ("l", "large"), ("g", "giant")):
            name = f"dinov2_vit{letter}14{registers}"
            yield name, f"vit_{size}_patch14_{middle}dinov2", {"evaluated_at": 224, "crop_pct": 224 / 256}


PERCEPTION_ENCODER = {
    "PE-Core-T16-384": "core_tiny_patch16_384",
    "PE-Core-S16-384": "core_small_patch16_384",
    "PE-Core-B16-224": "core_base_patch16_224",
    "PE-Core-L14-336": "core_large_patch14_336",
    "PE-Core-G14-448": "core_gigantic_patch14_448",
    "PE-Lang-L14-448": "lang_large_patch14_448",
    "PE-Lang-L14-448-Tiling": "lang_large_patch14_448",
    "PE-Lang-G14-448": "lang_gigantic_patch14_448",
    "PE-Lang-G14-448-Tiling": "lang_gigantic_patch14_448",
    "PE-Spatial-T16-512": "spatial_tiny_patch16_512",
    "PE-Spatial-S16-512": "spatial_small_patch16_512",
    "PE-Spatial-B16-512": "spatial_base_patch16_512",
    "PE-Spatial-L14-448": "spatial_large_patch14_448",
    "PE-Spatial-G14-448": "spatial_gigantic_patch14_448",
}


def meta_pe():
    """github.com/facebookresearch/perception_models, core/vision_encoder/config.py and transforms.py."""
    for name, timm_name in PERCEPTION_ENCODER.items():
        yield name, f"vit_pe_{timm_name}", {"squash": True, "filter": "bilinear"}


PUBLISHERS = (("Naver", naver), ("BAAI", baai), ("Meta", meta_dinov3), ("Meta", meta_dinov2), ("Meta", meta_pe))

# --------------------------------------------------------------------------------------------- timm's constructors


class Unsupported(Exception):
    """The model asks for something that the library does not have."""


@contextlib.contextmanager
def recorded_arguments():
    """Keeps the arguments of every constructor of a model in the dictionary that it gives, keyed by the object."""
    found = {}
    originals = {}
    for kind in (vision_transformer.VisionTransformer, eva.Eva, beit.Beit, vision_transformer_relpos.VisionTransformerRelPos):
        original = originals[kind] = kind.__init__

        @functools.wraps(original)
        def record(self, *args, original=original, **kwargs):
            bound = inspect.signature(original).bind(self, *args, **kwargs)
            bound.apply_defaults()
            found[id(self)] = {k: v for k, v in bound.arguments.items() if k != "self"}
            original(self, *args, **kwargs)

        kind.__init__ = record
    try:
        yield found
    finally:
        for kind, original in originals.items():
            kind.__init__ = original


def construct(name):
    """The model without memory, and the arguments of its constructor."""
    with recorded_arguments() as found, torch.device("meta"):
        model = timm.create_model(name)
        return model, found.get(id(model))


# Arguments that matter while training only, or that say how timm allows other sizes.
INERT = {
    "drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate", "weight_init",
    "fix_init", "head_init_scale", "dynamic_img_size", "rope_shift_coords", "rope_jitter_coords", "rope_rescale_coords",
    "device", "dtype",
}  # fmt: skip

# Arguments whose other values change the arithmetic, and what the library has.
REQUIRED = {
    "in_chans": (3,),
    "dynamic_img_pad": (False,),
    "rope_mrope_section": (None,),
    "embed_layer": (PatchEmbed,),
    "block_fn": (vision_transformer.Block, vision_transformer.ParallelScalingBlock, vision_transformer.ResPostBlock,
                 vision_transformer.DiffParallelScalingBlock, vision_transformer_relpos.RelPosBlock, vision_transformer_relpos.ResPostRelPosBlock),
    "rel_pos_type": ("mlp", "bias"),
    "mlp_layer": (Mlp, SwiGLU, SwiGLUPacked),
    "attn_layer": (vision_transformer.Attention, "attn", "", None, "diff"),
    "global_pool": ("", "token", "avg", "map"),
    "pos_embed": ("learn", "none", ""),
    "attn_type": ("eva", "rope"),
    "rope_type": ("cat", "mixed", "dinov3", None),
    "rope_grid_indexing": ("ij", "xy"),
}

PARALLEL = (vision_transformer.ParallelScalingBlock, vision_transformer.DiffParallelScalingBlock)

# Arguments that have the meaning of the TimmArgs member of that name.
SAME_MEANING = (
    "patch_size", "embed_dim", "depth", "num_heads", "mlp_ratio", "num_classes", "pool_include_prefix", "class_token",
    "no_embed_class", "qkv_bias", "proj_bias", "qkv_fused", "scale_mlp", "scale_attn_inner", "swiglu_align_to",
    "rope_grid_offset", "rope_rotate_half", "qk_norm", "attn_only_layer_scale",
)  # fmt: skip
RENAMED = {"reg_tokens": "reg_tokens", "num_reg_tokens": "reg_tokens", "pre_norm": "pre_norm",
           "use_pre_transformer_norm": "pre_norm", "swiglu_mlp": "swiglu", "use_rot_pos_emb": "rope",
           "rope_temperature": "rope_temperature", "scale_attn_norm": "scale_attn_inner",
           "scale_mlp_norm": "scale_mlp", "use_rel_pos_bias": "rel_pos", "use_shared_rel_pos_bias": "shared_rel_pos",
           "shared_rel_pos": "shared_rel_pos"}  # fmt: skip
# None leaves the choice to the constructor, as an unset member does.
OPTIONAL = {"fc_norm": "fc_norm", "use_fc_norm": "fc_norm", "use_post_transformer_norm": "post_norm"}

# What the members of TimmArgs are where a row does not say; `fc_norm` and `post_norm` are then unset.
DEFAULTS = {
    "timm_class": "vision_transformer", "distilled": False, "beit": False, "image_height": 224, "image_width": 224, "patch_size": 16,
    "embed_dim": 768, "depth": 12, "num_heads": 12, "mlp_ratio": 4.0, "num_classes": 1000, "global_pool": "token",
    "pool_include_prefix": False, "class_token": True, "reg_tokens": 0, "no_embed_class": False, "pos_embed": True,
    "pos_embed_interp_mode": "bicubic_antialias", "pos_embed_antialias": True, "pos_embed_align_corners": False,
    "pos_embed_ar_preserving": False, "pos_embed_factorized": False, "pos_embed_grid_size": (0, 0),
    "qkv_bias": True, "proj_bias": True, "layer_scale": False, "pre_norm": False, "post_norm": None, "fc_norm": None,
    "swiglu": False, "swiglu_split": False, "swiglu_align_to": 0, "activation": "gelu", "norm_eps": 1e-6,
    "rms_norm": False, "embed_norm": False, "qk_norm": False, "parallel": False, "differential": False, "post_norm_blocks": False,
    "rel_pos": False, "shared_rel_pos": False, "rel_pos_mlp": False, "rel_pos_dim": 128, "qkv_fused": True,
    "scale_mlp": False, "scale_attn_inner": False, "attn_only_layer_scale": False, "num_kv_heads": 0, "num_full_attn_blocks": 0, "attn_type": "eva", "rope": False, "rope_type": "cat",
    "rope_temperature": 10000.0, "rope_grid_offset": 0.0, "rope_xy": False, "rope_rotate_half": False,
    "ref_feat_shape": (0, 0), "attn_pool_num_heads": 0, "attn_pool_mlp_ratio": 0.0,
}  # fmt: skip

# Members of TimmArgs that only matter together with another one.
MEANINGLESS_WITHOUT = {"rope_type": "rope", "rope_temperature": "rope", "rope_xy": "rope", "rope_rotate_half": "rope",
                       "rope_grid_offset": "rope", "ref_feat_shape": "rope"}  # fmt: skip

ACTIVATIONS = {"GELU": "gelu", "GELUTanh": "gelu_tanh", "QuickGELU": "quick_gelu", "SiLU": "silu", "ReLU": "relu"}


def pair(value):
    return (value, value) if isinstance(value, int) else tuple(value)


def check_supported(given):
    for key, allowed in REQUIRED.items():
        if key in given and not any(given[key] is a or given[key] == a for a in allowed):
            value = getattr(getattr(given[key], "func", given[key]), "__name__", given[key])
            raise Unsupported(f"{key} = {value}")


def norm_eps(model):
    """The epsilon of all norms, which are LayerNorm or RMSNorm; another normalization is not supported."""
    norms = [m for name, m in model.named_modules()
             if re.search(r"norm\w*$", name) and not name.endswith("sub_norm") and not isinstance(m, nn.Identity)]  # fmt: skip
    if not all(isinstance(m, nn.LayerNorm) for m in norms) and not all(isinstance(m, RmsNorm) for m in norms):
        raise Unsupported("normalization by " + ", ".join(sorted({type(m).__name__ for m in norms})))
    epsilons = {m.eps for m in norms}
    if len(epsilons) != 1:
        raise Unsupported(f"several epsilons {sorted(epsilons)}")
    return epsilons.pop()


def activation(model, swiglu):
    if swiglu:
        if type(model) is vision_transformer.VisionTransformer:
            assert isinstance(model.blocks[0].mlp.act, nn.SiLU)
        return "gelu"  # not asked for
    block = model.blocks[0]
    name = type(block.mlp_act if hasattr(block, "mlp_act") else block.mlp.act).__name__
    if name not in ACTIVATIONS:
        raise Unsupported(f"activation {name}")
    return ACTIVATIONS[name]


def check_pooling(args):
    prefix = args["class_token"] + args["reg_tokens"]
    all_tokens = args["timm_class"] == "eva" or args["pool_include_prefix"]
    if args["global_pool"] == "map" and prefix and not all_tokens:
        raise Unsupported("attention pooling that leaves out class or register tokens")
    if args["global_pool"] == "avg" and prefix and args["pool_include_prefix"]:
        raise Unsupported("mean over class or register tokens too")


def timm_args(model, given):
    """The members of TimmArgs, without those that are at their defaults."""
    check_supported(given)
    args = dict(DEFAULTS)
    known = set(SAME_MEANING) | set(RENAMED) | set(OPTIONAL) | set(REQUIRED) | INERT
    known |= {"img_size", "init_values", "norm_layer", "embed_norm_layer", "act_layer", "final_norm", "ref_feat_shape", "rope_xy",
              "use_abs_pos_emb", "attn_pool_num_heads", "attn_pool_mlp_ratio", "use_post_norm", "rel_pos_dim", "num_kv_heads"}  # fmt: skip
    if unknown := set(given) - known:
        sys.exit(f"timm's constructor has arguments that this script does not know: {sorted(unknown)}")

    is_eva = type(model) is eva.Eva
    is_beit = type(model) is beit.Beit  # the names and rules of Eva without rotation
    is_relpos = type(model) is vision_transformer_relpos.VisionTransformerRelPos
    args["timm_class"] = "eva" if is_eva or is_beit else "vision_transformer"
    args["distilled"] = type(model) is deit.VisionTransformerDistilled
    args["beit"] = is_beit
    for key in SAME_MEANING:
        args[key] = given.get(key, args[key])
    for key, name in (RENAMED | OPTIONAL).items():
        args[name] = given.get(key, args[name])
    args["image_height"], args["image_width"] = pair(given["img_size"])
    args["global_pool"] = given["global_pool"] or "none"
    args["pos_embed"] = given["use_abs_pos_emb"] if is_eva or is_beit else given.get("pos_embed") == "learn"
    args["layer_scale"] = given["init_values"] is not None if is_eva else bool(given["init_values"])
    args["post_norm_blocks"] = given.get("use_post_norm", False) or given.get("block_fn") in (
        vision_transformer.ResPostBlock, vision_transformer_relpos.ResPostRelPosBlock)  # fmt: skip
    args["layer_scale"] = args["layer_scale"] and not args["post_norm_blocks"]
    if is_relpos:
        args["rel_pos"] = not args["shared_rel_pos"]
        args["rel_pos_mlp"] = given["rel_pos_type"] == "mlp"
        args["rel_pos_dim"] = given["rel_pos_dim"] or 128
    if is_beit:
        args["swiglu_split"] = args["swiglu"]
    if not given.get("final_norm", True):
        args["post_norm"] = False
    args["swiglu"] = args["swiglu"] or given.get("mlp_layer") in (SwiGLU, SwiGLUPacked)
    args["swiglu_split"] = args["swiglu_split"] or given.get("mlp_layer") is SwiGLU
    args["parallel"] = given.get("block_fn") in PARALLEL
    args["differential"] = given.get("attn_layer") == "diff" or given.get("block_fn") is PARALLEL[1]
    args["activation"] = activation(model, args["swiglu"])
    args["norm_eps"] = norm_eps(model)
    args["rms_norm"] = any(isinstance(m, RmsNorm) for n, m in model.named_modules() if not n.endswith("sub_norm"))
    args["embed_norm"] = given.get("embed_norm_layer") is not None
    if args["rms_norm"] and args["global_pool"] == "map":
        raise Unsupported("attention pooling with RmsNorm")
    if is_eva:
        if heads := [count for count in given["num_kv_heads"] or () if count != args["num_heads"]]:
            assert len(set(heads)) == 1
            args["num_kv_heads"] = heads[0]
            args["num_full_attn_blocks"] = given["num_kv_heads"].index(heads[0])
        args["attn_type"] = given["attn_type"]
        args["rope_type"] = given["rope_type"] or "cat"
        args["rope_xy"] = given["rope_grid_indexing"] == "xy"
        args["ref_feat_shape"] = pair(given["ref_feat_shape"] or 0)
        args["attn_pool_num_heads"] = given["attn_pool_num_heads"] or 0
        args["attn_pool_mlp_ratio"] = given["attn_pool_mlp_ratio"] or 0.0
    check_pooling(args)
    return {k: v for k, v in args.items() if v != DEFAULTS[k] and args.get(MEANINGLESS_WITHOUT.get(k), True)}


def preprocessing(cfg, args):
    """The members of Architecture that define the preprocessing."""
    size = (args.get("image_height", 224), args.get("image_width", 224))
    assert tuple(cfg.input_size) == (3, *size), f"{cfg.architecture}: {cfg.input_size} for a model of {size}"
    assert cfg.crop_mode in ("center", "squash", None), cfg.crop_mode
    return {
        "mean": tuple(cfg.mean),
        "std": tuple(cfg.std),
        "crop_pct": cfg.crop_pct,
        "squash": cfg.crop_mode == "squash",
        "filter": cfg.interpolation,
    }


# ------------------------------------------------------------------------------------------------------------ rows


def family_of(name):
    return next(family for pattern, family in FAMILIES if re.search(pattern, name))


def projection_dim(name):
    """Width of the projection that published weights of a name have for a head, 0 if they have none. Those that
    were fine-tuned have classes, which their tag says."""
    if not re.search(r"_clip_|_pe_core_", name):
        return 0
    cfgs = [timm.get_pretrained_cfg(full) for full in _registry._model_with_tags[name]]
    widths = {cfg.num_classes for cfg in cfgs if "_ft_" not in cfg.tag} - {0}
    assert len(widths) <= 1, (name, widths)
    return widths.pop() if widths else 0


def timm_rows():
    """Rows by name, numbers of parameters by name, and why other models are left out."""
    rows, parameters, left_out = {}, {}, {}
    kinds = (vision_transformer.VisionTransformer, deit.VisionTransformerDistilled, eva.Eva, beit.Beit,
             vision_transformer_relpos.VisionTransformerRelPos)  # fmt: skip
    for name in sorted(set().union(*(timm.list_models(module=module) for module in MODULES))):
        model, given = construct(name)
        try:
            if type(model) not in kinds:
                raise Unsupported(f"another class, {type(model).__name__}")
            args = timm_args(model, given)
        except Unsupported as reason:
            left_out[name] = str(reason)
            continue
        cfg = timm.get_pretrained_cfg(name)
        rows[name] = {"name": name, "family": family_of(name), "args": args, "projection_dim": projection_dim(name),
                      **preprocessing(cfg, args)}  # fmt: skip
        parameters[name] = sum(p.numel() for p in model.parameters())
    return rows, parameters, left_out


# Those of timm's class NaFlexVit that have published weights.
NAFLEX = ("naflexvit_base_patch16_siglip", "naflexvit_so400m_patch16_siglip", "naflexvit_base_patch16_gap",
          "naflexvit_base_patch16_par_gap", "naflexvit_base_patch16_parfac_gap", "naflexvit_base_patch16_radio_v3",
          "naflexvit_large_patch16_radio_v3", "naflexvit_huge_patch16_radio_v3", "naflexvit_giant_patch16_radio_v3",
          "naflexvit_so400m_patch16_radio_v4", "naflexvit_huge_patch16_radio_v4")  # fmt: skip


def naflex_args(model, cfg, size):
    """The members of TimmArgs, without those that are at their defaults, of a NaFlexVitCfg."""
    same = {"embed_dim", "depth", "num_heads", "mlp_ratio", "patch_size", "global_pool", "class_token",
            "pos_embed_grid_size", "reg_tokens", "pos_embed_ar_preserving", "pos_embed_antialias",
            "pos_embed_align_corners"}  # fmt: skip
    expected = naflexvit.NaFlexVitCfg(**{key: getattr(cfg, key) for key in same}, act_layer=cfg.act_layer,
                                      pos_embed_interp_mode=cfg.pos_embed_interp_mode, pos_embed=cfg.pos_embed,
                                      init_values=cfg.init_values, final_norm=cfg.final_norm, fc_norm=cfg.fc_norm)
    assert cfg == expected, cfg
    args = dict(DEFAULTS) | {key: getattr(cfg, key) for key in same}
    args |= {"timm_class": "naflex", "image_height": size[0], "image_width": size[1], "num_classes": model.num_classes,
             "pos_embed_interp_mode": cfg.pos_embed_interp_mode + "_antialias", "activation": activation(model, False),
             "norm_eps": norm_eps(model), "layer_scale": cfg.init_values is not None, "fc_norm": cfg.fc_norm,
             "pos_embed_factorized": cfg.pos_embed == "factorized", "no_embed_class": True,
             "post_norm": None if cfg.final_norm else False}  # fmt: skip
    check_pooling(args)
    return {k: v for k, v in args.items() if v != DEFAULTS[k]}


def add_naflex(rows, parameters):
    kept = {}
    original = naflexvit.NaFlexVit.__init__

    @functools.wraps(original)
    def record(self, cfg=None, *args, **kwargs):
        kept["cfg"] = cfg
        original(self, cfg, *args, **kwargs)

    naflexvit.NaFlexVit.__init__ = record
    try:
        for name in NAFLEX:
            cfg = timm.get_pretrained_cfg(name)
            with torch.device("meta"):
                model = timm.create_model(name, num_classes=cfg.num_classes)
            args = naflex_args(model, kept["cfg"], cfg.input_size[1:])
            rows[name] = {"name": name, "family": "siglip" if "siglip" in name else family_of(name), "args": args, **preprocessing(cfg, args)}
            parameters[name] = sum(p.numel() for p in model.parameters())
    finally:
        naflexvit.NaFlexVit.__init__ = original


def add_publishers(rows):
    for library, names in PUBLISHERS:
        for name, timm_name, changes in names():
            assert name not in rows, name
            row = {**rows[timm_name], "name": name, "library": library, "timm_name": timm_name, **changes}
            args = rows[timm_name]["args"] | changes.get("args", {})
            row["args"] = {k: v for k, v in args.items() if v != DEFAULTS[k]}
            rows[name] = row


def former_rows(rows):
    """Names that timm has given up with the tagged names that they stand for, and rows of these."""
    former, tagged_rows = {}, {}
    for old, current in sorted(_registry._deprecated_models.items()):
        if current is None or _registry._model_to_module[old] not in MODULES:
            continue
        name, _, tag = current.partition(".")
        if name not in rows:
            continue
        tag = RENAMED_TAGS.get(tag, tag)
        cfg = timm.get_pretrained_cfg(f"{name}.{tag}")
        assert cfg is not None and cfg.tag == tag, f"{name} has no tag {tag}"
        args = {k: v for k, v in rows[name]["args"].items() if k != "num_classes"}
        if cfg.num_classes != DEFAULTS["num_classes"]:
            args["num_classes"] = cfg.num_classes
        former[old] = f"{name}.{tag}"
        tagged_rows[former[old]] = {**rows[name], "name": former[old], "args": args, **preprocessing(cfg, args)}
    return former, tagged_rows


# ---------------------------------------------------------------------------------------------------------- C++ text

ENUMS = {
    "timm_class": "TimmClass", "global_pool": "TimmPool", "attn_type": "TimmAttention", "rope_type": "TimmRope",
    "activation": "Activation", "filter": "ResizeFilter", "resampler": "Resampler",
    "pos_embed_interp_mode": "TableResampling",
}  # fmt: skip
TRIPLES = {
    (0.48145466, 0.4578275, 0.40821073): "kClipMean",
    (0.26862954, 0.26130258, 0.27577711): "kClipStd",
    (0.5, 0.5, 0.5): "kHalf",
    (0.0, 0.0, 0.0): "kZero",
    (1.0, 1.0, 1.0): "kOne",
}
ROW_DEFAULTS = {"library": "timm", "timm_name": "", "projection_dim": 0, "mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225),
                "crop_pct": 0.9, "squash": False, "filter": "bicubic", "resampler": "pillow",
                "evaluated_at": 0}  # fmt: skip


def cpp_value(key, value):
    if key in ENUMS:
        return f"{ENUMS[key]}::{value}"
    if key in ("mean", "std"):
        return TRIPLES.get(value) or "{" + ", ".join(map(repr, value)) + "}"
    if key in ("ref_feat_shape", "pos_embed_grid_size"):
        return "{" + ", ".join(map(str, value)) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f'"{value}"'
    return repr(float(value)) if isinstance(DEFAULTS.get(key), float) else repr(value)


def cpp_members(values, order):
    return ", ".join(f".{key} = {cpp_value(key, values[key])}" for key in order if key in values)


def cpp_row(row):
    """One initializer; what equals the members' defaults is left out."""
    names = cpp_members({k: row[k] for k in ("name", "family")}, ("name", "family"))
    rest = {k: v for k, v in row.items() if k in ROW_DEFAULTS and v != ROW_DEFAULTS[k]}
    owner = cpp_members(rest, ("library", "timm_name"))
    args = "{" + cpp_members(row["args"], DEFAULTS) + "}"
    prep = cpp_members({k: v for k, v in rest.items() if k not in ("library", "timm_name")}, ROW_DEFAULTS)
    lines = [", ".join(filter(None, (names, owner))) + ",", f".args = {args}" + ("," if prep else ""), prep]
    wrapped = [part for line in filter(None, lines) for part in wrap(line)]
    return "    {" + "\n     ".join(wrapped) + "},\n"


def wrap(line):
    """Lines of the width of the code; a member and its value stay together."""
    joined = re.sub(r" (?=[=\d])|(?<==) ", "\0", line)
    parts = textwrap.wrap(joined, 104, break_long_words=False, break_on_hyphens=False)
    return [part.replace("\0", " ") for part in parts]


def cpp_array(head, rows):
    return f"constexpr {head}[] = {{\n" + "".join(rows) + "};\n"


def table_text(rows, former, tagged, left_out):
    reasons = {}
    for name, reason in left_out.items():
        reasons.setdefault(reason, []).append(name)
    comment = [f"Written by make_table.py from timm {timm.__version__} and the publishers' lists; not to be edited.", ""]
    comment += [f"{len(rows)} published architectures. A member that is not named has the default of its struct."]
    comment += ["Models of timm that are not here, and why:"]
    for reason, names in sorted(reasons.items()):
        comment += textwrap.wrap(f"{reason}: {', '.join(names)}", 107, initial_indent="  ", subsequent_indent="    ",
                                 break_long_words=False, break_on_hyphens=False)  # fmt: skip
    text = "".join(f"// {line}".rstrip() + "\n" for line in comment)
    text += "// clang-format off\n\n// Sorted by name.\n"
    text += cpp_array("Architecture kArchitectures", [cpp_row(rows[name]) for name in sorted(rows)])
    text += "\n// Tags that a name of before stands for, with their own classes and preprocessing. Sorted by name.\n"
    text += cpp_array("Architecture kTagged", [cpp_row(tagged[name]) for name in sorted(tagged)])
    text += "\n// Names that timm has given up, and what they stand for now. Sorted by name.\n"
    text += cpp_array("FormerName kFormerNames", [f'    {{"{old}", "{former[old]}"}},\n' for old in sorted(former)])
    return text + "// clang-format on\n"


def parameters_text(parameters):
    text = "// Written by vit/weights/architectures/make_table.py; not to be edited.\n"
    text += f"// Numbers of parameters that timm {timm.__version__} counts in its models.\n"
    return text + "".join(f'{{"{name}", {count}}},\n' for name, count in sorted(parameters.items()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file is not current")
    check = parser.parse_args().check

    rows, parameters, left_out = timm_rows()
    add_naflex(rows, parameters)
    former, tagged = former_rows(rows)
    add_publishers(rows)
    stale = False
    for path, text in ((TABLE, table_text(rows, former, tagged, left_out)), (PARAMETERS, parameters_text(parameters))):
        current = path.exists() and path.read_text(encoding="utf-8") == text
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not current:
            stale = True
            print(f"{path} is not what timm {timm.__version__} says", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
