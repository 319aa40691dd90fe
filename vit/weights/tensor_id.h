// The tensors of a Vision Transformer, and of a text tower, as data: what each one is, whatever a file calls
// it. Their shapes are in model_weights.h and text_tower_weights.h; where they lie in a file is in the
// tables of families/layout.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace vit::internal {

/// One kind of tensor. A weight is followed by its bias, a gamma by its beta.
enum class Part : std::uint8_t {
  patch_weight,
  patch_bias,
  clip_weight,  // of patches of several frames: those of each frame, (K P P), one after the other
  clip_bias,    // where it is not that of patches
  image_shift,  // added to patches of an image, and of several frames
  clip_shift,
  pixel_mean,  // of each channel, of pixels that the model normalizes
  pixel_std,
  patch_norm_gamma,  // on the pixels of a patch, before they are projected
  patch_norm_beta,
  embed_norm_gamma,  // on the projected patch, before positions are added
  embed_norm_beta,
  class_token,
  distillation_token,
  register_tokens,
  late_tokens,
  position_table,
  between_tables,  // added between the blocks
  class_angles,    // of the class token's rotation
  rope_frequencies,
  rope_periods,
  relative_table,  // bias of attention, of all blocks
  relative_fc1_weight,
  relative_fc1_bias,
  relative_fc2_weight,
  relative_fc2_bias,
  norm_pre_gamma,
  norm_pre_beta,
  norm1_gamma,  // first of a block
  norm1_beta,
  qkv_weight,
  qkv_bias,
  q_norm_gamma,  // of each head
  q_norm_beta,
  k_norm_gamma,
  k_norm_beta,
  block_relative_table,  // bias of attention
  block_relative_fc1_weight,
  block_relative_fc1_bias,
  block_relative_fc2_weight,
  block_relative_fc2_bias,
  relative_rows,  // vectors of the distances of each axis
  relative_columns,
  lambda,          // of differential attention: q1, k1, q2, k2, or two numbers
  sub_norm_gamma,  // of each of its heads
  attention_norm_gamma,
  attention_norm_beta,
  proj_weight,
  proj_bias,
  branch_norm1_gamma,  // on what attention adds
  branch_norm1_beta,
  scale1,
  norm2_gamma,
  norm2_beta,
  gate_weight,
  gate_bias,
  fc1_weight,
  fc1_bias,
  mlp_norm_gamma,
  mlp_norm_beta,
  fc2_weight,
  fc2_bias,
  fc2_expert_weight,  // of the last channels, where a data set has a layer of its own
  fc2_expert_bias,
  q_clip,  // smallest and largest input, smallest and largest output
  k_clip,
  v_clip,
  proj_clip,
  gate_clip,
  fc1_clip,
  fc2_clip,
  branch_norm2_gamma,  // on what the MLP adds
  branch_norm2_beta,
  scale2,                // last of a block
  deepstack_norm_gamma,  // of the mergers between blocks, numbered
  deepstack_norm_beta,
  deepstack_fc1_weight,
  deepstack_fc1_bias,
  deepstack_fc2_weight,
  deepstack_fc2_bias,
  norm_gamma,
  norm_beta,
  pool_probe,
  pool_q_weight,
  pool_q_bias,
  pool_kv_weight,
  pool_kv_bias,
  pool_proj_weight,
  pool_proj_bias,
  pool_norm_gamma,
  pool_norm_beta,
  pool_fc1_weight,
  pool_fc1_bias,
  pool_fc2_weight,
  pool_fc2_bias,
  pooled_norm_gamma,
  pooled_norm_beta,
  pooler_weight,
  pooler_bias,
  projection_weight,
  projection_bias,
  merger_norm_gamma,
  merger_norm_beta,
  merger_shift,
  merger_scale,
  merger_reduce_weight,
  merger_reduce_bias,
  merger_middle_weight,
  merger_middle_bias,
  merger_middle_norm_gamma,
  merger_middle_norm_beta,
  merger_neck_norm_gamma,
  merger_neck_norm_beta,
  merger_convolution_weight,  // (dim, 9 I): the rows of a window
  merger_convolution_norm_gamma,
  merger_convolution_norm_beta,
  merger_second_convolution_weight,
  merger_second_convolution_bias,
  merger_third_convolution_weight,
  merger_third_convolution_bias,
  merger_gate_weight,
  merger_gate_bias,
  merger_fc1_weight,
  merger_fc1_bias,
  merger_fc2_weight,
  merger_fc2_bias,
  merger_mlp_norm_gamma,  // after the MLP
  merger_mlp_norm_beta,
  merger_second_fc1_weight,  // of a second MLP
  merger_second_fc1_bias,
  merger_second_fc2_weight,
  merger_second_fc2_bias,
  merger_second_norm_gamma,
  merger_second_norm_beta,
  merger_projection_weight,
  merger_projection_bias,
  merger_out_norm_gamma,
  head_weight,
  head_bias,
  head_distillation_weight,
  head_distillation_bias,
  token_table,  // of text towers
  token_types,
  logit_scale,
  logit_bias,
};

