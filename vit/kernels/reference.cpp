// The table "reference": the definition of every kernel, in naive loops and double precision, rounded once to
// float at the end. It is the oracle of the tests and selectable like any other table; speed does not matter
// here.
#include <algorithm>
#include <cmath>
#include <limits>

#include "vit/base/checked.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {
namespace {

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

constexpr Arithmetic kFloat32{
    .linear = &kReferenceFloat32, .attention = kAttention, .fine = &kReferenceFloat32};
constexpr Arithmetic kBfloat16{
    .linear = &kReferenceBfloat16, .attention = kAttention, .fine = &kReferenceFloat32};
constexpr Arithmetic kInt8{.linear = &kReferenceInt8, .attention = kAttention, .fine = &kReferenceFloat32};

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

}  // namespace vit::internal::kernels
