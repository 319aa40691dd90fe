"""Writes data/golden/models: one tiny random checkpoint per model family, with inputs and named results of
timm, transformers and OpenCLIP.

    python tests/golden/make_golden.py [CASE...]     all cases: about 40 seconds; needs torch, timm,
                                                     transformers, safetensors, open_clip_torch

Every folder holds config.json and model.safetensors as the library itself writes them,
preprocessor_config.json where the library is transformers (open_clip_config.json and
open_clip_model.safetensors where it is OpenCLIP; case.json instead of a config where the publisher has
none), and expected.safetensors. For each input I
(`native`: a batch of two at the model's own size; `wide`: a rectangle; `large`: a bigger square) the latter has

    I.pixels      (B, 3, H, W)   model input, already normalised
    I.rope_cos, I.rope_sin       one value per angle: (N, d/2), learned frequencies: (depth, heads, N, d/2)
    I.tokens_in   (B, T, C)      entering block 0: positions added, prefix tokens in front
    I.block.K     (B, T, C)      leaving block K; not for large
    I.tokens      (B, T, C)      after the final norm, if the model has one there
    I.pooled      (B, C)         what the classifier reads; without one, what the pooler gives, if there is one
    I.projected   (B, E)         the pooled vector in the space that images and texts share, if there is one
    I.logits      (B, classes)
    I.pooled.f64, I.projected.f64, I.logits.f64, native.tokens.f64
                                 the same from a double precision run of the same weights

float32 unless the name ends in .f64. Before anything is written, the folder is loaded again by its library
and must reproduce the results bit for bit, and every parameter is removed once to see that the results notice
(except key biases that no rotation makes visible).
"""

import argparse
import copy
import dataclasses
import json
import logging
import types
import warnings
from pathlib import Path

import open_clip
import timm
import torch
import transformers
from open_clip.push_to_hf_hub import save_config_for_hf
from safetensors.torch import load_file, save_file

ROOT = Path(__file__).resolve().parents[2] / "data" / "golden" / "models"
FINAL = ("tokens", "pooled", "projected", "logits")

