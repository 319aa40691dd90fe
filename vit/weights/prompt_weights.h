// The tensors of a detector of prompts under the project's own names:
// "fusion.layers.1.self_attn.q_proj.weight". Letters as in vit/config/prompt_config.h.
#pragma once

#include "vit/config/prompt_config.h"
#include "vit/weights/dense_weights.h"

namespace vit::internal {

/// By name; absent ones are not in it.
struct PromptWeights : DenseWeights {};

template <>
struct WeightsOfConfig<PromptConfig> {
  using Weights = PromptWeights;
};

/// Calls visit(name, shape, tensor) for every tensor of a detector of this config, in the order of the data.
/// The one list of them.
void for_each_tensor(const PromptConfig& config, PromptWeights& weights, const VisitDenseTensor& visit);

}  // namespace vit::internal
