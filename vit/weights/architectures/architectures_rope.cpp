// Architectures that rotate queries and keys, as timm names them: rope-vit, EVA-02, SBB, DINOv3, Perception
// Encoder, and EVA-01, which shares the class. Values: the papers and timm's registry.
#include "vit/weights/architectures/architecture_list.h"

namespace vit::internal::architecture_list {
namespace {

/// rope-vit, Naver, "Rotary Position Embedding for Vision Transformer" (2024).
void add_rope_vit(std::vector<Architecture>& list) {
  for (const char* kind : {"", "mixed_", "ape_", "mixed_ape_"}) {
    for (const Size& size : {kSmall, kBase, kLarge}) {
      Architecture a = make_eva(std::string("vit_") + size.name + "_patch16_rope_" + kind + "224", "rope-vit",
                                size, 16, 224);
      const std::string_view rules(kind);
      a.args.attn_type = "rope";
      a.args.global_pool = "token";
      a.args.layer_scale = true;
      a.args.rope = true;
      a.args.rope_xy = true;
      a.args.rope_type = rules.starts_with("mixed") ? "mixed" : "cat";
      a.args.rope_temperature = rules.starts_with("mixed") ? 10.0 : 100.0;
      a.args.pos_embed = rules.ends_with("ape_");
      a.args.no_embed_class = true;
      list.push_back(std::move(a));
    }
  }
}

/// EVA-01 (Fang et al. 2022): no rotation, but the attention without k bias.
void add_eva(std::vector<Architecture>& list) {
  const Size giant{"giant", 1408, 40, 16};
  for (const std::size_t image : {224, 336, 560}) {
    Architecture a = make_eva("eva_giant_patch14_" + std::to_string(image), "eva", giant, 14, image);
    a.args.mlp_ratio = 6144.0 / 1408;
    if (image != 560) {
      a.mean = kClipMean;
      a.std = kClipStd;
    }
    a.crop_pct = image == 224 ? 0.9 : 1.0;
    a.squash = image != 224;
    list.push_back(std::move(a));
  }
  Architecture clip = list[list.size() - 3];
  clip.name = "eva_giant_patch14_clip_224";
  clip.args.global_pool = "token";
  clip.args.num_classes = 1024;
  list.push_back(std::move(clip));
}

/// EVA-02 (Fang et al. 2023) and the image towers of EVA02-CLIP (Sun et al. 2023).
void add_eva02(std::vector<Architecture>& list) {
  const auto add = [&](const Size& size, std::size_t patch, const std::string& middle, std::size_t image,
                       std::size_t num_classes) {
    Architecture a = make_eva(std::string("eva02_") + size.name + "_patch" + std::to_string(patch) + middle +
                                  "_" + std::to_string(image),
                              "eva02", size, patch, image);
    const bool split = size.embed_dim >= kBase.embed_dim;
    a.args.mlp_ratio = 4.0 * 2.0 / 3.0;
    a.args.swiglu = true;
    a.args.qkv_fused = !split;
    a.args.scale_mlp = split;
    a.args.scale_attn_inner = middle == "_clip";
    a.args.global_pool = middle == "_clip" ? "token" : "avg";
    a.args.rope = true;
    a.args.ref_feat_shape = {16, 16};
    a.args.num_classes = num_classes;
    a.mean = kClipMean;
    a.std = kClipStd;
    a.crop_pct = image == 224 ? 0.9 : 1.0;
    a.squash = image == 448;
    list.push_back(std::move(a));
  };
  for (const Size& size : {kTiny, kSmall, kBase, kLarge}) add(size, 14, "", 224, 0);
  add(kTiny, 14, "", 336, 1000);
  add(kSmall, 14, "", 336, 1000);
  add(kBase, 14, "", 448, 1000);
  add(kLarge, 14, "", 448, 1000);
  add(kBase, 16, "_clip", 224, 512);
  add(kLarge, 14, "_clip", 224, 768);
  add(kLarge, 14, "_clip", 336, 768);
}

/// timm's rotating baselines: registers instead of a class token, mean pooling.
void add_sbb_rope(std::vector<Architecture>& list) {
  for (const Size& size : {kMedium, Size{"mediumd", 512, 20, 8}, kBetwixt, kBase}) {
    const bool betwixt = size.embed_dim == kBetwixt.embed_dim;
    Architecture a =
        make_eva(std::string("vit_") + size.name + "_patch16_rope_reg" + (betwixt ? "4" : "1") + "_gap_256",
                 "sbb-rope", size, 16, 256);
    a.args.class_token = false;
    a.args.reg_tokens = betwixt ? 4 : 1;
    a.args.pos_embed = false;
    a.args.qkv_bias = size.depth != 20;
    a.args.layer_scale = true;
    a.args.rope = true;
    a.args.ref_feat_shape = {16, 16};
    a.mean = betwixt ? kClipMean : kHalf;
    a.std = betwixt ? kClipStd : kHalf;
    a.crop_pct = 0.95;
    list.push_back(std::move(a));
  }
}

/// What DINOv3 and its followers share; hidden widths of the gated sizes are rounded up to a multiple of
/// `align`, 0 = not gated.
Architecture make_dinov3(std::string name, std::string family, const Size& size, bool qkv_bias,
                         std::size_t align, double mlp_ratio = 4.0) {
  Architecture a = make_eva(std::move(name), std::move(family), size, 16, 256);
  a.args.mlp_ratio = mlp_ratio;
  a.args.qkv_bias = qkv_bias;
  a.args.layer_scale = true;
  a.args.pos_embed = false;
  a.args.reg_tokens = 4;
  a.args.rope = true;
  a.args.rope_type = "dinov3";
  a.args.rope_temperature = 100.0;
  a.args.rope_rotate_half = true;
  a.args.swiglu = align != 0;
  a.args.swiglu_align_to = align;
  a.args.fc_norm = false;
  a.args.norm_eps = 1e-5;
  a.args.num_classes = 0;
  a.crop_pct = 1.0;
  return a;
}

/// DINOv3 (Simeoni et al. 2025), with or without q and v bias; the tiny one is EUPE's. LingBot-Vision (2026)
/// differs in pooling.
void add_dinov3(std::vector<Architecture>& list) {
  const Size huge{"huge_plus", 1280, 32, 20}, small_plus{"small_plus", 384, 12, 6};
  for (const bool bias : {false, true}) {
    const std::string ending = bias ? "_patch16_dinov3_qkvb" : "_patch16_dinov3";
    if (bias) list.push_back(make_dinov3("vit_tiny" + ending, "dinov3", kTiny, bias, 0));
    for (const Size& size : {kSmall, small_plus, kBase, kLarge, huge}) {
      const bool gated = size.name == small_plus.name || size.name == huge.name;
      list.push_back(
          make_dinov3(std::string("vit_") + size.name + ending, "dinov3", size, bias, gated ? 8 : 0));
    }
  }
  list.push_back(make_dinov3("vit_7b_patch16_dinov3", "dinov3", {"7b", 4096, 40, 32}, false, 64, 2.0));
  for (const Size& size : {kSmall, kBase, kLarge, Size{"giant", 1536, 40, 24}}) {
    const bool giant = size.embed_dim == 1536;
    Architecture a = make_dinov3(std::string("vit_") + size.name + "_patch16_lingbot", "lingbot", size,
                                 !giant, giant ? 8 : 0, giant ? 4.0 * 2.0 / 3.0 : 4.0);
    a.args.global_pool = "token";
    a.args.image_height = a.args.image_width = 512;
    a.squash = true;
    a.filter = ResizeFilter::bilinear;
    list.push_back(std::move(a));
  }
}

/// Perception Encoder (Bolya et al. 2025): Core pools by attention and projects, Lang and Spatial end with
/// the last block.
void add_pe(std::vector<Architecture>& list) {
  struct Row {
    const char* name;
    Size size;
    std::size_t patch, image;
    std::size_t num_classes = 0;
    bool layer_scale = false;
  };
  const Row rows[] = {{"core_tiny_patch16_384", kTiny, 16, 384, 512},
                      {"core_small_patch16_384", kSmall, 16, 384, 512},
                      {"core_base_patch16_224", kBase, 16, 224, 1024},
                      {"core_large_patch14_336", kLarge, 14, 336, 1024},
                      {"core_gigantic_patch14_448", {"", 1536, 50, 16}, 14, 448, 1280},
                      {"lang_large_patch14_448", {"", 1024, 23, 16}, 14, 448, 0, true},
                      {"lang_gigantic_patch14_448", {"", 1536, 47, 16}, 14, 448, 0, true},
                      {"spatial_tiny_patch16_512", kTiny, 16, 512},
                      {"spatial_small_patch16_512", kSmall, 16, 512},
                      {"spatial_base_patch16_512", kBase, 16, 512},
                      {"spatial_large_patch14_448", kLarge, 14, 448},
                      {"spatial_gigantic_patch14_448", {"", 1536, 50, 16}, 14, 448, 0, true}};
  for (const Row& row : rows) {
    Architecture a = make_eva(std::string("vit_pe_") + row.name, "pe", row.size, row.patch, row.image);
    const bool core = row.num_classes != 0;
    const bool gigantic = row.size.embed_dim == 1536;
    a.args.attn_type = "rope";
    a.args.mlp_ratio = gigantic ? 8960.0 / 1536 : 4.0;
    a.args.pre_norm = true;
    a.args.class_token = !gigantic;
    a.args.layer_scale = row.layer_scale;
    a.args.rope = true;
    a.args.rope_xy = true;
    a.args.rope_grid_offset = gigantic ? 0.0 : 1.0;  // the class token sits at (0, 0)
    a.args.ref_feat_shape = {row.image / row.patch, row.image / row.patch};
    a.args.global_pool = core ? "map" : "avg";
    if (core) {
      a.args.attn_pool_num_heads = 8;
      a.args.attn_pool_mlp_ratio = 4.0;
    } else {
      a.args.post_norm = a.args.fc_norm = false;
    }
    a.args.norm_eps = 1e-5;
    a.args.num_classes = row.num_classes;
    a.mean = a.std = kHalf;
    a.crop_pct = 1.0;
    list.push_back(std::move(a));
  }
}

}  // namespace

void add_rope(std::vector<Architecture>& list) {
  add_rope_vit(list);
  add_eva(list);
  add_eva02(list);
  add_sbb_rope(list);
  add_dinov3(list);
  add_pe(list);
}

}  // namespace vit::internal::architecture_list
