// Linear: y = x W^T + b and what is fused behind it. Hides how the weight is stored and who multiplies.
// Letters: M = rows, K = input features, N = output features.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "vit/base/choices.h"
#include "vit/base/tensor.h"
#include "vit/kernels/pack.h"
#include "vit/layers/gemm_tasks.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/pass.h"

namespace vit::internal {

/// out = residual + scale * (multiplier * activation(x W^T + b)); an empty member leaves its term out.
struct LinearEpilogue {
  Activation activation = Activation::none;
  TensorView<const float> multiplier{};  // (M, N), may be out
  std::span<const float> scale{};        // (N)
  TensorView<const float> residual{};    // (M, N), may be out
};

/// How a residual branch ends: out += scale * norm(branch).
struct Residual {
  std::span<const float> scale{};   // (C), or empty for 1
  TensorView<float> add_to{};       // (M, C)
  const LayerNorm* norm = nullptr;  // (C), or null for none
};

/// norm(rows) as a branch reads it; each row is normalized while it is at hand for the conversion.
struct NormedRows {
  const LayerNorm& norm;
  TensorView<const float> rows{};  // (M, C)
};

/// Bounds of what a layer reads and gives.
struct Clip {
  float lowest_in, highest_in, lowest_out, highest_out;
};

/// Rows (M, K) in the form in which they are multiplied, good for every Linear of the same input features and
/// kernels until the next rows are converted in the same activations.
struct LinearInput {
  TensorView<const float> rows{};           // in float32
  TensorView<const std::byte> converted{};  // (M, bytes) where the kernels convert rows, else empty
};

class Linear {
 public:
  /// weight (N, K); bias (N) or empty. Copies both, in the layout of `kernels`. Throws Error if shapes
  /// disagree or the kernels cannot keep the weight.
  Linear(TensorView<const float> weight, std::span<const float> bias, const kernels::LinearKernels& kernels);

  /// in (M, K) -> out (M, N), rows of any stride; in and out must not overlap. Leading dimensions count as
  /// rows. Throws Error if shapes disagree or the activations have no room for M converted rows. The bits of
  /// a row depend on that row alone.
  void forward(TensorView<const float> in, TensorView<float> out, const Pass& pass,
               const LinearEpilogue& epilogue = {}) const;

  /// The first step of forward, which serves several products: the rows `in` (M, K) as the kernels take them.
  LinearInput convert(TensorView<const float> in, const Pass& pass) const;
  /// Rows that are normalized on the way: in.norm(in.rows) is left in `normed` (M, K), which may be in.rows.
  LinearInput convert(const NormedRows& in, TensorView<float> normed, const Pass& pass) const;
  /// The second step of forward.
  void multiply(const LinearInput& in, TensorView<float> out, const Pass& pass,
                const LinearEpilogue& epilogue = {}) const;
  /// The outputs in `range`, rounded to whole panels of the kernels; the others in out (M, N) stay as they
  /// are. The bits are those of the full product.
  void multiply_range(const LinearInput& in, TensorView<float> out, OutputRange range, const Pass& pass,
                      const LinearEpilogue& epilogue = {}) const;

  /// out.add_to += out.scale * out.norm(norm(in) W^T + b), as a residual branch ends. Without a norm in (M,
  /// K) is multiplied as it is, else it is norm(in) afterwards. With out.norm activations.normed is used.
  void add(const std::optional<LayerNorm>& norm, TensorView<float> in, const Residual& out,
           const Pass& pass) const;

  /// From now on inputs are clipped to their bounds where they are converted with a norm or in add(), and
  /// products before the epilogue, which then has an activation and a multiplier at most.
  void set_clip(const Clip& clip) { clip_ = clip; }
  bool clips() const noexcept { return clip_.has_value(); }

  std::size_t in_features() const noexcept { return weight_.in_features(); }
  std::size_t out_features() const noexcept { return weight_.out_features(); }
  /// The shape of the weight for messages: "(3072, 768)".
  std::string describe() const;

 private:
  /// Calls convert(first, count) for all rows of `in`, a few at a time, after compute(first, count).
  template <typename Compute>
  LinearInput convert_rows(TensorView<const float> in, const Pass& pass, const Compute& compute) const;
  void check_product(const LinearInput& in, const TensorView<float>& out, OutputRange range,
                     const LinearEpilogue& epilogue) const;

  void finish_clipped(TensorView<float> out, const Pass& pass, const LinearEpilogue& epilogue) const;

  kernels::PackedMatrix weight_;
  Tensor<float> bias_;  // (N) or empty
  std::optional<Clip> clip_{};
};

}  // namespace vit::internal
