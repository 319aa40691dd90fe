// The table "reference": the definition of every kernel, in naive loops and double precision, rounded once to
// float at the end. It is the oracle of the tests and selectable like any other table; speed does not matter
// here.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "vit/base/checked.h"
#include "vit/base/dtype.h"
#include "vit/kernels/int8.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {
namespace {

double activated(double x, Activation activation) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::gelu: return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    case Activation::gelu_tanh: {
      const double inner = std::sqrt(2.0 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x);
      return x / (1.0 + std::exp(-2.0 * inner));  // 0.5 (1 + tanh z) = 1 / (1 + exp(-2 z))
    }
    case Activation::quick_gelu: return x / (1.0 + std::exp(-1.702 * x));
    case Activation::silu: return x / (1.0 + std::exp(-x));
    case Activation::relu: return std::max(x, 0.0);
  }
  return x;
}

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

void blend(const BlendArgs& args) noexcept {
  const double weight = args.weight;
  for (std::size_t i = 0; i < args.count; ++i)
    args.out[i] = static_cast<float>(args.a[i] * (1.0 - weight) + args.b[i] * weight);
}

void interpolate(const InterpolateArgs& args) noexcept {
  for (std::size_t i = 0; i < args.pixels; ++i) {
    blend({.a = args.in + args.first[i] * args.channels,
           .b = args.in + args.second[i] * args.channels,
           .weight = args.weight[i],
           .count = args.channels,
           .out = args.out + i * args.channels});
  }
}

std::size_t convolution_packed_floats(std::size_t out_channels, std::size_t in_channels) noexcept {
  return out_channels * in_channels * 9;
}

void convolution_pack(const ConvolutionPackArgs& args) noexcept {
  std::copy_n(args.weight, convolution_packed_floats(args.out_channels, args.in_channels), args.packed);
}

double window_sum(const ConvolutionArgs& args, std::size_t y, std::size_t x, std::size_t o) {
  const float* const corner = args.in - args.in_stride - args.in_channels;  // of the border
  double sum = 0.0;
  for (std::size_t i = 0; i < args.in_channels; ++i) {
    for (std::size_t place = 0; place < 9; ++place) {
      const double in = corner[(y + place / 3) * args.in_stride + (x + place % 3) * args.in_channels + i];
      sum += (args.in_relu ? std::max(in, 0.0) : in) * args.packed[(o * args.in_channels + i) * 9 + place];
    }
  }
  return sum;
}

void convolve(const ConvolutionArgs& args) noexcept {
  const std::size_t across = ceil_div(args.width, kConvolutionTile);
  for (std::size_t tile = args.first_tile; tile < args.last_tile; ++tile) {
    const std::size_t top = tile / across * kConvolutionTile, left = tile % across * kConvolutionTile;
    for (std::size_t y = top; y < std::min(top + kConvolutionTile, args.height); ++y) {
      for (std::size_t x = left; x < std::min(left + kConvolutionTile, args.width); ++x) {
        for (std::size_t o = 0; o < args.out_channels; ++o) {
          const std::size_t place = x * args.out_channels + o;
          double sum = window_sum(args, y, x, o);
          if (args.bias) sum += args.bias[o];
          if (args.relu) sum = std::max(sum, 0.0);
          if (args.residual) sum += args.residual[y * args.residual_stride + place];
          if (args.second) sum += args.second[y * args.second_stride + place];
          args.out[y * args.out_stride + place] = static_cast<float>(sum);
        }
      }
    }
  }
}

void layer_norm(const LayerNormArgs& args) noexcept {
  const double count = static_cast<double>(args.columns);
  for (std::size_t r = 0; r < args.rows; ++r) {
    const float* const in = args.in + r * args.in_stride;
    float* const out = args.out + r * args.out_stride;
    double mean = 0.0;
    for (std::size_t c = 0; args.beta != nullptr && c < args.columns; ++c) mean += in[c];
    mean /= count;
    double variance = 0.0;
    for (std::size_t c = 0; c < args.columns; ++c) variance += (in[c] - mean) * (in[c] - mean);
    const double factor = 1.0 / std::sqrt(variance / count + args.eps);
    for (std::size_t c = 0; c < args.columns; ++c) {
      const double shift = args.beta != nullptr ? args.beta[c] : 0.0;
      out[c] = static_cast<float>((in[c] - mean) * factor * args.gamma[c] + shift);
    }
  }
}

