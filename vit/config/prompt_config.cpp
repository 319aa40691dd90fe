#include "vit/config/prompt_config.h"

#include <cmath>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr Where kPromptWhere{"validate_config", ErrorKind::argument};

void check_prompt_range(const char* field, std::size_t value, std::size_t low, std::size_t high) {
  VIT_CHECK(value >= low && value <= high, kPromptWhere, field, " of the detector must be ", low, " to ",
            high, ", got ", value);
}

void validate_prompt_layers(const char* name, const PromptLayersConfig& c, std::size_t dim) {
  check_prompt_range(name, c.depth, 1, 256);
  check_prompt_range("the MLP width", c.mlp_dim, 1, 1u << 18);
  VIT_CHECK(c.num_heads != 0 && dim % c.num_heads == 0, kPromptWhere, dim, " channels of the detector's ",
            name, " cannot be divided into ", c.num_heads, " heads");
}

}  // namespace

void validate(const PromptConfig& c) {
  VIT_CHECK(c.has_detector || c.clicks, kPromptWhere, "a model of prompts without any part that takes some");
  check_prompt_range("hidden_size", c.dim, 8, 8192);
  // codes have sines and cosines of both axes, maps are normalized in groups of channels
  VIT_CHECK(c.dim % 8 == 0, kPromptWhere, "hidden_size of the detector must be a multiple of 8, got ", c.dim);
  check_prompt_range("the image tower's width", c.backbone_dim, 4, 65536);
  VIT_CHECK(c.backbone_dim % 4 == 0, kPromptWhere,
            "the width of the image tower must be a multiple of 4, got ", c.backbone_dim);
  check_prompt_range("the grid", c.grid, 1, 1024);
  check_prompt_range("image_size", c.image_size, 1, 1u << 15);
  check_prompt_range("roi_size", c.roi_bins, 1, 64);
  check_prompt_range("num_queries", c.num_queries, 1, 1u << 16);
  validate_prompt_layers("geometry layers", c.geometry, c.dim);
  validate_prompt_layers("encoder layers", c.fusion, c.dim);
  validate_prompt_layers("decoder layers", c.decoder, c.dim);
  validate_prompt_layers("mask attention", {.depth = 1, .num_heads = c.num_mask_heads}, c.dim);
  if (!c.clicks) return;
  const ClickConfig& clicks = *c.clicks;
  check_prompt_range("attention_downsample_rate", clicks.downsample, 1, c.dim);
  VIT_CHECK(c.dim % clicks.downsample == 0, kPromptWhere, c.dim,
            " channels cannot be divided by attention_downsample_rate ", clicks.downsample);
  validate_prompt_layers("interactive layers", clicks.layers, c.dim / clicks.downsample);
  check_prompt_range("mask_input_channels", clicks.mask_channels, 4, 4096);
  check_prompt_range("num_multimask_outputs", clicks.num_masks, 1, 64);
  check_prompt_range("iou_head_depth", clicks.iou_depth, 2, 64);
  check_prompt_range("iou_head_hidden_dim", clicks.iou_dim, 1, 65536);
  VIT_CHECK(std::isfinite(clicks.mask_norm_eps) && clicks.mask_norm_eps >= 0 && clicks.mask_norm_eps < 1,
            kPromptWhere, "layer_norm_eps of the prompt encoder must be in [0, 1), got ",
            clicks.mask_norm_eps);
}

}  // namespace vit::internal
