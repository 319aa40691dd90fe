// From the arguments of timm's constructor to the configuration of a model.
#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/weights/families/timm_args.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"timm_model_args", ErrorKind::format};

/// F.interpolate's mode, antialias and align_corners as one.
TableResampling table_resampling(const TimmArgs& args) {
  const bool bilinear = args.pos_embed_interp_mode == TableResampling::bilinear_antialias;
  if (args.pos_embed_factorized) return TableResampling::bilinear;  // always linear, corners apart
  if (bilinear && args.pos_embed_align_corners) return TableResampling::bilinear_aligned;
  if (args.pos_embed_antialias) return args.pos_embed_interp_mode;
  return bilinear ? TableResampling::bilinear : TableResampling::bicubic;
}

/// Corners are aligned by plain bilinear resampling only; tables of columns and rows leave the argument out.
void check_aligned_corners(const TimmArgs& args, std::string_view source) {
  if (!args.pos_embed_align_corners || !args.pos_embed || args.pos_embed_factorized) return;
  const bool bilinear = args.pos_embed_interp_mode == TableResampling::bilinear_antialias;
  VIT_CHECK(
      bilinear && !args.pos_embed_antialias, kWhere.with(ErrorKind::unsupported), source,
      ": pos_embed_align_corners = true with pos_embed_interp_mode = \"", bilinear ? "bilinear" : "bicubic",
      "\" and pos_embed_antialias = ", args.pos_embed_antialias ? "true" : "false", " is not implemented");
}

double required(const std::optional<double>& value, const char* name, std::string_view source) {
  VIT_CHECK(value, kWhere, source, ": ", name, " is null, and this model cannot do without it");
  return *value;
}

void set_position(const TimmArgs& args, ModelConfig& config, std::string_view source) {
  PositionConfig& position = config.position;
  if (args.pos_embed) {
    position.added = args.no_embed_class || config.num_prefix_tokens() == 0 ? AddedTable::patches
                                                                            : AddedTable::prefix_and_patches;
    position.added_grid =
        args.pos_embed_grid_size == GridSize{} ? config.native_grid() : args.pos_embed_grid_size;
    position.added_prefix_rows =
        position.added == AddedTable::prefix_and_patches ? config.num_prefix_tokens() : 0;
  }
  position.resampling = table_resampling(args);
  if (args.pos_embed_ar_preserving) position.table_grid = TableGrid::square;
  if (args.pos_embed && args.pos_embed_factorized) position.added = AddedTable::columns_and_rows;
  position.reuse = TableReuse::equal_grid;
  if (args.rel_pos || args.shared_rel_pos) {
    position.relative = RelativeConfig{.kind = args.rel_pos_mlp ? RelativeKind::mlp : RelativeKind::table,
                                       .grid = config.native_grid(),
                                       .scope = !args.shared_rel_pos ? RelativeScope::blocks
                                                : args.rel_pos       ? RelativeScope::both
                                                                     : RelativeScope::shared,
                                       .resampling = RelativeResampling::geometric,
                                       .mlp_dim = args.rel_pos_mlp ? args.rel_pos_dim : 0};
  }
  if (!args.rope) return;
  position.rope = args.rope_type == TimmRope::mixed ? RopeKind::mixed : RopeKind::axial;
  position.axis_order = args.rope_xy ? AxisOrder::x_then_y : AxisOrder::y_then_x;
  position.pairing = args.rope_rotate_half ? RopePairing::halves : RopePairing::neighbors;
  position.theta = required(args.rope_temperature, "rope_temperature", source);
  if (args.rope_type == TimmRope::mixed) return;  // raw indices, learned frequencies
  position.coordinate_offset = required(args.rope_grid_offset, "rope_grid_offset", source);
  if (args.rope_type == TimmRope::dinov3) {
    position.coordinates = CoordinateRule::centered;
    position.angle_scale = 2.0 * std::numbers::pi;
    return;
  }
  if (args.ref_feat_shape.rows != 0) {
    position.coordinates = CoordinateRule::scaled_to_reference;
    position.reference_grid = args.ref_feat_shape;
  }
}

std::size_t hidden_width(const TimmArgs& args, double ratio, const char* name, std::string_view source) {
  const double hidden = std::trunc(static_cast<double>(args.embed_dim) * ratio);
  VIT_CHECK(hidden >= 1 && hidden <= 1e6, kWhere, source, ": ", name, " of ", ratio,
            " gives a hidden width of ", hidden);
  return static_cast<std::size_t>(hidden);
}

void set_key_heads(const TimmArgs& args, ModelConfig& config) {
  if (args.num_kv_heads == 0 || args.num_kv_heads == args.num_heads) return;
  std::vector<std::size_t>& heads = config.attention.block_key_heads;
  const std::size_t full = args.num_full_attn_blocks, depth = std::min<std::size_t>(args.depth, 1024);
  for (std::size_t i = 0; i < depth; ++i)
    heads.push_back(i < full || i + full >= depth ? args.num_heads : args.num_kv_heads);
  if (2 * full >= depth) heads.clear();
}

void set_mlp(const TimmArgs& args, ModelConfig& config, std::string_view source) {
  if (args.mlp_dim != 0) {
    config.mlp.dim = args.mlp_dim;
  } else {
    config.mlp.dim = hidden_width(args, args.mlp_ratio, "mlp_ratio", source);
  }
  config.mlp.activation = args.activation;
  config.mlp.norm = args.scale_mlp;
  if (!args.swiglu) return;
  config.mlp.kind = MlpKind::gated;
  const bool has_own = args.act_given && args.timm_class == TimmClass::vision_transformer;
  if (!has_own) config.mlp.activation = Activation::silu;
  if (args.mlp_dim != 0 || args.swiglu_split) return;
  if (args.timm_class == TimmClass::vision_transformer) {
    config.mlp.dim /= 2;  // SwiGLUPacked counts gate and value
  } else if (args.swiglu_align_to != 0) {
    config.mlp.dim += (args.swiglu_align_to - config.mlp.dim % args.swiglu_align_to) % args.swiglu_align_to;
  }
}