/// One token (d) rotated into `out`; `in` may be `out`.
void rotate_token(const float* in, std::size_t token, std::size_t head_dim, const Rotation& rotation,
                  float* out) {
  if (rotation.cos == nullptr || token < rotation.num_prefix) {
    std::copy_n(in, head_dim, out);
    return;
  }
  const std::size_t pairs = head_dim / 2;
  const std::size_t angles = num_angles(rotation.angles, head_dim);
  const float* const cos = rotation.cos + (token - rotation.num_prefix) * angles;
  const float* const sin = rotation.sin + (token - rotation.num_prefix) * angles;
  for (std::size_t j = 0; j < pairs; ++j) {
    const bool neighbors = rotation.pairing == RopePairing::neighbors;
    const bool per_pair = rotation.angles == RopeAngles::per_pair;
    const std::size_t p = neighbors ? 2 * j : j;
    const std::size_t q = neighbors ? 2 * j + 1 : j + pairs;
    const std::size_t of_p = per_pair ? j : p, of_q = per_pair ? j : q;
    const double x = in[p];
    const double y = in[q];
    out[p] = static_cast<float>(x * cos[of_p] - y * sin[of_p]);
    out[q] = static_cast<float>(y * cos[of_q] + x * sin[of_q]);
  }
}

// packed: keys (T, d) rotated, then values (T, d)
std::size_t attention_packed_floats(std::size_t num_tokens, std::size_t head_dim) noexcept {
  return 2 * num_tokens * head_dim;
}

// scratch: the output in double (d), then the rotated query (d)
std::size_t attention_scratch_floats(std::size_t head_dim) noexcept {
  return 3 * head_dim;
}

void attention_pack(const KeyValueArgs& args) noexcept {
  float* const values = args.packed + args.num_tokens * args.head_dim;
  for (std::size_t t = args.first_token; t < args.last_token; ++t) {
    rotate_token(args.key_row(t), t, args.head_dim, args.rotation, args.packed + t * args.head_dim);
    std::copy_n(args.value_row(t), args.head_dim, values + t * args.head_dim);
  }
}

/// query (d) times column `entry` of a table for each axis.
double axis_product(const AttentionArgs& args, const float* query, std::size_t entry) {
  double sum = 0.0;
  for (std::size_t c = 0; c < args.head_dim; ++c)
    sum += static_cast<double>(query[c]) * args.bias.axes[c * args.bias.axes_stride + entry];
  return sum;
}

/// The bias of query `r` and a token.
double bias_of(const AttentionArgs& args, std::size_t r, std::size_t token) {
  const ScoreBias& bias = args.bias;
  const std::size_t query = args.first_query + r;
  double sum = 0.0;
  if (bias.table != nullptr) sum += bias.table[bias.query_places[query] - bias.key_places[token]];
  if (bias.axes == nullptr) return sum;
  const float* const row = args.queries + r * args.query_stride;
  const std::size_t of_rows = bias.num_rows - 1 + bias.rows[token] - bias.rows[query];
  const std::size_t of_columns = bias.num_columns - 1 + bias.columns[token] - bias.columns[query];
  return sum + axis_product(args, row, of_rows) + axis_product(args, row, 2 * bias.num_rows - 1 + of_columns);
}

double score_of(const AttentionArgs& args, std::size_t r, const float* query, std::size_t token) {
  const float* const key = args.packed + token * args.head_dim;
  double sum = 0.0;
  for (std::size_t c = 0; c < args.head_dim; ++c) sum += static_cast<double>(query[c]) * key[c];
  return sum * args.scale + bias_of(args, r, token);
}

/// Calls visit(token, weight) with the softmax weights of query `r`, rotated; tokens it does not
/// attend to have the weight 0.
template <typename Visit>
void for_each_weight(const AttentionArgs& args, std::size_t r, const float* query, Visit&& visit) {
  const std::size_t end = args.causal ? std::min(args.num_tokens, args.first_query + r + 1) : args.num_tokens;
  const HiddenKeys& hidden = args.hidden;
  const std::size_t first_key = args.num_tokens - hidden.keys, token = args.first_query + r;
  const auto score = [&](std::size_t t) {
    const bool is_hidden = hidden.flags != nullptr && token < hidden.queries && t >= first_key &&
                           hidden.flags[token * hidden.keys + t - first_key] != 0;
    return is_hidden ? -std::numeric_limits<double>::infinity() : score_of(args, r, query, t);
  };
  double largest = -std::numeric_limits<double>::infinity();
  for (std::size_t t = 0; t < end; ++t) largest = std::max(largest, score(t));
  double sum = 0.0;
  for (std::size_t t = 0; t < end; ++t) sum += std::exp(score(t) - largest);
  for (std::size_t t = 0; t < end; ++t) visit(t, std::exp(score(t) - largest) / sum);
  for (std::size_t t = end; t < args.num_tokens; ++t) visit(t, 0.0);
}

