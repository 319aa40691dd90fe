// Products of linear layers of the table "reference" (reference.cpp): naive loops over float32, bfloat16 and
// int8.
#include <algorithm>
#include <cmath>
#include <limits>

#include "vit/base/checked.h"
#include "vit/base/dtype.h"
#include "vit/base/rounded.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {
namespace {

std::size_t float_row_bytes(std::size_t) noexcept {
  return 0;
}

std::size_t float_packed_bytes(std::size_t columns, std::size_t in_features) noexcept {
  return columns * in_features * sizeof(float);
}

bool float_pack(const PackArgs& args) noexcept {
  float* const packed = reinterpret_cast<float*>(args.packed);
  for (std::size_t n = 0; n < args.out_features; ++n) {
    std::copy_n(args.weight + n * args.stride, args.in_features, packed + n * args.in_features);
  }
  return true;
}

/// A product after its epilogue.
float finished(double sum, const Epilogue& e, std::size_t m, std::size_t n) {
  if (e.bias) sum += e.bias[n];
  sum = activated(sum, e.activation);
  if (e.multiplier) sum *= e.multiplier[m * e.multiplier_stride + n];
  if (e.scale) sum *= e.scale[n];
  if (e.residual) sum += e.residual[m * e.residual_stride + n];
  return static_cast<float>(sum);
}

void float_gemm(const GemmArgs& args) noexcept {
  const std::size_t piece_step = args.piece_step / sizeof(float);
  for (std::size_t m = 0; m < args.rows; ++m) {
    const auto* const row = reinterpret_cast<const float*>(args.in + m * args.in_step);
    for (std::size_t n = args.column_begin; n < args.column_end; ++n) {
      const float* const weight = reinterpret_cast<const float*>(args.packed) + n * args.in_features;
      const std::size_t length = args.in_features / args.pieces;  // of a piece
      double sum = 0.0;
      for (std::size_t k = 0; k < args.in_features; ++k)
        sum += static_cast<double>(row[k / length * piece_step + k % length]) * weight[k];
      args.out[m * args.out_stride + n] = finished(sum, args.epilogue, m, n);
    }
  }
}

// Rounded numbers stay float32: the float32 product then is that of bfloat16.
bool bf16_pack(const PackArgs& args) noexcept {
  float* const packed = reinterpret_cast<float*>(args.packed);
  for (std::size_t n = 0; n < args.out_features; ++n) {
    for (std::size_t k = 0; k < args.in_features; ++k) {
      packed[n * args.in_features + k] = bf16_to_float(float_to_bf16(args.weight[n * args.stride + k]));
    }
  }
  return true;
}

/// Value: type of a quantized input.
template <typename Value>
std::size_t int8_value_bytes(std::size_t in_features) {
  return round_up(in_features * sizeof(Value), 64);
}

template <typename Value>
std::size_t int8_row_bytes(std::size_t in_features) noexcept {
  return int8_value_bytes<Value>(in_features) + int8_scale_bytes(in_features);
}

/// A column is its scales, then its weights.
std::size_t int8_packed_bytes(std::size_t columns, std::size_t in_features) noexcept {
  return columns * round_up(int8_groups(in_features) * sizeof(float) + in_features, 64);
}

template <int kPairLargest>
bool int8_pack(const PackArgs& args) noexcept {
  for (std::size_t n = 0; n < args.out_features; ++n) {
    auto* const scales = reinterpret_cast<float*>(args.packed + int8_packed_bytes(n, args.in_features));
    auto* const weight = reinterpret_cast<std::int8_t*>(scales + int8_groups(args.in_features));
    for (std::size_t g = 0; g < int8_groups(args.in_features); ++g) {
      const std::size_t k = g * kInt8Group;
      const std::size_t count = std::min(kInt8Group, args.in_features - k);
      const float* const row = args.weight + n * args.stride + k;
      if (!quantize_weights(row, count, kPairLargest, weight + k, scales[g])) return false;
    }
  }
  return true;
}

/// Integers with a step of 1 / factor, `zero` for 0.
struct Steps {
  float factor;
  InputScale scale;
};

// Computed in float, like those of the vectors: the integers are the same in every table.

/// Symmetric around 0.
Steps steps_over(float lowest, float highest, std::int16_t) {
  const float largest = std::max(highest, -lowest);
  return {32'767.0f / largest, {largest / 32'767.0f, 0.0f}};
}

/// From the lowest to the highest number, one of the 256 spare for rounding both ends away from 0.
Steps steps_over(float lowest, float highest, std::uint8_t) {
  const float step = highest / 254.0f - lowest / 254.0f;
  return {1.0f / step, {step, std::nearbyint(-lowest * (1.0f / step))}};
}

