#include "vit/weights/tensor_id.h"

#include <algorithm>
#include <iterator>

namespace vit::internal {
namespace {

constexpr std::string_view kNames[] = {"patch.weight",
                                       "patch.bias",
                                       "patch_norm.gamma",
                                       "patch_norm.beta",
                                       "embed_norm.gamma",
                                       "embed_norm.beta",
                                       "class_token",
                                       "distillation_token",
                                       "register_tokens",
                                       "position_table",
                                       "rope_frequencies",
                                       "rope_periods",
                                       "norm_pre.gamma",
                                       "norm_pre.beta",
                                       "norm1.gamma",
                                       "norm1.beta",
                                       "qkv.weight",
                                       "qkv.bias",
                                       "attention_norm.gamma",
                                       "attention_norm.beta",
                                       "proj.weight",
                                       "proj.bias",
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
                                       "scale2",
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
                                       "head.weight",
                                       "head.bias",
                                       "head_distillation.weight",
                                       "head_distillation.bias",
                                       "token_table",
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
  return stack + (is_of_block(id.part) ? "blocks." + std::to_string(id.block) + "." + name : name);
}

}  // namespace vit::internal
