// Linear: y = x W^T + b and what is fused behind it. Hides how the weight is stored and who multiplies.
// Letters: M = rows, K = input features, N = output features.
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "vit/base/activation.h"
#include "vit/base/dtype.h"
#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/pack.h"
#include "vit/layers/layer_norm.h"

namespace vit {

/// out = residual + scale * (multiplier * activation(x W^T + b)); an empty member leaves its term out.
struct LinearEpilogue {
  Activation activation = Activation::none;
  TensorView<const float> multiplier{};  // (M, N), may be out
  std::span<const float> scale{};        // (N)
  TensorView<const float> residual{};    // (M, N), may be out
};

/// Where a Linear keeps its input while it runs, as whole numbers for int8, rounded for bfloat16.
struct QuantisedMemory {
  TensorView<std::byte> values{};
  TensorView<kernels::InputScale> scales{};  // int8 alone
};

/// Rows (M, K) in the form in which they are multiplied, good for every Linear of the same input features,
/// kernels and dtype until the memory is used again.
struct PreparedRows {
  TensorView<const float> rows{};  // in float32
  QuantisedMemory quantised{};     // in bfloat16 or int8
};

/// Outputs [begin, end) of a Linear.
struct OutputRange {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Linear {
 public:
  /// weight (N, K); bias (N) or empty. Copies both, in the layout of `kernels`. dtype: f32; bf16 for rounded
  /// weights, and rounded inputs where the kernels multiply bfloat16 (kernels/bf16.h); i8 for weights and
  /// inputs with one scale per row and group of columns (kernels/int8.h). Throws Error where shapes disagree
  /// or another dtype is asked for.
  Linear(TensorView<const float> weight, std::span<const float> bias,
         const kernels::KernelTable& kernels = kernels::default_kernels(), Dtype dtype = Dtype::f32);

  /// in (M, K) -> out (M, N), rows of any stride; in and out must not overlap. Leading dimensions count as
  /// rows. bfloat16 and int8 need memory for M rows. Throws Error where shapes disagree. The bits of a row
  /// depend on that row alone.
  void forward(TensorView<const float> in, TensorView<float> out, int threads,
               const LinearEpilogue& epilogue = {}, const QuantisedMemory& memory = {}) const;

  /// forward in two steps, of which the first serves several products: the rows `in` (M, K),
  PreparedRows prepare(TensorView<const float> in, int threads, const QuantisedMemory& memory = {}) const;
  /// or norm(in), left in normed (M, K) too, which may be `in`: each row is read while it is at hand.
  PreparedRows prepare_normed(const LayerNorm& norm, TensorView<const float> in, TensorView<float> normed,
                              int threads, const QuantisedMemory& memory = {}) const;
  void multiply(const PreparedRows& in, TensorView<float> out, int threads,
                const LinearEpilogue& epilogue = {}) const;
  /// The outputs in `range`, rounded to whole panels of the kernels; the others in out (M, N) stay as they
  /// are. The bits are those of a whole product.
  void multiply_range(const PreparedRows& in, TensorView<float> out, OutputRange range, int threads,
                      const LinearEpilogue& epilogue = {}) const;

  /// out += scale * (norm(in) W^T + b), as a residual branch ends; without a norm in (M, K) is multiplied as
  /// it is, else it is norm(in) afterwards. scale (N) or empty for 1.
  void add_to(TensorView<float> out, std::span<const float> scale, const std::optional<LayerNorm>& norm,
              TensorView<float> in, int threads, const QuantisedMemory& memory) const;

  std::size_t in_features() const noexcept;
  std::size_t out_features() const noexcept;
  /// The shape of the weight for messages: "(3072, 768)".
  std::string describe() const;
  /// Memory that weight and bias occupy.
  std::size_t weight_bytes() const;

 private:
  void check_rows(const TensorView<const float>& in) const;

  std::variant<kernels::PackedMatrix, kernels::PackedBf16Matrix, kernels::PackedInt8Matrix> weight_;
  Tensor<float> bias_;  // (N) or empty
};

}  // namespace vit
