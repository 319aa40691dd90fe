#include "vit/weights/tensor_id.h"

#include <algorithm>
#include <iterator>

namespace vit::internal {
namespace {

constexpr std::string_view kNames[] = {"patch.weight",
                                       "patch.bias",
                                       "clip.weight",
                                       "clip.bias",
                                       "image_shift",
                                       "clip_shift",
                                       "pixel_mean",
                                       "pixel_std",
                                       "patch_norm.gamma",
                                       "patch_norm.beta",
                                       "embed_norm.gamma",
                                       "embed_norm.beta",
                                       "class_token",
                                       "distillation_token",
                                       "register_tokens",
                                       "late_tokens",
                                       "position_table",
                                       "between_tables",
                                       "class_angles",
                                       "rope_frequencies",
                                       "rope_periods",
                                       "relative_table",
                                       "relative_fc1.weight",
                                       "relative_fc1.bias",
                                       "relative_fc2.weight",
                                       "relative_fc2.bias",
                                       "norm_pre.gamma",
                                       "norm_pre.beta",
                                       "norm1.gamma",
                                       "norm1.beta",
                                       "qkv.weight",
                                       "qkv.bias",
                                       "q_norm.gamma",
                                       "q_norm.beta",
                                       "k_norm.gamma",
                                       "k_norm.beta",
                                       "block_relative_table",
                                       "block_relative_fc1.weight",
                                       "block_relative_fc1.bias",
                                       "block_relative_fc2.weight",
                                       "block_relative_fc2.bias",
                                       "relative_rows",
                                       "relative_columns",
                                       "lambda",
                                       "sub_norm.gamma",
                                       "attention_norm.gamma",
                                       "attention_norm.beta",
                                       "proj.weight",
                                       "proj.bias",
                                       "branch_norm1.gamma",
                                       "branch_norm1.beta",
                                       "scale1",
                                       "norm2.gamma",
                                       "norm2.beta",
                                       "gate.weight",
                                       "gate.bias",
                                       "fc1.weight",
                                       "fc1.bias",
                                       "mlp_norm.gamma",
                                       "mlp_norm.beta",
                                       "fc2.weight",
                                       "fc2.bias",
                                       "fc2_expert.weight",
                                       "fc2_expert.bias",
                                       "q_clip",
                                       "k_clip",
                                       "v_clip",
                                       "proj_clip",
                                       "gate_clip",
                                       "fc1_clip",
                                       "fc2_clip",
                                       "branch_norm2.gamma",
                                       "branch_norm2.beta",
                                       "scale2",
                                       "deepstack.norm.gamma",
                                       "deepstack.norm.beta",
                                       "deepstack.fc1.weight",
                                       "deepstack.fc1.bias",
                                       "deepstack.fc2.weight",
                                       "deepstack.fc2.bias",
                                       "norm.gamma",
                                       "norm.beta",
                                       "pool.probe",
                                       "pool.q.weight",
                                       "pool.q.bias",
                                       "pool.kv.weight",
                                       "pool.kv.bias",
                                       "pool.proj.weight",
                                       "pool.proj.bias",
                                       "pool.norm.gamma",
                                       "pool.norm.beta",
                                       "pool.fc1.weight",
                                       "pool.fc1.bias",
                                       "pool.fc2.weight",
                                       "pool.fc2.bias",
                                       "pooled_norm.gamma",
                                       "pooled_norm.beta",
                                       "pooler.weight",
                                       "pooler.bias",
                                       "projection.weight",
                                       "projection.bias",
                                       "merger.norm.gamma",
                                       "merger.norm.beta",
                                       "merger.shift",
                                       "merger.scale",
                                       "merger.reduce.weight",
                                       "merger.reduce.bias",
                                       "merger.middle.weight",
                                       "merger.middle.bias",
                                       "merger.middle_norm.gamma",
                                       "merger.middle_norm.beta",
                                       "merger.neck_norm.gamma",
                                       "merger.neck_norm.beta",
                                       "merger.convolution.weight",
                                       "merger.convolution_norm.gamma",
                                       "merger.convolution_norm.beta",
                                       "merger.second_convolution.weight",
                                       "merger.second_convolution.bias",
                                       "merger.third_convolution.weight",
                                       "merger.third_convolution.bias",
                                       "merger.gate.weight",
                                       "merger.gate.bias",
                                       "merger.fc1.weight",
                                       "merger.fc1.bias",
                                       "merger.fc2.weight",
                                       "merger.fc2.bias",
                                       "merger.mlp_norm.gamma",
                                       "merger.mlp_norm.beta",
                                       "merger.second_fc1.weight",
                                       "merger.second_fc1.bias",
                                       "merger.second_fc2.weight",
                                       "merger.second_fc2.bias",
                                       "merger.second_norm.gamma",
                                       "merger.second_norm.beta",
                                       "merger.projection.weight",
                                       "merger.projection.bias",
                                       "merger.out_norm.gamma",
                                       "head.weight",
                                       "head.bias",
                                       "head_distillation.weight",
                                       "head_distillation.bias",
                                       "token_table",
                                       "token_types",
                                       "logit_scale",
                                       "logit_bias"};
static_assert(std::size(kNames) == kNumParts);

}  // namespace

std::string_view part_name(Part part) {
  return kNames[static_cast<std::size_t>(part)];
}

std::optional<Part> find_part(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == std::end(kNames)) return std::nullopt;
  return static_cast<Part>(found - std::begin(kNames));
}

bool is_bias(Part part) {
  return part_name(part).ends_with(".bias") || part_name(part).ends_with(".beta");
}

std::string canonical_name(TensorId id) {
  const std::string name(part_name(id.part));
  const std::string stack = id.joint_head ? "joint_head." : "";
  if (is_of_deepstack(id.part)) return "deepstack." + std::to_string(id.block) + name.substr(name.find('.'));
  return stack + (is_of_block(id.part) ? "blocks." + std::to_string(id.block) + "." + name : name);
}

}  // namespace vit::internal
