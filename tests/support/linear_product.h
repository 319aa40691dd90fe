// A product of rows with a weight, through the kernels of any arithmetic.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/pack.h"
#include "vit/kernels/targets.h"

namespace vit::test {

constexpr float kUntouched = 12345.0f;
constexpr std::size_t kGap = 5;  // numbers after each row of outputs

/// Rows (M, K) as the kernels take them; empty where they take float32.
inline Tensor<std::byte> converted_rows(const internal::kernels::LinearKernels& kernels,
                                        const TensorView<const float>& in) {
  Tensor<std::byte> out(Shape{in.num_rows(), kernels.row_bytes(in.num_columns())});
  if (kernels.convert_rows == nullptr) return out;
  kernels.convert_rows({.in = in.data(),
                        .in_stride = in.row_stride(),
                        .rows = in.num_rows(),
                        .in_features = in.num_columns(),
                        .out = out.data()});
  return out;
}

/// The arguments of a product in (M, K) W^T with W (N, K), without out. `rows`: converted_rows(in).
inline internal::kernels::GemmArgs product_args(const internal::kernels::PackedMatrix& packed,
                                                const TensorView<const float>& in,
                                                const Tensor<std::byte>& rows) {
  const bool converts = packed.kernels().convert_rows != nullptr;
  return {.in = converts ? rows.data() : reinterpret_cast<const std::byte*>(in.data()),
          .in_step = converts ? rows.dim(1) : in.row_stride() * sizeof(float),
          .rows = in.num_rows(),
          .packed = packed.data(),
          .in_features = packed.in_features(),
          .column_begin = 0,
          .column_end = packed.out_features()};
}

/// in (M, K) W^T with W (N, K): M rows of N outputs and a gap.
inline std::vector<float> linear_product(const internal::kernels::LinearKernels& kernels,
                                         const TensorView<const float>& in,
                                         const TensorView<const float>& weight,
                                         const internal::kernels::Epilogue& epilogue = {}) {
  const internal::kernels::PackedMatrix packed(weight, kernels);
  const Tensor<std::byte> rows = converted_rows(kernels, in);
  std::vector<float> out(in.num_rows() * (weight.dim(0) + kGap), kUntouched);
  internal::kernels::GemmArgs args = product_args(packed, in, rows);
  args.out = out.data();
  args.out_stride = weight.dim(0) + kGap;
  args.epilogue = epilogue;
  kernels.gemm(args);
  return out;
}

/// How many steps int8 inputs and weights have, which the descriptions of the kernels give.
struct Int8Steps {
  int input_largest;  // steps from 0 to the largest magnitude, at least: those of 16 bits, or of bytes
  int pair_largest;   // that the sum of the neighbors q[n][2i] and q[n][2i + 1] may be, either sign
  bool operator==(const Int8Steps&) const = default;
};
inline Int8Steps int8_steps(const internal::kernels::LinearKernels& kernels) {
  if (&kernels == &internal::kernels::reference_byte_kernels(128)) return {127, 128};
  if (&kernels == &internal::kernels::reference_byte_kernels(255)) return {127, 255};
  const std::string_view description = kernels.description;
  if (description.starts_with("products of bytes (")) return {127, 255};  // VNNI, AMX, SDOT, I8MM
  if (description == "products of bytes") return {127, 128};
  return {32'767, 255};
}

/// How much lower than unsigned bytes these kernels store their inputs.
inline float zero_offset(const internal::kernels::LinearKernels& kernels) {
  return std::string_view(kernels.description) == "products of bytes (SDOT)" ? 128.0f : 0.0f;
}

}  // namespace vit::test
