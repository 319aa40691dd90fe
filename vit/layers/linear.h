// Linear: y = x W^T + b with its fused epilogue. Hides how the weight is stored and which kernels multiply.
// Letters: M = rows, K = input features, N = output features.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/tensor.h"
#include "vit/kernels/pack.h"
#include "vit/layers/gemm_tasks.h"
#include "vit/layers/layer_norm.h"
#include "vit/layers/pass.h"

namespace vit::internal {

/// out = residual + scale * (multiplier * activation(x W^T + b)); an empty member omits its term.
struct LinearEpilogue {
  Activation activation = Activation::none;
  TensorView<const float> multiplier{};  // (M, N), may be out
  std::span<const float> scale{};        // (N)
  TensorView<const float> residual{};    // (M, N), may be out
};

/// The end of a residual branch: out += scale * norm(branch).
struct Residual {
  std::span<const float> scale{};   // (C), or empty for 1
  TensorView<float> add_to{};       // (M, C)
  const LayerNorm* norm = nullptr;  // (C), or null for none
};

/// norm(rows) as the input of a branch; each row is normalized when it is converted. Without a norm they are
/// the rows.
struct NormedRows {
  NormedRows(const LayerNorm* norm_of_rows, TensorView<const float> in) : norm(norm_of_rows), rows(in) {}
  NormedRows(const LayerNorm& norm_of_rows, TensorView<const float> in) : NormedRows(&norm_of_rows, in) {}

  const LayerNorm* norm;
  TensorView<const float> rows;  // (M, C)
};

/// Bounds of the inputs and outputs of a layer.
struct Clip {
  float lowest_in, highest_in, lowest_out, highest_out;
};

/// Rows (M, K) in the format of the product, valid for every Linear with the same input features, outliers
/// and kernels until the next rows are converted in the same activations.
struct LinearInput {
  TensorView<const float> rows{};             // in float32
  TensorView<const std::byte> converted{};    // (M, bytes) if the kernels convert rows, else empty
  std::span<const std::uint32_t> outliers{};  // columns of converted rows that are 0
};

class Linear {
 public:
  /// weight (N, K); bias (N) or empty. Copies both, in the layout of `kernels`. Throws Error if shapes
  /// disagree or the kernels cannot represent the weight.
  /// outliers: columns of K, ascending, whose products int8 leaves in float32; only for kernels that have
  /// outliers.
  Linear(TensorView<const float> weight, std::span<const float> bias, const kernels::LinearKernels& kernels,
         std::span<const std::uint32_t> outliers = {});

  /// in (M, K) -> out (M, N), rows of any stride; in and out must not overlap. Leading dimensions are
  /// rows. Throws Error if shapes disagree or the activations have no room for M converted rows. The bits of
  /// a row depend only on that row.
  void forward(TensorView<const float> in, TensorView<float> out, const Pass& pass,
               const LinearEpilogue& epilogue = {}) const;

  /// The first step of forward, shared by several products: rows `in` (M, K) in the format of the kernels.
  LinearInput convert(TensorView<const float> in, const Pass& pass) const;
  /// Rows that are normalized first: in.norm(in.rows) is stored in `normed` (M, K), which may be in.rows.
  LinearInput convert(const NormedRows& in, TensorView<float> normed, const Pass& pass) const;
  /// The second step of forward.
  void multiply(const LinearInput& in, TensorView<float> out, const Pass& pass,
                const LinearEpilogue& epilogue = {}) const;
  /// out = activation(gate(in)) * this(in), tile by tile, so that the gates are read where they were written;
  /// the bits are those of two products. `gate` has the shapes and kernels of this layer; neither clips.
  void multiply_gated(const Linear& gate, const LinearInput& in, TensorView<float> out, Activation activation,
                      const Pass& pass) const;
  /// The outputs in `range`, rounded to whole panels of the kernels; the others in out (M, N) are
  /// unchanged. The bits are those of the full product.
  void multiply_range(const LinearInput& in, TensorView<float> out, OutputRange range, const Pass& pass,
                      const LinearEpilogue& epilogue = {}) const;

  /// out.add_to += out.scale * out.norm(norm(in) W^T + b), as a residual branch ends. Without a norm in (M,
  /// K) is multiplied directly, else it is norm(in) afterwards. With out.norm activations.normed is used.
  void add(const std::optional<LayerNorm>& norm, TensorView<float> in, const Residual& out,
           const Pass& pass) const;

  /// From now on inputs are clipped to their bounds when they are converted with a norm or in add(), and
  /// products before the epilogue, which then has at most an activation and a multiplier.
  void set_clip(const Clip& clip) { clip_ = clip; }
  bool clips() const noexcept { return clip_.has_value(); }

  /// (N) or empty.
  std::span<const float> bias() const noexcept { return bias_.flat(); }
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

  /// Divides `products` of this layer's shapes over the same rows.
  GemmTasks tasks_of(const LinearInput& in, OutputRange range, std::size_t products, const Pass& pass) const;
  void run_task(const GemmTask& task, const LinearInput& in, TensorView<float> out,
                const LinearEpilogue& epilogue) const;

  kernels::PackedMatrix weight_;
  Tensor<float> bias_;  // (N) or empty
  std::optional<Clip> clip_{};
  std::vector<std::uint32_t> outliers_{};
  Tensor<float> outlier_weight_{};  // (outliers, N rounded up to panels)
};

}  // namespace vit::internal