# Sizes differ from case to case so that heads of 8 to 16 channels and hidden layers that no vector width
# divides occur. The `wide` of rope-axial-ape has as many patches as its table, which must be resampled
# all the same.
TIMM_CASES = {
    "rope-axial": dict(name="vit_small_patch16_rope_224",
                       size=24,
                       patch=8,
                       dim=36,
                       heads=3,
                       classes=6,
                       mlp_ratio=1.5,
                       wide=(40, 16),
                       large=(40, 40)),
    "rope-axial-avg": dict(name="vit_small_patch16_rope_224",
                           size=16,
                           patch=4,
                           dim=32,
                           heads=2,
                           classes=5,
                           mlp_ratio=3.0,
                           wide=(12, 24),
                           large=(24, 24),
                           global_pool="avg"),
    "rope-axial-ape": dict(name="vit_small_patch16_rope_ape_224",
                           size=32,
                           patch=8,
                           dim=32,
                           heads=2,
                           classes=7,
                           mlp_ratio=2.0,
                           wide=(16, 64),
                           large=(40, 40)),
    "rope-mixed": dict(name="vit_small_patch16_rope_mixed_224",
                       size=24,
                       patch=8,
                       dim=24,
                       heads=2,
                       classes=5,
                       mlp_ratio=2.0,
                       wide=(16, 40),
                       large=(32, 32)),
    "rope-mixed-ape": dict(name="vit_small_patch16_rope_mixed_ape_224",
                           size=24,
                           patch=8,
                           dim=32,
                           heads=4,
                           classes=8,
                           mlp_ratio=2.0,
                           wide=(48, 16),
                           large=(32, 32)),
    "timm-vit": dict(name="vit_tiny_patch16_224",
                     size=24,
                     patch=8,
                     dim=30,
                     heads=3,
                     classes=9,
                     mlp_ratio=2.5,
                     wide=(40, 24),
                     large=(32, 32)),
    "timm-deit-distilled": dict(name="deit_tiny_distilled_patch16_224",
                                size=24,
                                patch=8,
                                dim=32,
                                heads=2,
                                classes=6,
                                mlp_ratio=2.0,
                                wide=(16, 48),
                                large=(32, 32)),
    # y before x, coordinates scaled to a reference grid of 16 x 16; a gated MLP with a norm inside
    "timm-eva02": dict(name="eva02_base_patch14_448",
                       size=24,
                       patch=8,
                       dim=32,
                       heads=2,
                       classes=5,
                       mlp_ratio=1.5,
                       wide=(16, 40),
                       large=(32, 32),
                       global_pool="avg"),
    # x before y, indices from 1; a norm before the blocks; attention pooling and a projection
    "timm-pe-core": dict(name="vit_pe_core_base_patch16_224",
                         size=24,
                         patch=8,
                         dim=32,
                         heads=2,
                         classes=7,
                         mlp_ratio=1.5,
                         wide=(40, 16),
                         large=(32, 32),
                         global_pool="map",
                         model_args=dict(ref_feat_shape=[3, 3], attn_pool_mlp_ratio=1.5)),
    # a table resampled for each grid, patches cut pixel by pixel
    "timm-naflex": dict(name="naflexvit_base_patch16_siglip",
                        size=24,
                        patch=8,
                        dim=32,
                        heads=4,
                        classes=0,
                        mlp_ratio=1.5,
                        wide=(16, 40),
                        large=(32, 32),
                        model_args=dict(pos_embed_grid_size=(2, 3))),
    # attention and MLP side by side, RMSNorm, also of queries and keys; only the MLP has a bias
    "timm-parallel": dict(name="vit_base_patch16_xp_224",
                          size=24,
                          patch=8,
                          dim=24,
                          heads=2,
                          classes=5,
                          mlp_ratio=1.5,
                          wide=(16, 40),
                          large=(32, 32)),
    # the same with one bias of the fused product, LayerNorm of queries and keys, and layer scale
    "timm-parallel-bias": dict(name="vit_pwee_patch16_reg1_gap_256",
                               size=24,
                               patch=8,
                               dim=24,
                               heads=2,
                               classes=4,
                               mlp_ratio=2.0,
                               wide=(16, 40),
                               large=(32, 32),
                               model_args=dict(qk_norm=True)),
    # RMSNorm on patches too, a gated MLP of two matrices, no biases in blocks
    "timm-aimv2": dict(name="aimv2_large_patch14_224",
                       size=24,
                       patch=8,
                       dim=24,
                       heads=2,
                       classes=4,
                       mlp_ratio=1.5,
                       wide=(16, 40),
                       large=(32, 32)),
}
# Meta's names and rules for a model of timm: stored periods, the class token is the result
META_CASES = {
    "meta-dinov3": dict(name="vit_small_plus_patch16_dinov3_qkvb",
                        size=24,
                        patch=8,
                        dim=32,
                        heads=2,
                        classes=0,
                        mlp_ratio=1.5,
                        wide=(40, 16),
                        large=(32, 32),
                        global_pool="token"),
}
HF_CASES = {
    "hf-vit": dict(config="ViTConfig",
                   model="ViTForImageClassification",
                   processor="ViTImageProcessor",
                   size=24,
                   patch=8,
                   dim=36,
                   heads=3,
                   hidden=58,
                   labels=("cup", "plate", "spoon", "fork", "knife", "bowl", "jug"),
                   wide=(40, 16),
                   large=(32, 32)),
    "hf-deit": dict(config="DeiTConfig",
                    model="DeiTForImageClassificationWithTeacher",
                    processor="DeiTImageProcessor",
                    size=24,
                    patch=8,
                    dim=32,
                    heads=2,
                    hidden=52,
                    labels=("oak", "elm", "ash", "yew", "fir"),
                    wide=(16, 48),
                    large=(32, 32)),
    "hf-mae": dict(config="ViTMAEConfig",
                   model="ViTMAEForPreTraining",
                   processor="ViTImageProcessor",
                   size=24,
                   patch=8,
                   dim=32,
                   heads=4,
                   hidden=44,
                   options=dict(decoder_hidden_size=16,
                                decoder_num_hidden_layers=1,
                                decoder_num_attention_heads=2,
                                decoder_intermediate_size=16),
                   wide=(16, 40),
                   large=(32, 32)),
    "hf-vit-bare": dict(config="ViTConfig",
                        model="ViTModel",
                        processor="ViTImageProcessor",
                        size=24,
                        patch=8,
                        dim=32,
                        heads=4,
                        hidden=48,
                        wide=(16, 40),
                        large=(32, 32)),
    # the class token and the mean of the patches side by side; registers
    "hf-dinov2-registers": dict(config="Dinov2WithRegistersConfig",
                                model="Dinov2WithRegistersForImageClassification",
                                processor="BitImageProcessor",
                                size=24,
                                patch=8,
                                dim=32,
                                heads=2,
                                options=dict(mlp_ratio=2, num_register_tokens=3),
                                labels=("sun", "moon", "star", "comet"),
                                wide=(40, 16),
                                large=(32, 32)),
    # y before x, centered coordinates, the pairs (i, i + d / 2); a gated MLP and registers
    "hf-dinov3": dict(config="DINOv3ViTConfig",
                      model="DINOv3ViTModel",
                      processor="DINOv3ViTImageProcessor",
                      size=24,
                      patch=8,
                      dim=32,
                      heads=2,
                      hidden=44,
                      options=dict(num_register_tokens=3, use_gated_mlp=True, hidden_act="silu"),
                      wide=(16, 40),
                      large=(32, 32)),
    "hf-siglip": dict(config="SiglipVisionConfig",
                      model="SiglipVisionModel",
                      processor="SiglipImageProcessor",
                      size=24,
                      patch=8,
                      dim=32,
                      heads=4,
                      hidden=44,
                      wide=(16, 40),
                      large=(32, 32)),
    "hf-clip": dict(config="CLIPConfig",
                    model="CLIPModel",
                    processor="CLIPImageProcessor",
                    size=24,
                    patch=8,
                    dim=32,
                    heads=2,
                    hidden=44,
                    options=dict(projection_dim=12),
                    text=dict(hidden_size=8,
                              intermediate_size=8,
                              num_hidden_layers=1,
                              num_attention_heads=1,
                              vocab_size=6,
                              max_position_embeddings=4,
                              bos_token_id=0,
                              eos_token_id=2),
                    wide=(40, 16),
                    large=(32, 32)),
    # patches cut pixel by pixel, a table resampled for each grid, padding masked
    "hf-siglip2-naflex": dict(config="Siglip2VisionConfig",
                              model="Siglip2VisionModel",
                              processor="Siglip2ImageProcessor",
                              size=24,
                              patch=8,
                              dim=32,
                              heads=4,
                              hidden=44,
                              options=dict(num_patches=9),
                              wide=(16, 40),
                              large=(32, 32)),
    # pixels are normalized inside, class tokens side by side, a table larger than the image, which is cut
    "hf-radio": dict(config="RadioConfig",
                     model="RadioModel",
                     processor="CLIPImageProcessor",
                     processing=dict(do_normalize=False),
                     size=24,
                     patch=8,
                     dim=24,
                     heads=2,
                     options=dict(mlp_ratio=2.0, max_img_size=48, num_cls_tokens=3, num_registers=2,
                                  summary_idxs=[0, 2], use_swiglu_ffn=True),
                     wide=(16, 40),
                     large=(56, 56)),
    # the mean of several class tokens
    "hf-pixio": dict(config="PixioConfig",
                     model="PixioModel",
                     processor="BitImageProcessor",
                     size=24,
                     patch=8,
                     dim=24,
                     heads=2,
                     options=dict(mlp_ratio=2, n_cls_tokens=3),
                     wide=(40, 16),
                     large=(32, 32)),
}
OPEN_CLIP_CASES = {
    "open-clip": dict(size=24,
                      config=dict(embed_dim=10,
                                  quick_gelu=True,
                                  vision_cfg=dict(image_size=24,
                                                  layers=2,
                                                  width=24,
                                                  head_width=8,
                                                  patch_size=8,
                                                  mlp_ratio=1.75,
                                                  ls_init_value=0.1),
                                  text_cfg=dict(context_length=4, vocab_size=6, width=8, heads=1, layers=1)),
                      preprocess=dict(mean=(0.5, 0.4, 0.6), std=(0.25, 0.3, 0.2), resize_mode="squash"),
                      wide=(16, 40),
                      large=(32, 32)),
}
DEPTH = 2


