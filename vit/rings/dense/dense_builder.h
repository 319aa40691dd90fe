// The layers of a dense head, built from its weights, tensor by tensor.
#pragma once

#include "vit/config.h"
#include "vit/kernels/kernels.h"
#include "vit/rings/dense/dense_head.h"
#include "vit/weights/dense_weights.h"

namespace vit::internal {

/// Packs the weights of the head on `backbone` for `kernels`; batch norms are folded into the convolutions
/// next to them. Products of pixels before the last layer of a result have the arithmetic of linear layers in
/// `precision`, or the `fine` one with int8; everything else is float32. Throws Error if a shape does not
/// match.
DenseHead build_dense_head(const DenseConfig& config, const DenseWeights& weights,
                           const ModelConfig& backbone, const kernels::KernelTable& kernels,
                           Precision precision);

}  // namespace vit::internal