inline constexpr std::size_t kNumParts = static_cast<std::size_t>(Part::logit_bias) + 1;

struct TensorId {
  Part part{};
  std::size_t block = 0;    // of numbered parts: the block, or the merger between blocks
  bool joint_head = false;  // of its blocks and its norm, not of the encoder's
  bool operator==(const TensorId&) const = default;
};

constexpr bool is_of_block(Part part) {
  return part >= Part::norm1_gamma && part <= Part::scale2;
}
constexpr bool is_of_deepstack(Part part) {
  return part >= Part::deepstack_norm_gamma && part <= Part::deepstack_fc2_bias;
}
/// Whether there are several, whose names in a file have a number.
constexpr bool is_numbered(Part part) {
  return is_of_block(part) || is_of_deepstack(part);
}
constexpr Part next(Part part) {
  return static_cast<Part>(static_cast<std::uint8_t>(part) + 1);
}

/// "patch.weight", "qkv.bias", "norm1.gamma": the name without the block.
std::string_view part_name(Part part);
/// The part of that name, or nothing.
std::optional<Part> find_part(std::string_view name);
/// Whether the part is a bias or a beta: it follows its weight or gamma.
bool is_bias(Part part);
/// Whether the part has one dimension: a bias, what norms have, a scale, a token.
constexpr bool is_vector(Part part) {
  switch (part) {
    case Part::patch_weight:
    case Part::clip_weight:
    case Part::register_tokens:
    case Part::late_tokens:
    case Part::position_table:
    case Part::between_tables:
    case Part::rope_frequencies:
    case Part::relative_table:
    case Part::relative_fc1_weight:
    case Part::relative_fc2_weight:
    case Part::block_relative_table:
    case Part::block_relative_fc1_weight:
    case Part::block_relative_fc2_weight:
    case Part::merger_convolution_weight:
    case Part::merger_second_convolution_weight:
    case Part::merger_third_convolution_weight:
    case Part::relative_rows:
    case Part::relative_columns:
    case Part::qkv_weight:
    case Part::proj_weight:
    case Part::gate_weight:
    case Part::fc1_weight:
    case Part::fc2_weight:
    case Part::fc2_expert_weight:
    case Part::pool_q_weight:
    case Part::pool_kv_weight:
    case Part::pool_proj_weight:
    case Part::pool_fc1_weight:
    case Part::pool_fc2_weight:
    case Part::pooler_weight:
    case Part::projection_weight:
    case Part::head_weight:
    case Part::head_distillation_weight:
    case Part::token_table:
    case Part::token_types: return false;
    default: return true;
  }
}
/// For messages and reports: "blocks.3.qkv.weight".
std::string canonical_name(TensorId id);

}  // namespace vit::internal