@torch.no_grad()
def randomise(model, seed):
    """Weights that make every detail visible: norms away from one, biases away from zero, and embeddings so
    small that a wrong epsilon shows."""
    generator = torch.Generator().manual_seed(seed)
    for name, p in sorted(model.named_parameters()):
        noise = torch.randn(p.shape, generator=generator)
        if name == "rope.freqs":
            p.mul_(1 + 0.3 * noise)  # learned frequencies: keep their scale
        elif p.ndim == 4 or "patch_embed" in name or "patch_embeddings" in name:
            p.copy_(noise * (0.04 / p[0].numel()**0.5 if p.ndim == 4 else 0.01))
        elif p.ndim == 3 or name.endswith(("class_embedding", "positional_embedding", "position_embedding.weight")):
            p.copy_(0.02 * noise)  # tables and prefix tokens
        elif p.ndim == 2:
            p.copy_(noise * 1.5 / p.shape[1]**0.5)
        elif name.endswith("weight") or "gamma" in name or "lambda" in name:
            p.copy_(1 + 0.3 * noise)
        else:
            p.copy_(0.4 * noise)
    return model.eval()


def timm_rope(model, pixels):
    """The rotation factors that the model uses, one value per angle instead of one per channel."""
    rows, columns = (edge // patch for edge, patch in zip(pixels.shape[2:], model.patch_embed.patch_size))
    sines, cosines = model.rope.get_embed(shape=(rows, columns)).chunk(2, -1)
    halves = isinstance(model.rope, timm.layers.RotaryEmbeddingDinoV3)
    once = slice(cosines.shape[-1] // 2) if halves else slice(None, None, 2)
    return {"rope_cos": cosines[..., once].float(), "rope_sin": sines[..., once].float()}


@torch.no_grad()
def run_timm(model, pixels):
    kept = {}
    hooks = [model.blocks[0].register_forward_pre_hook(lambda _, inputs: kept.update(tokens_in=inputs[0]))]
    for k, block in enumerate(model.blocks):
        hooks.append(
            block.register_forward_hook(lambda _, inputs, output, k=k: kept.update({f"block.{k}": output})))
    features = model.forward_features(pixels)
    kept["tokens"] = features["patches"] if isinstance(features, dict) else features
    kept["pooled"] = model.forward_head(kept["tokens"], pre_logits=True)
    if model.num_classes > 0:
        kept["logits"] = model.forward_head(kept["tokens"])
    for hook in hooks:
        hook.remove()
    if getattr(model, "rope", None) is not None:
        kept.update(timm_rope(model, pixels))
    return kept


HF_LAYERS = ("ViTLayer", "DeiTLayer", "ViTMAELayer", "Dinov2WithRegistersLayer", "DINOv3ViTLayer",
             "SiglipEncoderLayer", "Siglip2EncoderLayer", "CLIPEncoderLayer", "RadioLayer", "PixioLayer")


def naflex_inputs(pixels, patch):
    """Patches as the processor of NaFlex cuts them, with three rows of padding, which are masked."""
    count, _, height, width = pixels.shape
    rows, columns = height // patch, width // patch
    patches = pixels.reshape(count, 3, rows, patch, columns, patch).permute(0, 2, 4, 3, 5, 1)
    patches = patches.reshape(count, rows * columns, -1)
    mask = torch.ones(count, rows * columns + 3, dtype=torch.int32)
    mask[:, -3:] = 0
    return dict(pixel_values=torch.nn.functional.pad(patches, (0, 0, 0, 3)),
                pixel_attention_mask=mask,
                spatial_shapes=torch.tensor([[rows, columns]] * count))


def run_naflex(model, pixels):
    inputs = naflex_inputs(pixels, model.config.patch_size)
    kept = run_layers(model, lambda: model(**inputs))
    return {key: value if key == "pooled" else value[:, :-3] for key, value in kept.items()}


def run_layers(tower, run):
    """What the blocks get and return, and what the model returns. hidden_states may end normalised, so the
    blocks themselves are called."""
    kept = {}
    layers = [m for m in tower.modules() if type(m).__name__ in HF_LAYERS]
    hooks = [layers[0].register_forward_pre_hook(lambda _, inputs: kept.update(tokens_in=inputs[0]))]
    for k, layer in enumerate(layers):
        hooks.append(
            layer.register_forward_hook(lambda _, inputs, output, k=k: kept.update(
                {f"block.{k}": output if torch.is_tensor(output) else output[0]})))
    result = run()
    for hook in hooks:
        hook.remove()
    kept["tokens"] = result.last_hidden_state
    pooled = getattr(result, "pooler_output", getattr(result, "summary", None))
    kept["pooled"] = result.last_hidden_state[:, 0] if pooled is None else pooled
    return kept


@torch.no_grad()
def run_hf(model, pixels):
    if isinstance(model, transformers.Siglip2VisionModel):
        return run_naflex(model, pixels)
    tower = model if hasattr(model, "embeddings") else getattr(model, "vision_model", model.base_model)
    resamples = any(name in type(model).__name__.upper() for name in ("DINO", "RADIO", "PIXIO"))
    options = {} if resamples else dict(interpolate_pos_encoding=True)
    if isinstance(model, transformers.ViTMAEForPreTraining):  # every patch, in its order
        model.config.mask_ratio = 0.0
        num_patches = pixels.shape[2] // model.config.patch_size * (pixels.shape[3] // model.config.patch_size)
        options["noise"] = torch.arange(float(num_patches)).expand(len(pixels), -1)
    kept = run_layers(tower, lambda: tower(pixels, **options))
    if hasattr(model, "visual_projection"):
        kept["projected"] = model.visual_projection(kept["pooled"])
    elif "Classification" in type(model).__name__:
        kept["logits"] = model(pixels, **options).logits
    if hasattr(tower, "rope_embeddings"):  # one value per angle instead of one per channel
        kept.update({
            f"rope_{name}": values[:, :values.shape[1] // 2]
            for name, values in zip(("cos", "sin"), tower.rope_embeddings(pixels))
        })
    return kept


def open_clip_at_size(visual, size):
    """The tower as OpenCLIP loads it for another image_size."""
    visual = copy.deepcopy(visual)
    visual.grid_size = tuple(edge // patch for edge, patch in zip(size, visual.patch_size))
    state = {"visual.positional_embedding": visual.positional_embedding}
    open_clip.model.resize_pos_embed(state, types.SimpleNamespace(visual=visual))
    visual.positional_embedding = torch.nn.Parameter(state["visual.positional_embedding"])
    return visual


@torch.no_grad()
def run_open_clip(visual, pixels):
    visual = open_clip_at_size(visual, pixels.shape[2:])
    kept = {}
    visual.transformer.register_forward_pre_hook(lambda _, inputs: kept.update(tokens_in=inputs[0]))
    for k, block in enumerate(visual.transformer.resblocks):
        block.register_forward_hook(lambda _, inputs, output, k=k: kept.update({f"block.{k}": output}))
    visual.ln_post.register_forward_hook(lambda _, inputs, output: kept.update(tokens=output))
    kept["projected"] = visual(pixels)
    visual.proj = None
    kept["pooled"] = visual(pixels)
    return kept


def build_timm(case):
    model_args = {
        "patch_size": case["patch"], "embed_dim": case["dim"], "depth": DEPTH, "num_heads": case["heads"],
        "num_classes": case["classes"], "mlp_ratio": case["mlp_ratio"]
    }
    if not case["name"].startswith("naflex"):  # which takes any size
        model_args = {"img_size": [case["size"], case["size"]], **model_args, "dynamic_img_size": True}
    if "global_pool" in case:
        model_args["global_pool"] = case["global_pool"]
    model_args.update(case.get("model_args", {}))
    return timm.create_model(case["name"], **model_args), model_args


def build_hf(case):
    shape = dict(hidden_size=case["dim"],
                 num_hidden_layers=DEPTH,
                 num_attention_heads=case["heads"],
                 patch_size=case["patch"])
    if "num_patches" not in case.get("options", {}):
        shape["image_size"] = case["size"]
    if "hidden" in case:
        shape["intermediate_size"] = case["hidden"]
    if "labels" in case:
        shape.update(id2label=dict(enumerate(case["labels"])),
                     label2id={label: i for i, label in enumerate(case["labels"])})
    if "text" in case:  # two towers
        shape = dict(vision_config=shape, text_config=case["text"])
    config = getattr(transformers, case["config"])(attn_implementation="sdpa", **shape, **case.get("options", {}))
    return getattr(transformers, case["model"])(config)


def save_timm(model, model_args, case, folder):
    model.pretrained_cfg.update(input_size=(3, case["size"], case["size"]), tag="random", license="mit")
    timm.models.save_for_hf(model, folder, model_args=model_args, safe_serialization=True)


def load_timm(folder):
    return timm.create_model(f"local-dir:{folder}", pretrained=True).eval()


def meta_names(model):
    """The tensors of timm's DINOv3 as Meta's own code stores them."""
    renamed = {"reg_token": "storage_tokens"}
    endings = {
        "gamma_1": "ls1.gamma", "gamma_2": "ls2.gamma", "fc1_g": "w1", "fc1_x": "w2", "mlp.fc2": "mlp.w3"
    }
    tensors = {}
    for name, value in model.state_dict().items():
        if name.endswith("attn.v_bias"):
            continue
        if name.endswith("attn.q_bias"):  # of k only a mask knows that it has no bias
            front = name.removesuffix("q_bias")
            width = len(value)
            tensors[front + "qkv.bias"] = torch.cat([value, torch.full((width, ), 0.25),
                                                     model.state_dict()[front + "v_bias"]])
            tensors[front + "qkv.bias_mask"] = torch.cat([torch.ones(width), torch.zeros(width), torch.ones(width)])
            continue
        for timm_name, meta_name in endings.items():
            name = name.replace(timm_name, meta_name)
        tensors[renamed.get(name, name)] = value
    tensors["mask_token"] = torch.zeros(1, model.embed_dim)
    tensors["rope_embed.periods"] = model.rope.periods.bfloat16()
    return {name: value.contiguous() for name, value in tensors.items()}


def build_meta(case):
    model, model_args = build_timm(case)
    model.rope.periods.copy_(model.rope.periods.bfloat16())
    return model, model_args


def save_meta(model, case, folder):
    save_file(meta_names(model), folder / "model.safetensors")
    facts = {"architecture": case["name"], "geometry": {"heads": case["heads"]}}
    (folder / "case.json").write_text(json.dumps(facts, indent=2) + "\n")


def load_meta(case, folder):
    """The file as timm reads Meta's own ones, but with the periods that it stores."""
    stored = load_file(folder / "model.safetensors")
    model, _ = build_timm(case)
    # timm does not read w1, w2, w3 of gated models together with a joint q, k and v
    model.load_state_dict(timm.models.eva.checkpoint_filter_fn(stored, model))
    model.rope.periods.copy_(stored["rope_embed.periods"])
    return model.eval()


def save_hf(model, case, folder):
    model.save_pretrained(folder)
    edge = {"height": case["size"], "width": case["size"]}
    if case["processor"] == "Siglip2ImageProcessor":
        transformers.Siglip2ImageProcessor(patch_size=case["patch"], max_num_patches=16).save_pretrained(folder)
        return
    shortest = case["processor"] in ("BitImageProcessor", "CLIPImageProcessor")
    cropped = shortest or "DeiT" in case["processor"]
    processor = getattr(transformers,
                        case["processor"])(size={"shortest_edge": case["size"]} if shortest else edge,
                                           **({"crop_size": edge} if cropped else {}),
                                           **case.get("processing", {}))
    processor.save_pretrained(folder)


def load_hf(case, folder):
    return getattr(transformers, case["model"]).from_pretrained(folder, attn_implementation="sdpa").eval()


def build_open_clip(case):
    model = open_clip.CLIP(**case["config"])
    preprocess = open_clip.transform.PreprocessCfg(size=case["size"], **case["preprocess"])
    open_clip.model.set_model_preprocess_cfg(model, dataclasses.asdict(preprocess))
    return model


def save_open_clip(model, case, folder):
    save_config_for_hf(model, folder / "open_clip_config.json", case["config"])
    save_file(model.state_dict(), folder / "open_clip_model.safetensors")


def load_open_clip(folder):
    return open_clip.create_model(f"local-dir:{folder}").eval().visual


def inputs_of(case, seed):
    generator = torch.Generator().manual_seed(seed)
    shapes = {
        "native": (2, 3, case["size"], case["size"]), "wide": (1, 3, *case["wide"]),
        "large": (1, 3, *case["large"])
    }
    return {name: torch.randn(shape, generator=generator) for name, shape in shapes.items()}


def expected_tensors(model, run, inputs):
    double = copy.deepcopy(model).double()
    tensors = {}
    for name, pixels in inputs.items():
        tensors[f"{name}.pixels"] = pixels
        single = run(model, pixels)
        precise = run(double, pixels.double())
        tensors.update({
            f"{name}.{key}": value
            for key, value in single.items()
            if name != "large" or not key.startswith("block.")
        })
        tensors.update(
            {f"{name}.{key}.f64": precise[key] for key in FINAL
             if key in precise and (name == "native" or key != "tokens")})
        for key in set(FINAL) & set(single):
            error = (single[key] - precise[key]).abs().max().item()
            if error > 2e-5:
                raise SystemExit(f"{name}.{key}: float32 and float64 differ by {error:.1e}")
    return {key: value.clone(memory_format=torch.contiguous_format) for key, value in tensors.items()}


POOLED_MODELS = (transformers.ViTModel, transformers.SiglipVisionModel, transformers.Siglip2VisionModel,
                 timm.models.NaFlexVit)


@torch.no_grad()
def parameters_without_effect(model, run, pixels):
    """Names whose neutral value (norms and scales one, anything else zero) leaves all logits (or the
    projection, or what a pooler gives, or tokens where there is none of them) within 1e-3. Decoders, text
    towers and what masks patches are no part of the model."""
    found = run(model, pixels)
    result = ("logits" if "logits" in found else "projected" if "projected" in found else
              "pooled" if isinstance(model, POOLED_MODELS) else "tokens")
    logits = found[result]
    unseen = []
    for name, p in model.named_parameters():
        if name.startswith(("decoder.", "text_", "logit_scale")) or name.endswith("mask_token"):
            continue
        stored = p.detach().clone()
        neutral = 1.0 if p.ndim == 1 and (name.endswith("weight") or "gamma" in name or "lambda" in name) else 0.0
        parts = 3 if name.endswith(("qkv.bias", "in_proj_bias")) else 1
        for part, view in zip(("q", "k", "v") if parts == 3 else ("",), p.chunk(parts)):
            view.fill_(neutral)
            if (run(model, pixels)[result] - logits).abs().max() < 1e-3:
                unseen.append(f"{name} {part}".strip())
            p.copy_(stored)
    return unseen


def write_case(name, model, run, save, load, inputs):
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    save(folder)
    tensors = expected_tensors(model, run, inputs)
    again = run(load(folder), inputs["native"])
    for key, value in again.items():
        if not torch.equal(value, tensors[f"native.{key}"]):
            raise SystemExit(f"{name}: the stored model gives another native.{key}")
    save_file(tensors, folder / "expected.safetensors")
    for file in folder.iterdir():
        file.chmod(0o644)
    rotates = any(key.endswith("rope_cos") for key in tensors)
    unseen = [
        n for n in parameters_without_effect(model, run, inputs["native"])
        if rotates or not n.endswith(("qkv.bias k", "in_proj_bias k", "key.bias", "k_proj.bias", "k_norm.bias"))
    ]
    if unseen:
        raise SystemExit(f"{name}: no effect of {', '.join(unseen)}")
    size = sum(f.stat().st_size for f in folder.iterdir())
    spread = tensors.get("native.logits", tensors["native.pooled"]).std().item()
    print(f"{name:20} {size / 1e3:6.0f} kB  spread {spread:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", metavar="CASE", help="the folders to write (default: all)")
    wanted = parser.parse_args().cases
    chosen = lambda cases, seed: [(i, *item) for i, item in enumerate(cases.items(), start=seed)
                                  if not wanted or item[0] in wanted]
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    transformers.utils.logging.disable_progress_bar()
    torch.set_num_threads(1)
    for seed, name, case in chosen(TIMM_CASES, 100):
        torch.manual_seed(seed)
        model, model_args = build_timm(case)
        write_case(name, randomise(model, seed), run_timm,
                   lambda folder: save_timm(model, model_args, case, folder), load_timm,
                   inputs_of(case, 1000 + seed))
    for seed, name, case in chosen(META_CASES, 400):
        torch.manual_seed(seed)
        model, _ = build_meta(case)
        write_case(name, randomise(model, seed), run_timm, lambda folder: save_meta(model, case, folder),
                   lambda folder: load_meta(case, folder), inputs_of(case, 1000 + seed))
    for seed, name, case in chosen(HF_CASES, 200):
        model = randomise(build_hf(case), seed)
        write_case(name, model, run_hf, lambda folder: save_hf(model, case, folder),
                   lambda folder: load_hf(case, folder), inputs_of(case, 1000 + seed))
    for seed, name, case in chosen(OPEN_CLIP_CASES, 300):
        torch.manual_seed(seed)
        model = build_open_clip(case)
        write_case(name, randomise(model.visual, seed), run_open_clip,
                   lambda folder: save_open_clip(model, case, folder), load_open_clip,
                   inputs_of(case, 1000 + seed))


if __name__ == "__main__":
    main()
