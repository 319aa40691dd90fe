// The tensors of an encoder of pages under the project's own names. Letters as in vit/config/page_config.h.
#pragma once

#include <vector>

#include "vit/config/page_config.h"
#include "vit/weights/model_weights.h"

namespace vit::internal {

struct PageWeights {
  WeightTensor token_table;          // (V, C)
  NormWeights embed_norm;            // (C)
  std::vector<BlockWeights> blocks;  // block 0 has no norm1
  NormWeights norm;                  // (C)
  LinearWeights projection;          // (E, C)
};

template <>
struct WeightsOfConfig<PageConfig> {
  using Weights = PageWeights;
};

/// The blocks of an encoder of pages as those of a model of images.
ModelConfig block_config(const PageConfig& config);

/// Calls visit(id, shape, tensor) for every tensor that an encoder of this config has. Resizes
/// weights.blocks.
void for_each_tensor(const PageConfig& config, PageWeights& weights, const VisitTensor& visit);

}  // namespace vit::internal
