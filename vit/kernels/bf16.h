// Products of bfloat16 weights, the part of a kernel table for linear layers in bfloat16. Weights are
// rounded, halves to even; sums are float32, in the order of the float32 product. Letters: M = rows, N =
// output columns, K = input columns. A lane is 32 bits, typed as a float: one number or two bfloat16.
#pragma once

#include <cstddef>

namespace vit::internal::kernels {

struct GemmArgs;

/// Rows of bfloat16 from rows of float32, halves to even.
struct RoundRowsArgs {
  const float* in = nullptr;  // (M, K)
  std::size_t in_stride = 0;
  std::size_t rows = 0;
  std::size_t in_features = 0;
  float* out = nullptr;  // (M, bf16_row_lanes(K)), 64-byte aligned
};

/// Lanes of a rounded row: pairs of columns, whole cache lines.
constexpr std::size_t bf16_row_lanes(std::size_t in_features) {
  return (in_features + 31) / 32 * 16;
}

struct Bf16Kernels {
  const char* description;
  /// Lanes of `columns` packed columns; columns is a multiple of panel_columns of the table.
  std::size_t (*packed_lanes)(std::size_t columns, std::size_t in_features) noexcept;
  /// weight (N, K) with `stride` -> packed_lanes(N rounded up, K) lanes, 64-byte aligned.
  void (*pack_weight)(const float* weight, std::size_t stride, std::size_t out_features,
                      std::size_t in_features, float* packed) noexcept;
  /// What gemm takes as its input; null where it takes float32 as it is and rounds weights alone.
  void (*round_rows)(const RoundRowsArgs& args) noexcept;
  /// As the gemm of the table, with the packed weight of this pack_weight and the rows of round_rows.
  void (*gemm)(const GemmArgs& args) noexcept;
};

}  // namespace vit::internal::kernels