void attention(const AttentionArgs& args) noexcept {
  double* const sums = reinterpret_cast<double*>(args.scratch);
  float* const query = args.scratch + 2 * args.head_dim;
  const float* const values = args.packed + args.num_tokens * args.head_dim;
  for (std::size_t r = 0; r < args.num_queries; ++r) {
    rotate_token(args.queries + r * args.query_stride, args.first_query + r, args.head_dim, args.rotation,
                 query);
    std::fill_n(sums, args.head_dim, 0.0);
    for_each_weight(args, r, query, [&](std::size_t t, double weight) {
      for (std::size_t c = 0; c < args.head_dim; ++c) sums[c] += weight * values[t * args.head_dim + c];
    });
    for (std::size_t c = 0; c < args.head_dim; ++c)
      args.out[r * args.out_stride + c] = static_cast<float>(sums[c]);
  }
}

void attention_probabilities(const AttentionArgs& args) noexcept {
  float* const query = args.scratch;
  for (std::size_t r = 0; r < args.num_queries; ++r) {
    rotate_token(args.queries + r * args.query_stride, args.first_query + r, args.head_dim, args.rotation,
                 query);
    float* const out = args.out + r * args.out_stride;
    for_each_weight(args, r, query,
                    [&](std::size_t t, double weight) { out[t] = static_cast<float>(weight); });
  }
}

constexpr AttentionKernels kAttention{.packed_floats = attention_packed_floats,
                                      .scratch_floats = attention_scratch_floats,
                                      .pack = attention_pack,
                                      .attend = attention,
                                      .probabilities = attention_probabilities,
                                      .multiply_adds = nullptr};

void resample_columns_rgb(const ResampleRows& rows, std::size_t num_rows, std::size_t,
                          const ResampleAxis& axis) noexcept {
  resample_columns_reference(rows, num_rows, 3, axis);
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

constexpr LinearKernels kFloatLinear{.description = "float32, naive loops",
                                     .panel_columns = 1,
                                     .tile_rows = 1,
                                     .row_bytes = float_row_bytes,
                                     .convert_rows = nullptr,
                                     .packed_bytes = float_packed_bytes,
                                     .pack = float_pack,
                                     .gemm = float_gemm};

constexpr LinearKernels kBf16Linear = [] {
  LinearKernels linear = kFloatLinear;
  linear.description = "weights of bfloat16, naive loops";
  linear.pack = bf16_pack;
  return linear;
}();

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

constexpr Arithmetic kFloat32{.linear = &kFloatLinear, .attention = kAttention, .fine = &kFloatLinear};
constexpr Arithmetic kBfloat16{.linear = &kBf16Linear, .attention = kAttention, .fine = &kFloatLinear};
constexpr Arithmetic kInt8{
    .linear = &kInt8Linear<std::int16_t, 255>, .attention = kAttention, .fine = &kFloatLinear};

constexpr KernelTable kReference{
    .name = "reference",
    .description = "naive loops in double precision: the definition, not for speed",
    .is_portable = false,
    .layer_norm = layer_norm,
    .resample = {.columns_rgb = resample_columns_rgb, .rows = resample_rows_reference},
    .maps = {.blend = blend, .interpolate = interpolate},
    .convolution = {.panel_columns = 1,
                    .tiles_at_once = [](std::size_t) noexcept { return std::size_t{1}; },
                    .scratch_floats = [](std::size_t) noexcept { return std::size_t{0}; },
                    .packed_floats = convolution_packed_floats,
                    .pack = convolution_pack,
                    .convolve = convolve},
    .float32 = &kFloat32,
    .bfloat16 = &kBfloat16,
    .int8 = &kInt8,
};

}  // namespace

const KernelTable& reference_kernels() {
  return kReference;
}

const LinearKernels& reference_byte_kernels(int pair_largest) {
  return pair_largest == 255 ? kInt8Linear<std::uint8_t, 255> : kInt8Linear<std::uint8_t, 128>;
}

}  // namespace vit::internal::kernels
