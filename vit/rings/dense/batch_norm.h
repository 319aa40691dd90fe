// Batch norms of trained statistics, which are folded into the convolutions next to them.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/tensor.h"

namespace vit::internal {

/// Reads a tensor by its name; empty if there is none.
using LoadDenseTensor = std::function<Tensor<float>(const std::string& name)>;

/// x -> scale x + shift of each channel: what such a norm computes.
struct ChannelMap {
  std::vector<double> scale, shift;
};

/// That of the norm `name`. Throws Error for a variance below 0.
inline ChannelMap load_batch_norm(const LoadDenseTensor& load, const std::string& name, double eps) {
  const Tensor<float> gamma = load(name + ".weight"), beta = load(name + ".bias");
  const Tensor<float> mean = load(name + ".running_mean"), variance = load(name + ".running_var");
  ChannelMap out;
  for (std::size_t i = 0; i < gamma.num_elements(); ++i) {
    VIT_CHECK(variance.data()[i] >= 0.0f, (Where{"load_checkpoint", ErrorKind::format}), name,
              ".running_var holds ", variance.data()[i], ", which is not a variance");
    out.scale.push_back(gamma.data()[i] / std::sqrt(double{variance.data()[i]} + eps));
    out.shift.push_back(beta.data()[i] - mean.data()[i] * out.scale[i]);
  }
  return out;
}

}  // namespace vit::internal