template <typename Value>
void int8_quantize(const ConvertArgs& args) noexcept {
  for (std::size_t r = 0; r < args.rows; ++r) {
    const auto in = [&](std::size_t k) {
      const std::uint32_t* const outliers = args.outliers.columns;
      const bool is_outlier =
          std::find(outliers, outliers + args.outliers.count, k) != outliers + args.outliers.count;
      return is_outlier ? 0.0f : args.in[r * args.in_stride + k];
    };
    std::byte* const row = args.out + r * int8_row_bytes<Value>(args.in_features);
    auto* const out = reinterpret_cast<Value*>(row);
    auto* const scales = reinterpret_cast<InputScale*>(row + int8_value_bytes<Value>(args.in_features));
    for (std::size_t g = 0; g < int8_groups(args.in_features); ++g) {
      const std::size_t begin = g * kInt8Group;
      const std::size_t end = std::min(begin + kInt8Group, args.in_features);
      float lowest = 0.0f, highest = 0.0f;
      bool is_finite = true;
      for (std::size_t k = begin; k < end; ++k) {
        lowest = std::min(lowest, in(k));
        highest = std::max(highest, in(k));
        is_finite = is_finite && std::isfinite(in(k));
      }
      InputScale& scale = scales[g];
      if (is_finite && std::max(highest, -lowest) >= 1e-30f) {
        const Steps steps = steps_over(lowest, highest, Value{});
        scale = steps.scale;
        for (std::size_t k = begin; k < end; ++k) {
          out[k] = static_cast<Value>(std::nearbyint(double{in(k)*steps.factor} + scale.zero));
        }
      } else {
        scale = {is_finite ? 0.0f : std::numeric_limits<float>::quiet_NaN(), 0.0f};
        std::fill(out + begin, out + end, Value{0});
      }
    }
  }
}

template <typename Value>
double int8_product(const GemmArgs& args, std::size_t m, std::size_t n) {
  const std::byte* const in = args.in + m * args.in_step;
  const auto* const row = reinterpret_cast<const Value*>(in);
  const auto* const scales =
      reinterpret_cast<const InputScale*>(in + int8_value_bytes<Value>(args.in_features));
  const std::size_t groups = int8_groups(args.in_features);
  const auto* const weight_scales =
      reinterpret_cast<const float*>(args.packed + int8_packed_bytes(n, args.in_features));
  const auto* const weight = reinterpret_cast<const std::int8_t*>(weight_scales + groups);
  double sum = 0.0;
  for (std::size_t g = 0; g < groups; ++g) {
    const auto zero = static_cast<std::int32_t>(scales[g].zero);
    std::int32_t product = 0;
    for (std::size_t k = g * kInt8Group; k < std::min((g + 1) * kInt8Group, args.in_features); ++k) {
      product += (row[k] - zero) * weight[k];
    }
    sum += static_cast<double>(product) * weight_scales[g] * scales[g].step;
  }
  const OutlierProduct& o = args.outliers;
  for (std::size_t i = 0; i < o.columns.count; ++i)
    sum += double{o.in[m * o.in_stride + o.columns.columns[i]]} * o.weight[i * o.weight_stride + n];
  return sum;
}

template <typename Value>
void int8_gemm(const GemmArgs& args) noexcept {
  for (std::size_t m = 0; m < args.rows; ++m) {
    for (std::size_t n = args.column_begin; n < args.column_end; ++n) {
      args.out[m * args.out_stride + n] = finished(int8_product<Value>(args, m, n), args.epilogue, m, n);
    }
  }
}

/// Value: type of an input. kPairLargest: quantize_weights.
template <typename Value, int kPairLargest>
constexpr LinearKernels kInt8Linear{.description = "naive loops",
                                    .panel_columns = 1,
                                    .tile_rows = 1,
                                    .row_bytes = int8_row_bytes<Value>,
                                    .convert_rows = int8_quantize<Value>,
                                    .packed_bytes = int8_packed_bytes,
                                    .pack = int8_pack<kPairLargest>,
                                    .gemm = int8_gemm<Value>,
                                    .has_outliers = true};

}  // namespace

constexpr LinearKernels kReferenceFloat32{.description = "float32, naive loops",
                                          .panel_columns = 1,
                                          .tile_rows = 1,
                                          .row_bytes = float_row_bytes,
                                          .convert_rows = nullptr,
                                          .packed_bytes = float_packed_bytes,
                                          .pack = float_pack,
                                          .gemm = float_gemm};

constexpr LinearKernels kReferenceBfloat16 = [] {
  LinearKernels linear = kReferenceFloat32;
  linear.description = "weights of bfloat16, naive loops";
  linear.pack = bf16_pack;
  return linear;
}();

constexpr LinearKernels kReferenceInt8 = kInt8Linear<std::int16_t, 255>;

const LinearKernels& reference_byte_kernels(int pair_largest) {
  return pair_largest == 255 ? kInt8Linear<std::uint8_t, 255> : kInt8Linear<std::uint8_t, 128>;
}

}  // namespace vit::internal::kernels