void set_head(const TimmArgs& args, ModelConfig& config, std::string_view source) {
  if (args.distilled) {
    config.head.pooling = Pooling::class_and_distillation;
    config.head.input = HeadInput::class_and_distillation;
  } else if (args.global_pool == TimmPool::avg) {
    VIT_CHECK(!args.pool_include_prefix || config.num_prefix_tokens() == 0,
              kWhere.with(ErrorKind::unsupported), source,
              ": global_pool \"avg\" with pool_include_prefix, over ", config.num_prefix_tokens(),
              " class or register tokens too, is not implemented");
    config.head.pooling = Pooling::patch_mean;
  } else if (args.global_pool == TimmPool::map) {
    // timm's VisionTransformer keeps prefix tokens from the pooling by default; Eva pools over all
    // tokens, as is done here
    const bool all_tokens = args.timm_class == TimmClass::eva || args.pool_include_prefix;
    VIT_CHECK(all_tokens || config.num_prefix_tokens() == 0, kWhere.with(ErrorKind::unsupported), source,
              ": global_pool \"map\" over only the patches, next to ", config.num_prefix_tokens(),
              " class or register tokens, is not implemented");
    config.head.pooling = Pooling::attention;
    AttentionPoolConfig& pool = config.head.attention_pool.emplace();
    pool.num_heads = args.attn_pool_num_heads ? args.attn_pool_num_heads : args.num_heads;
    const double ratio = args.attn_pool_mlp_ratio > 0 ? args.attn_pool_mlp_ratio : args.mlp_ratio;
    pool.mlp_dim = args.attn_pool_mlp_dim != 0 ? args.attn_pool_mlp_dim
                                               : hidden_width(args, ratio, "attn_pool_mlp_ratio", source);
    pool.activation = args.timm_class == TimmClass::eva ? Activation::gelu : args.activation;
  } else if (args.global_pool == TimmPool::none) {
    config.head.pooling = Pooling::none;
  } else if (args.global_pool == TimmPool::token_and_avg) {
    config.head.pooling = Pooling::class_and_patch_mean;
  } else if (args.global_pool == TimmPool::first) {
    config.head.pooling = Pooling::first_token;
  } else {
    config.head.pooling = Pooling::class_token;
  }
  const bool fc_norm = args.fc_norm.value_or(args.global_pool == TimmPool::avg);
  if (args.timm_class == TimmClass::eva) {
    config.encoder.token_norm = args.post_norm.value_or(!fc_norm);
    config.head.pooled_norm = fc_norm;
  } else {
    const bool final_norm = args.post_norm.value_or(true);
    config.encoder.token_norm = final_norm && !fc_norm;
    config.head.pooled_norm = final_norm && fc_norm && !args.distilled;  // whose head leaves fc_norm out
  }
  config.head.num_classes = args.num_classes;
}

}  // namespace

ModelConfig to_config(const TimmArgs& args, const Architecture& architecture, std::string_view from) {
  const std::string_view source = from.empty() ? architecture.name : from;
  ModelConfig config;
  config.architecture = architecture.name;
  config.family = architecture.family;
  config.library = architecture.library;
  config.image.height = args.image_height;
  config.image.width = args.image_width;
  config.image.num_channels = args.in_chans;
  config.patch.size = args.patch_size;
  config.embed_dim = args.embed_dim;
  config.encoder.depth = args.depth;
  config.attention.num_heads = args.num_heads;
  VIT_CHECK(args.patch_size != 0 && args.num_heads != 0, kWhere, source,
            ": patch_size and num_heads must be positive");
  VIT_CHECK(args.global_pool != TimmPool::token || args.class_token, kWhere, source,
            ": global_pool \"token\" needs a class token, and this model has none; give ",
            override_name("global_pool"), " = \"avg\", or \"first_token\" where the script reads token 0");
  VIT_CHECK(!args.rope || args.rope_type != TimmRope::none, kWhere, source,
            ": rope_type is null, and use_rot_pos_emb asks for a rotation");
  check_aligned_corners(args, source);
  config.patch.bias = !args.pre_norm;
  config.tokens.class_token = args.class_token;
  config.tokens.distillation_token = args.distilled;
  config.tokens.num_registers = args.reg_tokens;
  config.encoder.norm.eps = static_cast<float>(args.norm_eps);
  config.encoder.norm_pre = args.pre_norm;
  config.attention.qkv_bias = args.qkv_bias;
  config.attention.proj_bias = config.mlp.bias = args.proj_bias;
  config.attention.norm = args.scale_attn_inner;
  config.encoder.parallel = args.parallel;
  if (args.post_norm_blocks) config.encoder.block_norms = BlockNorms::after;
  config.attention.differential = args.differential;
  config.patch.embed_norm = args.embed_norm;
  config.encoder.norm.kind = args.rms_norm ? NormKind::rms : NormKind::layer;
  if (args.qk_norm) config.attention.qk_norm = config.encoder.norm.kind;
  if (args.parallel) config.mlp.bias = true;  // zeros replace that of fc2 where there is none
  config.encoder.layer_scale = args.layer_scale;
  set_key_heads(args, config);
  set_position(args, config, source);
  set_mlp(args, config, source);
  set_head(args, config, source);
  return config;
}

}  // namespace vit::internal
