#include "vit/kernels/self_check.h"

#include <cmath>
#include <cstddef>

#include "vit/base/checked.h"
#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {
namespace {

// One row more than the tallest tile, columns and K that are no multiples of a tile; every number is an
// integer that bfloat16 and a quantized group of that range represent exactly.
constexpr std::size_t kRows = 17, kColumns = 19, kFeatures = 70, kMostBytes = 1 << 15;

constexpr float input(std::size_t m, std::size_t k) {
  return static_cast<float>((5 * m + 3 * k) % 11) - 5.0f;
}
constexpr float weight(std::size_t n, std::size_t k) {
  return static_cast<float>((7 * n + 2 * k) % 13) - 6.0f;
}

/// Largest difference from the exact product.
double largest_error(const LinearKernels& kernels) noexcept {
  alignas(64) std::byte packed[kMostBytes], converted[kMostBytes];
  alignas(64) float in[kRows * kFeatures], weights[kColumns * kFeatures], out[kRows * kColumns] = {};
  for (std::size_t m = 0; m < kRows; ++m) {
    for (std::size_t k = 0; k < kFeatures; ++k) in[m * kFeatures + k] = input(m, k);
  }
  for (std::size_t n = 0; n < kColumns; ++n) {
    for (std::size_t k = 0; k < kFeatures; ++k) weights[n * kFeatures + k] = weight(n, k);
  }
  const std::size_t bytes = kernels.row_bytes(kFeatures);
  if (kernels.packed_bytes(round_up(kColumns, kernels.panel_columns), kFeatures) > kMostBytes ||
      bytes * kRows > kMostBytes)
    return HUGE_VAL;
  kernels.pack({.weight = weights,
                .stride = kFeatures,
                .out_features = kColumns,
                .in_features = kFeatures,
                .packed = packed});
  kernels.convert_rows(
      {.in = in, .in_stride = kFeatures, .rows = kRows, .in_features = kFeatures, .out = converted});
  kernels.gemm({.in = converted,
                .in_step = bytes,
                .rows = kRows,
                .packed = packed,
                .in_features = kFeatures,
                .column_begin = 0,
                .column_end = kColumns,
                .out = out,
                .out_stride = kColumns});
  double largest = 0;
  for (std::size_t m = 0; m < kRows; ++m) {
    for (std::size_t n = 0; n < kColumns; ++n) {
      double exact = 0;
      for (std::size_t k = 0; k < kFeatures; ++k)
        exact += static_cast<double>(input(m, k)) * static_cast<double>(weight(n, k));
      const double error = std::abs(exact - static_cast<double>(out[m * kColumns + n]));
      if (!(error <= largest)) largest = error;
    }
  }
  return largest;
}

}  // namespace

bool products_are_right(const LinearKernels& bf16, const LinearKernels& int8) noexcept {
  // bfloat16 is exact here; quantization steps of 10 / 254 and 6 / 127 cause errors below 0.02 per product.
  return largest_error(bf16) == 0.0 && largest_error(int8) < 0.05 * kFeatures;
}

}  // namespace vit::internal::kernels
