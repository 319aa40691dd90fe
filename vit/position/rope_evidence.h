// Rotary factors measured in what people have: tables of cosines and sines, of angles, or queries before and
// after the rotation. Which convention they follow is found by identify_rope(). Letters: H = heads, T =
// tokens, d = channels of a head.
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "vit/base/dtype.h"
#include "vit/base/tensor.h"
#include "vit/position/convention_tables.h"

namespace vit::internal {

/// Numbers of a file in double, and the precision that they have: float32 numbers may have been rounded to
/// bfloat16 before.
struct RopeNumbers {
  Tensor<double> values;
  Dtype precision = Dtype::f64;

  bool empty() const noexcept { return values.empty(); }
};

/// The coarsest of bfloat16, float16, float32 and float64 that holds all values exactly. Zeros and ones
/// are float64.
Dtype precision_of(std::span<const double> values);

/// Which channels form pairs, whatever the axes.
enum class Partition {
  unknown,   // a column per pair
  adjacent,  // (2j, 2j + 1)
  half,      // (j, j + d / 2)
  quarter,   // (j, j + d / 4) in each half
  none,      // a column per channel, all of them different
};
Partition partition_of(position::PairLayout channels);

/// Factors in one way to read them: a column per pair, or per channel if channels have angles of their own.
struct RopeReading {
  Partition partition = Partition::unknown;
  std::size_t head_dim = 0;
  std::size_t num_heads = 1;  // 1 if all heads have the same factors
  std::size_t num_tokens = 0;
  std::size_t num_columns = 0;
  std::vector<std::complex<double>> factors;  // (H, T, columns)
  Dtype precision = Dtype::f64;
  std::vector<float> gains{};  // of rounding errors, (H, T, columns): of small pairs of q; empty = 1

  std::complex<double> at(std::size_t head, std::size_t token, std::size_t column) const {
    return factors[(head * num_tokens + token) * num_columns + column];
  }
  /// Largest differences of cosine and sine that rounding explains, for an angle.
  std::array<double, 2> allowed(std::size_t head, std::size_t token, std::size_t column, double angle) const;
};

/// The ways to read cosines and sines, (T, d / 2), (T, d), or with heads or a batch in front. Throws Error
/// (format) if the shapes differ or do not fit, or a number is not finite; (mismatch) if squares of cosine
/// and sine do not sum to 1.
std::vector<RopeReading> read_factors(const RopeNumbers& cos, const RopeNumbers& sin);
/// The same of angles in radians.
std::vector<RopeReading> read_angles(const RopeNumbers& angles);
/// The ways to read vectors before and after the rotation, (B, T, H, d) or (B, H, T, d): one for each
/// partition that keeps the length of pairs. Throws Error (format) if the shapes differ or do not fit, or a
/// number is not finite.
std::vector<RopeReading> read_rotated(const RopeNumbers& before, const RopeNumbers& after);

}  // namespace vit::internal
