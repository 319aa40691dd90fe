#include "apps/vit/common/config_text.h"

#include <string>

#include "vit/base/activation.h"
#include "vit/base/error.h"
#include "vit/image/preprocess.h"

namespace vit::app {
namespace {

using nlohmann::ordered_json;

const char* name_of(AddedTable value) {
  switch (value) {
    case AddedTable::none: return "none";
    case AddedTable::patches: return "patches";
    case AddedTable::prefix_and_patches: return "prefix_and_patches";
  }
  return "unknown";
}

const char* name_of(TableResampling value) {
  switch (value) {
    case TableResampling::bicubic_antialias: return "bicubic_antialias";
    case TableResampling::bicubic: return "bicubic";
    case TableResampling::bicubic_plus_tenth: return "bicubic_plus_tenth";
    case TableResampling::bilinear: return "bilinear";
    case TableResampling::bilinear_antialias: return "bilinear_antialias";
  }
  return "unknown";
}

const char* name_of(RopeKind value) {
  switch (value) {
    case RopeKind::none: return "none";
    case RopeKind::axial: return "axial";
    case RopeKind::mixed: return "mixed";
  }
  return "unknown";
}

const char* name_of(CoordinateRule value) {
  switch (value) {
    case CoordinateRule::index: return "index";
    case CoordinateRule::scaled_to_reference: return "scaled_to_reference";
    case CoordinateRule::centered: return "centred";
  }
  return "unknown";
}

const char* name_of(Pooling value) {
  switch (value) {
    case Pooling::none: return "none";
    case Pooling::class_token: return "class_token";
    case Pooling::class_and_distillation: return "class_and_distillation";
    case Pooling::patch_mean: return "patch_mean";
    case Pooling::attention: return "attention";
  }
  return "unknown";
}

const char* name_of(HeadInput value) {
  switch (value) {
    case HeadInput::pooled: return "pooled";
    case HeadInput::class_and_patch_mean: return "class_and_patch_mean";
    case HeadInput::class_and_distillation: return "class_and_distillation";
  }
  return "unknown";
}

const char* name_of(Resampler value) {
  switch (value) {
    case Resampler::pillow: return "pillow";
    case Resampler::torchvision_uint8: return "torchvision_uint8";
    case Resampler::torchvision_float: return "torchvision_float";
  }
  return "unknown";
}

const char* name_of(PillowRelease value) {
  switch (value) {
    case PillowRelease::up_to_12_1: return "up to 12.1";
    case PillowRelease::from_12_2: return "12.2 and 12.3";
    case PillowRelease::from_13_0: return "13.0";
  }
  return "unknown";
}

const char* name_of(ResizeRule value) {
  switch (value) {
    case ResizeRule::none: return "none";
    case ResizeRule::squash: return "squash";
    case ResizeRule::shortest_edge: return "shortest_edge";
    case ResizeRule::cover: return "cover";
    case ResizeRule::contain: return "contain";
    case ResizeRule::contain_trunc: return "contain_trunc";
  }
  return "unknown";
}

const char* name_of(NormalizeRule value) {
  switch (value) {
    case NormalizeRule::divide_then_normalize: return "divide_then_normalize";
    case NormalizeRule::fused: return "fused";
    case NormalizeRule::rescale_first: return "rescale_first";
  }
  return "unknown";
}

/// The smallest decimal of a float32, so that 1e-6 does not print as 9.999999974752427e-07.
double short_decimal(float value) {
  return std::stod(text(value));
}

ordered_json grid_json(GridSize grid) {
  return {{"rows", grid.rows}, {"columns", grid.columns}};
}

ordered_json to_json(const PositionConfig& position) {
  ordered_json out;
  out["added"] = name_of(position.added);
  out["added_grid"] = grid_json(position.added_grid);
  out["added_prefix_rows"] = position.added_prefix_rows;
  out["resampling"] = name_of(position.resampling);
  out["reuse"] = position.reuse == TableReuse::equal_grid ? "equal_grid" : "equal_count_and_square";
  out["rope"] = name_of(position.rope);
  out["coordinates"] = name_of(position.coordinates);
  out["coordinate_offset"] = position.coordinate_offset;
  out["reference_grid"] = grid_json(position.reference_grid);
  out["axis_order"] = position.axis_order == AxisOrder::x_then_y ? "x_then_y" : "y_then_x";
  out["pairing"] = position.pairing == RopePairing::neighbours ? "neighbours" : "halves";
  out["theta"] = position.theta;
  out["angle_scale"] = position.angle_scale;
  out["stored_periods"] = position.stored_periods;
  return out;
}

}  // namespace

ordered_json to_json(const ModelConfig& config) {
  ordered_json out;
  out["image_height"] = config.image_height;
  out["image_width"] = config.image_width;
  out["patch_size"] = config.patch_size;
  out["fixed_size"] = config.fixed_size;
  out["embed_dim"] = config.embed_dim;
  out["depth"] = config.depth;
  out["num_heads"] = config.num_heads;
  out["mlp_dim"] = config.mlp_dim;
  out["patch_bias"] = config.patch_bias;
  out["class_token"] = config.class_token;
  out["distillation_token"] = config.distillation_token;
  out["num_register_tokens"] = config.num_register_tokens;
  out["position"] = to_json(config.position);
  out["norm_eps"] = short_decimal(config.norm_eps);
  out["norm_pre"] = config.norm_pre;
  out["qkv_bias"] = config.qkv_bias;
  out["proj_bias"] = config.proj_bias;
  out["mlp_bias"] = config.mlp_bias;
  out["attention_norm"] = config.attention_norm;
  out["mlp"] = config.mlp == MlpKind::plain ? "plain" : "gated";
  out["activation"] = to_string(config.activation);
  out["mlp_norm"] = config.mlp_norm;
  out["layer_scale"] = config.layer_scale;
  out["token_norm"] = config.token_norm;
  out["pooled_norm"] = config.pooled_norm;
  out["pooling"] = name_of(config.pooling);
  out["pooler"] = config.pooler;
  out["attention_pool"] = {{"num_heads", config.attention_pool.num_heads},
                           {"mlp_dim", config.attention_pool.mlp_dim},
                           {"activation", to_string(config.attention_pool.activation)}};
  out["projection_dim"] = config.projection_dim;
  out["projection_bias"] = config.projection_bias;
  out["head_input"] = name_of(config.head_input);
  out["num_classes"] = config.num_classes;
  return out;
}

ordered_json to_json(const PreprocessConfig& config) {
  ordered_json out;
  out["source"] = config.source;
  out["resampler"] = name_of(config.resampler);
  out["pillow"] = name_of(config.pillow);
  out["filter"] = filter_name(config.filter);
  out["resize"] = name_of(config.resize);
  out["resize_height"] = config.resize_height;
  out["resize_width"] = config.resize_width;
  out["longest_edge"] = config.longest_edge;
  out["crop_pct"] = config.crop_pct;
  out["crop"] = config.crop;
  out["crop_height"] = config.crop_height;
  out["crop_width"] = config.crop_width;
  out["crop_multiple"] = config.crop_multiple;
  out["crop_rounding"] = config.crop_rounding == CropRounding::half_even ? "half_even" : "floor";
  out["pad_rounding"] =
      config.pad_rounding == PadRounding::extra_bottom_right ? "extra_bottom_right" : "extra_top_left";
  out["pad_color"] = config.pad_color;
  out["normalize"] = name_of(config.normalize);
  out["rescale"] = config.rescale;
  out["rescale_factor"] = config.rescale_factor;
  out["subtract_mean"] = config.subtract_mean;
  out["mean"] = config.mean;
  out["std"] = config.std;
  out["apply_orientation"] = config.apply_orientation;
  out["alpha_on_white"] = config.alpha_on_white;
  return out;
}

}  // namespace vit::app
