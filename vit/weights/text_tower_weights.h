// The tensors of a text tower under the project's own names, in addition to those of model_weights.h, whose
// blocks it has. Letters: V = vocabulary_size, T = context_length, D = width, E = projection_dim.
#pragma once

#include <vector>

#include "vit/text_config.h"
#include "vit/weights/model_weights.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

struct TextTowerWeights {
  WeightTensor token_table;     // (V, D)
  WeightTensor position_table;  // (first_position + T, D)
  WeightTensor token_types;     // (token_types, D)
  NormWeights token_norm;       // (D)
  std::vector<BlockWeights> blocks;
  NormWeights norm;          // (D)
  LinearWeights pooler;      // (pooler_dim, D)
  LinearWeights projection;  // (E, D), of a pooler's output (E, pooler_dim)
  WeightTensor logit_scale;  // one number, the logarithm of the scale
  WeightTensor logit_bias;   // one number
};

template <>
struct WeightsOfConfig<TextConfig> {
  using Weights = TextTowerWeights;
};

/// The blocks of a text tower as those of a model of images.
ModelConfig block_config(const TextConfig& config);

/// Calls visit(id, shape, tensor) for every tensor that a text tower of this config has. Resizes
/// weights.blocks.
void for_each_tensor(const TextConfig& config, TextTowerWeights& weights, const VisitTensor& visit);

}  // namespace vit::internal
