// What the public parts of a model have in common: their checks, and layers of tensors that the caller owns.
#pragma once

#include <optional>
#include <string_view>

#include "vit/attention.h"
#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/base/written_rows.h"
#include "vit/layer_norm.h"
#include "vit/layers/activations.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/linear.h"

namespace vit {

struct Workspace::Parts {
  internal::Activations activations;
};

namespace internal {

/// Throws Error for a negative number of threads.
void check_threads(int threads, const Where& where);

/// Heads of attention.
struct Heads {
  std::size_t count = 0;
  std::size_t width = 0;  // channels of each
};

/// Throws Error if there are factors, and images do not have the prefix and their patches as tokens, or heads
/// not those of the factors.
void check_factors(const position::RopeFactors& factors, std::size_t num_prefix, std::size_t num_tokens,
                   const Heads& heads, const Where& where);

/// A norm over `width` channels, nothing without a gamma. `name` is that of the norm in messages.
std::optional<LayerNorm> optional_norm(const NormTensors& tensors, std::size_t width, std::string_view name,
                                       const Where& where);
/// The same of a norm that must be there.
LayerNorm norm_of(const NormTensors& tensors, std::size_t width, std::string_view name, const Where& where);
/// Throws Error unless the layer has a weight (out, in).
void check_weight(const LinearTensors& tensors, std::string_view name, const Where& where);
/// A layer of `in` input features. `name` is that of the layer in messages.
Linear linear_of(const LinearTensors& tensors, std::size_t in, std::string_view name, const Where& where,
                 const kernels::LinearKernels& kernels);

}  // namespace internal
}  // namespace vit
