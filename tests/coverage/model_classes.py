"""The classes of transformers with a plain image encoder, how each is called, and which of its outputs the program has."""

import operator
from dataclasses import dataclass, field

import numpy as np
import torch

import tiny_models


@dataclass
class Plain:
    """A class that takes pixel_values (1, 3, H, W)."""
    type: str
    name: str
    image: int = 64
    patch: int = 8
    changes: dict = field(default_factory=dict)
    grid: tuple = None  # rows and columns of patches of the input; None = those of image_size

    def pixels(self, model, seed):
        rows, columns = self.grid or (self.image // self.patch,) * 2
        return tiny_models.pixels_of(rows * self.patch, columns * self.patch, seed)

    def call(self, model, pixels):
        return model(pixel_values=pixels)

    def outputs(self, model, pixels):
        out = self.call(model, pixels)
        names = {"tokens": getattr(out, "last_hidden_state", None), "pooled": getattr(out, "pooler_output", None),
                 "projected": getattr(out, "image_embeds", None)}
        return {name: value for name, value in names.items() if value is not None}


@dataclass
class Masked(Plain):
    """... and a mask of patches."""

    def call(self, model, pixels):
        mask = torch.ones(1, pixels.shape[2] // self.patch, pixels.shape[3] // self.patch, dtype=torch.bool)
        return model(pixel_values=pixels, patch_attention_mask=mask)


@dataclass
class Classes(Plain):
    def outputs(self, model, pixels):
        return {"logits": self.call(model, pixels).logits}


@dataclass
class Pair(Plain):
    """Of images and texts: what get_image_features gives is the vector of the image."""
    feature: str = "projected"

    def outputs(self, model, pixels):
        out = model.get_image_features(pixel_values=pixels)
        return {self.feature: getattr(out, "pooler_output", out)}


def base_of(model):
    """The model that has get_image_features."""
    for inner in (model, getattr(model, "model", None), getattr(model, "vlm", None)):
        if inner is not None and hasattr(inner, "get_image_features"):
            return inner
    return model


@dataclass
class Merged(Plain):
    """A language model: what it reads of an image."""
    arguments: tuple = ()  # of get_image_features: "sizes", "images"

    def features(self, model, pixels):
        base = base_of(model)
        more = {}
        if "sizes" in self.arguments:
            more["image_sizes"] = torch.tensor([pixels.shape[2:]])
        if "images" in self.arguments:
            pixels = pixels[:, None]
        for key in ("vision_feature_layer", "vision_feature_select_strategy"):
            config = base.config
            if "layer" in self.arguments and hasattr(config, key):
                more[key] = getattr(config, key)
        out = base.get_image_features(pixel_values=pixels, **more)
        return getattr(out, "pooler_output", out)

    def outputs(self, model, pixels):
        found = self.features(model, pixels)
        return {"merged": found[0] if isinstance(found, (list, tuple)) else found}


@dataclass
class Projected(Merged):
    """A LLaVA with tiles: the projector's output of one tile, without what packs tiles into a sequence."""

    def features(self, model, pixels):
        base = base_of(model)
        config = base.config
        base = getattr(base, "model", base)
        tower = base.vision_tower if hasattr(base, "vision_tower") else base.image_tower
        hidden = tower(pixels, output_hidden_states=True).hidden_states[config.vision_feature_layer]
        if config.vision_feature_select_strategy == "default":
            hidden = hidden[:, 1:]
        return base.multi_modal_projector(hidden)


def packed(pixels, patch, merge=1, frames=1, last=False):
    """(1, 3, H, W) as rows of patches: cells of merge x merge side by side, each patch (channel, frame, y, x), or (y, x, channel)."""
    channels, rows, columns = pixels.shape[1], pixels.shape[2] // patch, pixels.shape[3] // patch
    cut = pixels[0].reshape(channels, rows // merge, merge, patch, columns // merge, merge, patch)
    order = (1, 4, 2, 5, 3, 6, 0) if last else (1, 4, 2, 5, 0, 3, 6)
    cut = cut.permute(*order).reshape(rows * columns, channels, patch * patch) if not last else cut.permute(*order).reshape(rows * columns, -1)
    return cut if last else cut[:, :, None].expand(-1, -1, frames, -1).reshape(rows * columns, -1)


def raster(tokens, grid, merge):
    """Tokens that lie cell by cell, row by row."""
    rows, columns = grid
    return tokens.reshape(rows // merge, columns // merge, merge, merge, -1).permute(0, 2, 1, 3, 4).reshape(rows * columns, -1)


@dataclass
class Neck(Plain):
    """An encoder of SAM: last_hidden_state is the map (1, V, h, w) of its neck, or pooler_output is what the language model gets."""
    pooled: bool = False

    def outputs(self, model, pixels):
        out = self.call(model, pixels)
        return {"merged": out.pooler_output if self.pooled else out.last_hidden_state.permute(0, 2, 3, 1)}


@dataclass
class Map(Plain):
    """An encoder whose last_hidden_state is a map (1, C, h, w) of tokens."""

    def outputs(self, model, pixels):
        return {"tokens": self.call(model, pixels).last_hidden_state.permute(0, 2, 3, 1)}


@dataclass
class Clip(Plain):
    """A model of clips (1, frames, 3, H, W)."""
    frames: int = 16
    classes: bool = False

    def pixels(self, model, seed):
        return tiny_models.pixels_of(self.image, self.image, seed, 3 * self.frames)

    def call(self, model, pixels):
        return model(pixel_values=pixels.reshape(1, self.frames, 3, *pixels.shape[2:]))

    def outputs(self, model, pixels):
        return {"logits": self.call(model, pixels).logits} if self.classes else super().outputs(model, pixels)


@dataclass
class Packed(Plain):
    """A tower that takes rows of patches and their grid."""
    merge: int = 2
    frames: int = 2
    pixels_last: bool = False
    merged: bool = True  # it ends with its merger
    tokens: bool = True  # last_hidden_state has the tokens
    keyword: str = "hidden_states"

    def outputs(self, model, pixels):
        rows, columns = pixels.shape[2] // self.patch, pixels.shape[3] // self.patch
        out = model(**{self.keyword: packed(pixels, self.patch, self.merge, self.frames, self.pixels_last)},
                    grid_thw=torch.tensor([[1, rows, columns]]))
        found = {"tokens": raster(out.last_hidden_state, (rows, columns), self.merge)} if self.tokens else {}
        if self.merged:
            found["merged"] = out.pooler_output
        return found


@dataclass
class Molmo(Plain):
    def call(self, model, pixels):
        return model(pixel_values=packed(pixels, self.patch, last=True)[None])


@dataclass
class InModel(Merged):
    """A whole model whose tower takes packed patches: what it reads of an image."""
    merge: int = 2
    frames: int = 2

    def features(self, model, pixels):
        grid = torch.tensor([[1, pixels.shape[2] // self.patch, pixels.shape[3] // self.patch]])
        return base_of(model).get_image_features(pixel_values=packed(pixels, self.patch, self.merge, self.frames),
                                                 image_grid_thw=grid).pooler_output


@dataclass
class KimiModel(Merged):
    def features(self, model, pixels):
        rows, columns = pixels.shape[2] // self.patch, pixels.shape[3] // self.patch
        cut = packed(pixels, self.patch).reshape(rows * columns, 3, self.patch, self.patch)
        return base_of(model).get_image_features(pixel_values=cut, image_grid_thw=torch.tensor([[1, rows, columns]])).pooler_output


@dataclass
class NaFlex(Merged):
    """A whole model with SigLIP 2's tower of packed patches."""

    def features(self, model, pixels):
        rows, columns = pixels.shape[2] // self.patch, pixels.shape[3] // self.patch
        return base_of(model).get_image_features(
            pixel_values=packed(pixels, self.patch, last=True)[None], spatial_shapes=torch.tensor([[rows, columns]]),
            pixel_attention_mask=torch.ones(1, rows * columns, dtype=torch.long)).pooler_output


@dataclass
class Encoder(Plain):
    """A composed model of which only the image encoder is read."""
    member: str = "encoder"

    def call(self, model, pixels):
        return operator.attrgetter(self.member)(model)(pixel_values=pixels)


@dataclass
class Maps(Plain):
    """A backbone whose only map is that of the tokens after the final norm."""

    def outputs(self, model, pixels):
        return {"tokens": model(pixel_values=pixels, output_hidden_states=True).feature_maps[-1]}


@dataclass
class Stages(Plain):
    """A backbone whose last map (1, C, h, w) is that of the tokens after the last block, or after the final norm."""
    feature: str = "tokens"

    def outputs(self, model, pixels):
        return {self.feature: model(pixel_values=pixels).feature_maps[-1].permute(0, 2, 3, 1)}


@dataclass
class Spectrogram(Plain):
    """One plane of mel bins and frames, which the library has the other way round."""

    def pixels(self, model, seed):
        return tiny_models.pixels_of(model.config.num_mel_bins, model.config.max_length, seed, channels=1)

    def call(self, model, pixels):
        return model(input_values=pixels[:, 0].transpose(1, 2))

    def outputs(self, model, pixels):
        out = self.call(model, pixels)
        return {"logits": out.logits} if hasattr(out, "logits") else super().outputs(model, pixels)


@dataclass
class Tower(Plain):
    """A tower of one of the pixel layouts below, called by `how(model, pixels, patch)`."""
    how: object = None

    def outputs(self, model, pixels):
        return self.how(model, pixels, self.patch)


def naflex(model, pixels, patch):
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    out = model(pixel_values=packed(pixels, patch, last=True)[None], spatial_shapes=torch.tensor([[rows, columns]]),
                pixel_attention_mask=torch.ones(1, rows * columns, dtype=torch.long))
    if hasattr(out, "logits"):
        return {"logits": out.logits}
    return {"tokens": out.last_hidden_state, "pooled": out.pooler_output}


def naflex_pair(model, pixels, patch):
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    out = model.get_image_features(pixel_values=packed(pixels, patch, last=True)[None], spatial_shapes=torch.tensor([[rows, columns]]),
                                   pixel_attention_mask=torch.ones(1, rows * columns, dtype=torch.long))
    return {"pooled": getattr(out, "pooler_output", out)}


def pixtral(model, pixels, patch):
    return {"tokens": model(pixel_values=pixels, image_sizes=torch.tensor([pixels.shape[2:]])).last_hidden_state}


def gemma4(model, pixels, patch):
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    r, c = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    out = model(pixel_values=packed(pixels, patch, last=True)[None], pixel_position_ids=torch.stack([c, r], -1).reshape(1, -1, 2))
    return {"tokens": out.last_hidden_state}


def llama4(model, pixels, patch):
    return {"tokens": model(pixel_values=pixels).last_hidden_state}


def clip_of_two(model, pixels, patch):
    """A clip of two equal frames is an image."""
    return {"tokens": model(pixel_values_videos=pixels[:, None].expand(-1, 2, -1, -1, -1), skip_predictor=True).last_hidden_state}


def kimi(model, pixels, patch):
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    cut = packed(pixels, patch).reshape(rows * columns, 3, patch, patch)
    return {"tokens": model(cut, grid_thw=torch.tensor([[1, rows, columns]])).last_hidden_state}


def paddle(model, pixels, patch):
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    cut = packed(pixels, patch).reshape(1, rows * columns, 3, patch, patch)
    return {"tokens": model(pixel_values=cut, grid_thw=torch.tensor([[1, rows, columns]])).last_hidden_state}


def video_llama(model, pixels, patch):
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    out = model(pixel_values=packed(pixels, patch), grid_thw=torch.tensor([[1, rows, columns]]), merge_sizes=torch.tensor([1]))
    return {"tokens": out.last_hidden_state}


def sapiens2(model, pixels, patch):
    out = model(pixel_values=pixels)
    return {"tokens": out.last_hidden_state, "pooled": out.pooler_output}


def flattened(model, pixels, patch):
    """Patches with the numbers of their row and column, counted from 1, in front."""
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    r, c = torch.meshgrid(torch.arange(rows), torch.arange(columns), indexing="ij")
    at = torch.stack([r, c], -1).reshape(-1, 2).to(pixels.dtype) + 1
    return {"tokens": model(flattened_patches=torch.cat([at, packed(pixels, patch, last=True)], 1)[None]).last_hidden_state}


def unmasked(model, pixels, patch):
    """Patches stay in their order."""
    noise = torch.arange((pixels.shape[2] // patch) * (pixels.shape[3] // patch), dtype=pixels.dtype)[None]
    return {"tokens": model(pixel_values=pixels, noise=noise).last_hidden_state}


def bridgetower(model, pixels, patch):
    return {"tokens": model.vision_model(pixels, None)[-1]}


def step(model, pixels, patch):
    return {"merged": model(pixel_values=pixels).last_hidden_state}


def yolos(model, pixels, patch):
    """Detection tokens come last."""
    out, count = model(pixel_values=pixels), model.config.num_detection_tokens
    tokens = out.last_hidden_state
    return {"tokens": torch.cat([tokens[:, :1], tokens[:, -count:], tokens[:, 1:-count]], 1), "pooled": out.pooler_output}


def inkling(model, pixels, patch):
    """Cells of 2 x 2 patches with the channels of a pixel side by side; a class token in front."""
    grid = (pixels.shape[2] // patch, pixels.shape[3] // patch)
    cells = pixels[0].reshape(3, grid[0] // 2, 2 * patch, grid[1] // 2, 2 * patch).permute(1, 3, 2, 4, 0).reshape(-1, 2 * patch, 2 * patch, 3)
    out = model(pixel_values=cells, image_grid_thw=torch.tensor([[1, grid[0] // 2, grid[1] // 2]]))
    tokens = out.last_hidden_state
    return {"tokens": torch.cat([tokens[:1], raster(tokens[1:], grid, 2)]), "merged": out.pooler_output}


def hunyuan(model, pixels, patch):
    """Constants end each row of cells, and surround all of them in HunyuanOCR."""
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    out = model(packed(pixels, patch), grid_thw=torch.tensor([[1, rows, columns]]))
    merged = out.pooler_output[0]
    if hasattr(model.patch_merger, "image_begin"):
        merged = merged[1:-1]
    return {"tokens": out.last_hidden_state, "merged": merged.reshape(rows // 2, columns // 2 + 1, -1)[:, :-1]}


def two_frames(pixels, patch):
    """Rows of patches with two equal frames one after the other."""
    return packed(pixels, patch).repeat(1, 2)


def muse(model, pixels, patch):
    """last_hidden_state has cells of 2 x 2 tokens, channel by channel."""
    rows, columns = pixels.shape[2] // patch, pixels.shape[3] // patch
    cells = model(two_frames(pixels, patch), grid_thw=torch.tensor([[1, rows, columns]])).last_hidden_state
    width = cells.shape[-1] // 4
    return {"tokens": raster(cells.reshape(-1, width, 4).permute(0, 2, 1).reshape(-1, width), (rows, columns), 2)}


def muse_model(model, pixels, patch):
    grid = torch.tensor([[1, pixels.shape[2] // patch, pixels.shape[3] // patch]])
    return {"merged": base_of(model).get_image_features(two_frames(pixels, patch), image_grid_thw=grid).pooler_output[0]}


def radio(model, pixels, patch):
    out = model(pixel_values=pixels)
    return {"tokens": getattr(out, "last_hidden_state", None)}


@dataclass
class Heads(Plain):
    """A model with a dense head: a case of tests/rings/dense/compare_heads.py, with its own bar."""
    case: str = ""


# whose last_hidden_state lies window by window
QWEN25 = {"fullatt_block_indexes": [1]}
QWEN3 = {"deepstack_visual_indexes": [0, 1]}
AST = {"num_mel_bins": 24, "max_length": 50, "frequency_stride": 5, "time_stride": 6}
CLASSES = [
    Heads("depth_anything", "DepthAnythingForDepthEstimation", case="depth-anything"), Heads("dpt", "DPTForDepthEstimation", case="dpt-vit"),
    Heads("dpt", "DPTForSemanticSegmentation", case="dpt-segmentation"), Heads("eomt", "EomtForUniversalSegmentation", case="eomt"),
    Heads("eomt_dinov3", "EomtDinov3ForUniversalSegmentation", case="eomt-dinov3"), Heads("yolos", "YolosForObjectDetection", case="yolos"),
    Heads("owlv2", "Owlv2ForObjectDetection", case="owlv2"), Heads("owlvit", "OwlViTForObjectDetection", case="owlvit"),
    Heads("vitpose", "VitPoseForPoseEstimation", case="vitpose"),
    Heads("prompt_depth_anything", "PromptDepthAnythingForDepthEstimation", case="prompt-depth-anything"),
    Heads("rf_detr", "RfDetrForObjectDetection", case="rf-detr"),
    Heads("rf_detr", "RfDetrForInstanceSegmentation", case="rf-detr-segmentation"), Heads("lw_detr", "LwDetrForObjectDetection", case="lw-detr-levels"),
    Stages("rf_detr", "RfDetrDinov2Backbone", changes={"num_windows": 2, "out_indices": [1, 3], "out_features": ["stage1", "stage3"]}, feature="patches"),
    Stages("lw_detr", "LwDetrViTBackbone", changes={"window_block_indices": [0, 2], "num_windows": 4, "num_windows_side": 2, "pretrain_image_size": 32, "out_indices": [3], "out_features": ["stage3"]}),
    Spectrogram("audio_spectrogram_transformer", "ASTModel", changes=AST),
    Spectrogram("audio_spectrogram_transformer", "ASTForAudioClassification", changes=AST),
    Neck("sam", "SamVisionModel"), Neck("sam_hq", "SamHQVisionModel"), Neck("slanext", "SLANeXtVisionEncoder"),
    Neck("got_ocr2", "GotOcr2VisionEncoder"), Neck("deepseek_ocr2", "DeepseekOcr2SamVisionEncoder"),
    Neck("unlimited_ocr", "UnlimitedOcrSamVisionEncoder"), Neck("pp_formulanet", "PPFormulaNetVisionModel", pooled=True),
    Merged("got_ocr2", "GotOcr2ForConditionalGeneration"),
    Map("vitdet", "VitDetModel"), Map("vitdet", "VitDetModel", changes={"window_size": 3, "window_block_indices": [0, 2], "use_relative_position_embeddings": True}),
    Classes("beit", "BeitForImageClassification"), Classes("data2vec", "Data2VecVisionForImageClassification"),
    Tower("step3p7", "Step3p7VisionModel", how=step), Tower("step3p7", "Step3p7VisionModel", how=step, grid=(6, 12)),
    Merged("step3p7", "Step3p7ForConditionalGeneration"),
    Tower("yolos", "YolosModel", how=yolos),
    Tower("inkling2", "Inkling2VisionModel", how=inkling, grid=(6, 4)),
    Tower("hunyuan_vl", "HunYuanVLVisionTransformer", how=hunyuan, changes={"max_image_size": 64}, grid=(6, 10)),
    Tower("hy_v4_vl", "HYV4VLVisionModel", how=hunyuan, changes={"max_image_size": 64}), Tower("hy_v4_vl", "HYV4VLVisionModel", how=hunyuan, changes={"max_image_size": 64}, grid=(10, 4)),
    *[Tower(kind, name, how=how, grid=(6, 12), changes={"pos_emb_height": 4, "pos_emb_width": 4, "layer_types": ["window_attention", "full_attention", "window_attention"], **more})
      for kind, stem in (("muse_glimmer", "MuseGlimmer"), ("muse_spark", "MuseSpark"))
      for name, how, more in ((stem + "VisionModel", muse, {}), (stem + "ForConditionalGeneration", muse_model, {"out_hidden_size": 128, "audio_config.out_hidden_size": 32}))],
    Packed("minimax_m3_vl", "MiniMaxM3VLVisionModel", merged=False, keyword="pixel_values", grid=(6, 10)),
    InModel("minimax_m3_vl", "MiniMaxM3SparseForConditionalGeneration", grid=(4, 6), changes={"merged_hidden_size": 128}),
    Clip("videomae", "VideoMAEModel"), Clip("videomae", "VideoMAEForVideoClassification", classes=True),
    Clip("videomae", "VideoMAEModel", changes={"use_mean_pooling": False}), Clip("vivit", "VivitModel", frames=32, patch=16),
    Clip("vivit", "VivitForVideoClassification", frames=32, patch=16, classes=True),
    Merged("ultravbert", "UltraVBertModel", arguments=("images",)),
    Tower("bridgetower", "BridgeTowerModel", how=bridgetower, changes={"hidden_size": 128, "num_attention_heads": 2}),
    Encoder("deepseek_vl_hybrid", "DeepseekVLHybridForConditionalGeneration", member="model.vision_model"),
    Encoder("granite4_vision", "Granite4VisionForConditionalGeneration", member="model.vision_tower",
            changes={"deepstack_layer_map": [[-1, 0]], "downsample_rate": "1/2", "spatial_target_layers": [0, 0, 0, 0]}),
    Packed("qwen2_vl", "Qwen2VisionTransformerPretrainedModel"),
    Packed("qwen2_5_vl", "Qwen2_5_VisionTransformerPretrainedModel", changes=QWEN25, tokens=False),
    Packed("qwen2_5_omni", "Qwen2_5OmniVisionEncoder", changes=QWEN25, tokens=False), Packed("exaone4_5", "Exaone4_5_VisionModel", changes=QWEN25, tokens=False),
    Packed("qwen3_vl", "Qwen3VLVisionModel", changes=QWEN3), Packed("qwen3_vl_moe", "Qwen3VLMoeVisionModel", changes=QWEN3),
    Packed("qwen3_omni_moe", "Qwen3OmniMoeVisionEncoder", changes=QWEN3), Packed("qwen3_5", "Qwen3_5VisionModel"),
    Packed("qwen3_5_moe", "Qwen3_5MoeVisionModel"), Packed("qwen4_exp", "Qwen4ExpVisionModel"),
    Packed("cohere_compass", "CohereCompassVisionModel", changes=QWEN3),
    Packed("glm4v", "Glm4vVisionModel", tokens=False), Packed("glm4v_moe", "Glm4vMoeVisionModel", tokens=False),
    Packed("glm_ocr", "GlmOcrVisionModel", tokens=False), Packed("glm5_next", "Glm5NextVisionModel", tokens=False),
    Packed("ernie4_5_vl_moe", "Ernie4_5_VLMoeVisionTransformerPretrainedModel", frames=1, merged=False),
    Tower("siglip2", "Siglip2VisionModel", how=naflex), Tower("siglip2", "Siglip2ForImageClassification", how=naflex),
    Tower("siglip2", "Siglip2Model", how=naflex_pair),
    Tower("pixtral", "PixtralVisionModel", how=pixtral), Tower("gemma4", "Gemma4VisionModel", how=gemma4, grid=(6, 9)),
    Tower("llama4", "Llama4VisionModel", how=llama4, changes={"intermediate_size": 128, "vision_output_dim": 48, "projector_input_dim": 48, "projector_output_dim": 48}), Tower("kimi_k25", "Kimi_K25VisionModel", how=kimi),
    Tower("paddleocr_vl", "PaddleOCRVisionModel", how=paddle), Tower("video_llama_3", "VideoLlama3VisionModel", how=video_llama),
    Tower("vjepa2", "VJEPA2Model", how=clip_of_two), Tower("sapiens2", "Sapiens2Model", how=sapiens2, changes={"num_key_value_heads_per_layer": [4, 2, 1]}), Tower("radio", "RadioModel", how=radio, patch=16),
    Plain("sam3", "Sam3ViTModel", changes={"window_size": 4, "global_attn_indexes": [1]}), Plain("tipsv2", "Tipsv2VisionModel"), Pair("tipsv2", "Tipsv2Model", feature="pooled"),
    Tower("vit_mae", "ViTMAEModel", how=unmasked, changes={"mask_ratio": 0.0}), Classes("dinov2_with_registers", "Dinov2WithRegistersForImageClassification"),
    Classes("metaclip_2", "MetaClip2ForImageClassification"),
    KimiModel("kimi_k25", "Kimi_K25ForConditionalGeneration", changes={"projection_hidden_size": 32}), Merged("mistral3", "Mistral3ForConditionalGeneration", arguments=("sizes",)),
    Merged("perception_lm", "PerceptionLMForConditionalGeneration", arguments=("images",), changes={
        "projector_pooling_ratio": 2, "vision_config.architecture": "vit_pe_core_large_patch14_336",
        "vision_config.model_args": {"embed_dim": 32, "depth": 3, "num_heads": 4, "img_size": [64, 64], "patch_size": 8, "ref_feat_shape": [8, 8],
                                     "use_post_transformer_norm": False, "init_values": 0.1, "global_pool": ""}}),
    Merged("lighton_ocr", "LightOnOcrForConditionalGeneration", arguments=("sizes",)),
    *[Plain(kind, name) for kind, names in {
        "beit": "BeitModel", "data2vec": "Data2VecVisionModel",
        "deepseek_ocr2": "DeepseekOcr2VisionModel",
        "depth_pro": "DepthProForDepthEstimation", "dots3_note": "Dots3NoteVisionModel", "dpt": "DPTModel",
        "groupvit": "GroupViTVisionModel",
        "layoutlmv3": "LayoutLMv3Model", "lfm3_vl": "Lfm3VlVisionModel",
        "minicpm_ocr": "MiniCPMOcrVisionModel", "minicpmv4_6": "MiniCPMV4_6VisionModel", "minicpmv4_7": "MiniCPMV4_7VisionModel",
        "mllama": "MllamaVisionModel", 
        "seggpt": "SegGptModel", "timesformer": "TimesformerModel",
        "unlimited_ocr": "UnlimitedOcrVisionModel",
        "videomt": "VideomtForUniversalSegmentation", "videoprism": "VideoPrismVisionModel", "vilt": "ViltModel",
        "vitmatte": "VitMatteForImageMatting", "x_clip": "XCLIPVisionModel",
    }.items() for name in names.split()],
    Packed("cosmos3_edge", "Cosmos3EdgeVisionModel", frames=1, pixels_last=True, merged=False, keyword="pixel_values"),
    InModel("colqwen2", "ColQwen2ForRetrieval"),
    Packed("glm_image", "GlmImageVisionModel", merge=1, frames=1, merged=False, keyword="pixel_values"),
    InModel("hyperclovax_vision_v2", "HyperCLOVAXVisionV2ForConditionalGeneration"),
    NaFlex("lfm2_vl", "Lfm2VlForConditionalGeneration"),
    Plain("mgp_str", "MgpstrModel"),
    Molmo("molmo2", "Molmo2VisionModel", changes={"num_position_embeddings": 64, "image_size": [64, 64]}),
    Tower("pix2struct", "Pix2StructVisionModel", how=flattened, patch=16, grid=(3, 5)),
    Tower("kosmos2_5", "Kosmos2_5VisionModel", how=flattened, patch=16, grid=(3, 5)),
    Plain("granite_docling", "GraniteDoclingVisionModel", changes={"deepstack_visual_indexes": [0, 1, 2]}),
    Encoder("idefics", "IdeficsForVisionText2Text", member="model.vision_model"), Maps("vitpose_backbone", "VitPoseBackbone", image=32, changes={"stage_names": ["stem", "stage1", "stage2", "stage3"], "out_indices": [3]}),
    Merged("vipllava", "VipLlavaForConditionalGeneration", changes={"vision_feature_layer": [-2, 1, 3]}),
    Encoder("vision_encoder_decoder", "VisionEncoderDecoderModel"),
    Encoder("vision_text_dual_encoder", "VisionTextDualEncoderModel", member="vision_model"),
    Plain("altclip", "AltCLIPVisionModel"), Pair("altclip", "AltCLIPModel"),
    Plain("aimv2", "Aimv2VisionModel"), Pair("aimv2", "Aimv2Model"),
    Merged("aya_vision", "AyaVisionForConditionalGeneration", arguments=("layer",), changes={"alignment_intermediate_size": 56}),
    Plain("blip", "BlipVisionModel"), Pair("blip", "BlipModel"),
    Plain("blip_2", "Blip2VisionModel"), Plain("instructblip", "InstructBlipVisionModel"),
    Plain("instructblipvideo", "InstructBlipVideoVisionModel"),
    Plain("chinese_clip", "ChineseCLIPVisionModel"), Pair("chinese_clip", "ChineseCLIPModel"),
    Plain("clip", "CLIPVisionModel"), Plain("clip", "CLIPVisionModelWithProjection"), Pair("clip", "CLIPModel"),
    Classes("clip", "CLIPForImageClassification"),
    Plain("clipseg", "CLIPSegVisionModel"), Pair("clipseg", "CLIPSegModel"),
    Merged("cohere2_vision", "Cohere2VisionForConditionalGeneration"),
    Merged("colmodernvbert", "ColModernVBertForRetrieval", arguments=("images",)), Merged("colpali", "ColPaliForRetrieval"),
    Merged("deepseek_vl", "DeepseekVLForConditionalGeneration"),
    Plain("deit", "DeiTModel"), Classes("deit", "DeiTForImageClassification"), Classes("deit", "DeiTForImageClassificationWithTeacher"),
    Plain("dinov2", "Dinov2Model"), Classes("dinov2", "Dinov2ForImageClassification"),
    Plain("dinov2_with_registers", "Dinov2WithRegistersModel"), Plain("dinov3_vit", "DINOv3ViTModel"),
    Plain("flava", "FlavaImageModel"),
    Merged("gemma3", "Gemma3ForConditionalGeneration", changes={"mm_tokens_per_image": 16}),
    Plain("git", "GitVisionModel"),
    Plain("idefics2", "Idefics2VisionTransformer"), Masked("idefics2", "Idefics2VisionTransformer", grid=(5, 7)),
    Plain("idefics3", "Idefics3VisionTransformer"), Masked("idefics3", "Idefics3VisionTransformer", grid=(3, 8)),
    Merged("idefics3", "Idefics3ForConditionalGeneration", arguments=("images",)),
    Plain("ijepa", "IJepaModel"), Classes("ijepa", "IJepaForImageClassification"),
    Plain("internvl", "InternVLVisionModel"), Merged("internvl", "InternVLForConditionalGeneration", arguments=("layer",)),
    Plain("janus", "JanusVisionModel"), Merged("janus", "JanusForConditionalGeneration"),
    Plain("kosmos2", "Kosmos2VisionModel"),
    Merged("llava", "LlavaForConditionalGeneration", arguments=("layer",)),
    Projected("llava_next", "LlavaNextForConditionalGeneration"), Projected("llava_next_video", "LlavaNextVideoForConditionalGeneration"),
    Projected("llava_onevision", "LlavaOnevisionForConditionalGeneration"),
    Plain("metaclip_2", "MetaClip2VisionModel"), Plain("metaclip_2", "MetaClip2VisionModelWithProjection"), Pair("metaclip_2", "MetaClip2Model"),
    Plain("mlcd", "MLCDVisionModel"),
    Merged("modernvbert", "ModernVBertModel", arguments=("images",)),
    Plain("ovis2", "Ovis2VisionModel"), Merged("ovis2", "Ovis2ForConditionalGeneration"),
    Plain("owlv2", "Owlv2VisionModel"), Pair("owlv2", "Owlv2Model"), Plain("owlvit", "OwlViTVisionModel"), Pair("owlvit", "OwlViTModel"),
    Merged("paligemma", "PaliGemmaForConditionalGeneration"),
    Masked("phi4_multimodal", "Phi4MultimodalVisionModel"), Masked("phi4_multimodal", "Phi4MultimodalVisionModel", grid=(4, 7)),
    Plain("pixio", "PixioModel"),
    Plain("qianfan_ocr", "QianfanOCRVisionModel"), Merged("qianfan_ocr", "QianfanOCRForConditionalGeneration", arguments=("layer",)),
    Merged("shieldgemma2", "ShieldGemma2ForImageClassification", changes={"mm_tokens_per_image": 16}),
    Plain("siglip", "SiglipVisionModel"), Pair("siglip", "SiglipModel", feature="pooled"), Classes("siglip", "SiglipForImageClassification"),
    Masked("smolvlm", "SmolVLMVisionTransformer", grid=(6, 5)),
    Merged("smolvlm", "SmolVLMForConditionalGeneration", arguments=("images",)),
    Projected("video_llava", "VideoLlavaForConditionalGeneration"),
    Plain("vit", "ViTModel"), Classes("vit", "ViTForImageClassification"), Plain("vit_msn", "ViTMSNModel"),
    Classes("vit_msn", "ViTMSNForImageClassification"),
]

# Types with an image tower that are not plain Vision Transformers.
CONSIDERED_NOT = """
    align apertus1p5 auto bit convnext convnextv2 cvt dinat donut edgetam efficientnet florence2 focalnet hgnet_v2 hiera imagegpt inkling levit
    mobilenet_v1 mobilenet_v2 mobilevit mobilevitv2 omdet_turbo poolformer pp_lcnet pvt pvt_v2 regnet resnet sam2 segformer swiftformer swin swinv2
    textnet timm_wrapper tvp""".split()
