// The int8 representation of numbers; the products are in int8-inl.h. Letters: M = rows, N =
// output columns, K = input columns, G = groups of K.
//
// A weight has one scale per output column and group of kInt8Group columns of K, an input row one per group:
//   w[n][k] = weight_scale[n][g(k)] q[n][k],   x[m][k] = step[m][g(k)] (q[m][k] - zero[m][g(k)]),
// q[n][k] an integer in [-127, 127]. Products of int16 pairs hold the weights in 16 bits anyway, so the
// inputs use all of theirs: q[m][k] in [-L, L], L = 32767, and zero = 0. Products of bytes have few steps,
// which are laid over what the group holds: q[m][k] in [0, 255] from its lowest number, or 0, to its highest.
// Where two of them are added in 16 bits, neighbors q[n][2i] and q[n][2i + 1] must not be large together; a
// group where they would be gets a larger scale, and nothing saturates. Sums over a group are exact in int32;
// those of the groups are added in float32, in order. Short groups keep a channel that is far larger than the
// others from taking the precision of the entire row; outlier columns are not in the integers at all
// (kernels.h).
#pragma once

#include <cstddef>
#include <cstdint>

namespace vit::internal::kernels {

constexpr std::size_t kInt8Group = 192;
static_assert(kInt8Group * 127 * 32'767 <= std::size_t{INT32_MAX});

constexpr std::size_t int8_groups(std::size_t in_features) {
  return (in_features + kInt8Group - 1) / kInt8Group;
}

/// How the integers of a group of a row represent numbers: x = step (q - zero).
struct InputScale {
  float step = 0.0f;
  float zero = 0.0f;  // an integer
  friend bool operator==(const InputScale&, const InputScale&) = default;
};

/// The scales of a converted row follow its values: G of them, in the last int8_scale_bytes(K) bytes.
constexpr std::size_t int8_scale_bytes(std::size_t in_features) {
  return (int8_groups(in_features) * sizeof(InputScale) + 63) / 64 * 64;
}

/// One group of a weight: q[k] = round(row[k] / scale), half to even, with the smallest scale for which no
/// |q[k]| is above 127 and no |q[2i] + q[2i + 1]| above pair_largest. Numbers that are all below 1e-30 count
/// as zero. False if a number is not finite.
bool quantize_weights(const float* row, std::size_t count, int pair_largest, std::int8_t* q,
                      float& scale) noexcept;

}  // namespace vit::internal::kernels
