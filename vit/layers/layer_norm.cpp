#include "vit/layers/layer_norm.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/layers/pass.h"

namespace vit::internal {

LayerNorm::LayerNorm(std::span<const float> gamma, std::span<const float> beta, float eps,
                     const kernels::KernelTable& kernels)
    : gamma_(Shape{gamma.size()}), eps_(eps), kernels_(&kernels) {
  VIT_CHECK(!gamma.empty() && (beta.empty() || gamma.size() == beta.size()), "LayerNorm", "gamma has ",
            gamma.size(), " numbers, beta ", beta.size());
  std::copy(gamma.begin(), gamma.end(), gamma_.data());
  if (beta.empty()) return;
  beta_ = Tensor<float>(Shape{beta.size()});
  std::copy(beta.begin(), beta.end(), beta_.data());
}

void LayerNorm::forward(TensorView<const float> in, TensorView<float> out, int threads) const {
  check(in, out);
  parallel_for_parts(in.num_rows(), kTaskRows, threads,
                     [&](std::size_t first, std::size_t count) { forward_rows(in, out, first, count); });
}

void LayerNorm::forward_rows(TensorView<const float> in, TensorView<float> out, std::size_t first,
                             std::size_t count) const {
  check(in, out);
  kernels_->layer_norm({.in = in.row(first),
                        .in_stride = in.row_stride(),
                        .rows = count,
                        .columns = num_features(),
                        .gamma = gamma_.data(),
                        .beta = beta_.data(),
                        .eps = eps_,
                        .out = out.row(first),
                        .out_stride = out.row_stride()});
}

void LayerNorm::check(const TensorView<const float>& in, const TensorView<float>& out) const {
  VIT_CHECK(in.num_columns() == num_features() && out.num_columns() == num_features() &&
                out.num_rows() == in.num_rows(),
            "LayerNorm", "over ", num_features(), " channels cannot be applied to ", in.shape().to_string(),
            " to ", out.shape().to_string());
}

}  // namespace vit::internal
