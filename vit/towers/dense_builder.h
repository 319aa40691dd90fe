// The layers of a dense head, built from its weights, tensor by tensor.
#pragma once

#include "vit/config.h"
#include "vit/dense/dense_head.h"
#include "vit/kernels/kernels.h"
#include "vit/weights/dense_weights.h"

namespace vit::internal {

/// Packs the weights of the head on `backbone` for `kernels`, in float32; batch norms are folded into the
/// convolutions next to them. Throws Error if a shape does not match.
DenseHead build_dense_head(const DenseConfig& config, const DenseWeights& weights,
                           const ModelConfig& backbone, const kernels::KernelTable& kernels);

}  // namespace vit::internal
