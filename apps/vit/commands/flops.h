// Floating-point operations of one image: two for each multiply-add of the matrix products and of attention.
// Norms, activations, softmax and rotations are left out, as in the papers' tables.
#pragma once

#include <cstddef>

#include "vit/dense_config.h"

namespace vit {
struct ModelConfig;
}

namespace vit::app {

struct Flops {
  double patch_embed = 0;
  double attention_linear = 0;  // qkv and output projections
  double attention = 0;         // q k^T and the weighted sum of v
  double mlp = 0;
  double head = 0;  // attention pooling, projection, classifier

  double total() const { return patch_embed + attention_linear + attention + mlp + head; }
};

/// `num_leading` > 0: the last block computes only that many rows, as given by
/// VisionTransformer::num_leading_tokens().
Flops count_flops(const ModelConfig& config, GridSize grid, std::size_t num_leading = 0);
/// Of the products of a dense head on `backbone`.
double count_dense_flops(const DenseConfig& config, const ModelConfig& backbone, GridSize grid);

}  // namespace vit::app
