// The constructor arguments of timm's Vision Transformer classes, as plain data with the constructors'
// defaults: the contents of a row of the architecture table. Source of names and meaning:
// huggingface/pytorch-image-models, models/vision_transformer.py, models/eva.py and models/naflexvit.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "vit/base/choices.h"
#include "vit/position/config.h"

namespace vit::internal {

enum class TimmClass : std::uint8_t { vision_transformer, eva, naflex };

/// global_pool: "", "token", "avg", "map"; and from scripts using timm's models: "cls+mean", the class
/// token and the mean of the patches concatenated, and "first_token", token 0 of a model without class token.
enum class TimmPool : std::uint8_t { none, token, avg, map, token_and_avg, first };

/// Eva's attn_type: "rope" keeps one full qkv bias, "eva" has none for k.
enum class TimmAttention : std::uint8_t { eva, rope };

/// Eva's rope_type; none is None, which only a model without rotation has.
enum class TimmRope : std::uint8_t { cat, mixed, dinov3, none };

struct TimmArgs {
  TimmClass timm_class = TimmClass::vision_transformer;
  bool distilled = false;  // VisionTransformerDistilled
  bool beit = false;       // Beit, one of TimmClass::eva

  std::size_t image_height = 224, image_width = 224;  // img_size
  std::size_t in_chans = 3;
  std::size_t patch_size = 16;
  std::size_t embed_dim = 768, depth = 12, num_heads = 12;
  double mlp_ratio = 4.0;
  std::size_t mlp_dim = 0;  // the hidden width itself if inferred from tensors; 0 = mlp_ratio decides
  std::size_t num_classes = 1000;
  TimmPool global_pool = TimmPool::token;
  bool pool_include_prefix = false;  // VisionTransformer: "map" reads prefix tokens too
  bool class_token = true;
  std::size_t reg_tokens = 0;
  bool no_embed_class = false;
  bool pos_embed = true;  // a learned table
  TableResampling pos_embed_interp_mode = TableResampling::bicubic_antialias;
  bool pos_embed_antialias = true;       // NaFlex, of that mode
  bool pos_embed_align_corners = false;  // NaFlex, of bilinear
  bool pos_embed_ar_preserving = false;  // NaFlex: a rectangle takes a part of the table of a square
  bool pos_embed_factorized = false;     // NaFlex: a table of columns and one of rows
  GridSize pos_embed_grid_size{};        // NaFlex: of the table; 0 x 0 = that of the image
  bool qkv_bias = true;
  bool proj_bias = true;            // of the MLP too
  bool layer_scale = false;         // init_values is not None
  bool no_layer_scale = false;      // init_values is given and None, whatever the tensors
  bool pre_norm = false;            // use_pre_transformer_norm
  std::optional<bool> post_norm{};  // use_post_transformer_norm, final_norm
  std::optional<bool> fc_norm{};    // use_fc_norm
  bool swiglu = false;  // Eva: swiglu_mlp; VisionTransformer: SwiGLUPacked (hidden counts both branches)
  bool swiglu_split = false;  // VisionTransformer: SwiGLU, two matrices
  std::size_t swiglu_align_to = 0;
  Activation activation = Activation::gelu;
  bool act_given = false;  // act_layer: SwiGLUPacked then has this one, else the SiLU of all published models
  double norm_eps = 1e-6;
  bool rms_norm = false;    // norm_layer
  bool embed_norm = false;  // embed_norm_layer
  bool qk_norm = false;
  bool parallel = false;          // block_fn is ParallelScalingBlock
  bool differential = false;      // attn_layer is DiffAttention
  bool post_norm_blocks = false;  // block_fn is ResPostBlock or ResPostRelPosBlock; Eva: use_post_norm

  // Beit and VisionTransformerRelPos
  bool rel_pos = false;           // a bias of attention in each block
  bool shared_rel_pos = false;    // one for all blocks
  bool rel_pos_mlp = false;       // computed by two layers
  std::size_t rel_pos_dim = 128;  // of these

  bool qkv_fused = true;          // Eva
  bool scale_mlp = false;         // Eva; VisionTransformer: scale_mlp_norm
  bool scale_attn_inner = false;  // Eva; VisionTransformer: scale_attn_norm

  // only Eva
  bool attn_only_layer_scale = false;    // no scale after the MLP
  std::size_t num_kv_heads = 0;          // heads of keys; 0 = num_heads
  std::size_t num_full_attn_blocks = 0;  // blocks at either end that have num_heads of them nevertheless
  TimmAttention attn_type = TimmAttention::eva;
  bool rope = false;  // use_rot_pos_emb
  TimmRope rope_type = TimmRope::cat;
  std::optional<double> rope_temperature = 10000.0;  // None if nothing reads it, as the next
  std::optional<double> rope_grid_offset = 0.0;
  bool rope_xy = false;  // rope_grid_indexing == "xy"
  bool rope_rotate_half = false;
  GridSize ref_feat_shape{};            // 0 x 0 = none
  std::size_t attn_pool_num_heads = 0;  // 0 = num_heads
  double attn_pool_mlp_ratio = 0.0;     // 0 = mlp_ratio
  /// The hidden width itself if inferred from tensors; 0 = the ratio decides
  std::size_t attn_pool_mlp_dim = 0;
};

}  // namespace vit::internal
