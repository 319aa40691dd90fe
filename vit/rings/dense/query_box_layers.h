// The layers of a head whose queries sample maps, built from its weights.
#pragma once

#include "vit/rings/dense/batch_norm.h"
#include "vit/rings/dense/query_box_head.h"

namespace vit::internal {

/// For taps of `tap_channels`. Convolutions compute with `products`, everything else in float32.
QueryBoxLayers build_query_boxes(const QueryBoxConfig& config, std::size_t num_taps, std::size_t tap_channels,
                                 const LoadDenseTensor& load, const kernels::KernelTable& kernels,
                                 const kernels::LinearKernels& products);

}  // namespace vit::internal
