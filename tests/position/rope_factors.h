// Tables of rotary factors as libraries have them, for the tests of identification: of any precision, a
// column per pair or per channel.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/dtype.h"
#include "vit/position/convention_tables.h"
#include "vit/position/identify.h"
#include "vit/position/rope.h"

namespace vit::test {
using namespace internal;
using namespace position;

inline double rounded(double value, Dtype precision) {
  const auto single = static_cast<float>(value);
  switch (precision) {
    case Dtype::f32: return single;
    case Dtype::f16: return f16_to_float(float_to_f16(single));
    case Dtype::bf16: return bf16_to_float(float_to_bf16(single));
    default: return value;
  }
}

/// A table (P + N, columns), a column per pair or per channel.
struct Table {
  std::size_t tokens = 0, columns = 0;
  std::vector<double> angles;

  double& at(std::size_t token, std::size_t column) { return angles[token * columns + column]; }
};

inline Table table_of(const RopeConvention& c, GridSize grid, std::size_t d, bool full,
                      std::size_t prefix = 0, std::size_t frames = 1) {
  const Tensor<double> angles = rope_angles(coordinates(c, grid, frames), frequency_vectors(c, d));
  const std::size_t patches = angles.dim(angles.shape().rank() - 2), count = angles.shape().last();
  Table out{.tokens = prefix + patches, .columns = full ? d : count, .angles = {}};
  out.angles.assign(out.tokens * out.columns, 0.0);
  std::vector<ChannelPair> pairs;
  if (full && c.angles == RopeAngles::per_pair) pairs = channel_pairs(c, d);
  for (std::size_t patch = 0; patch < patches; ++patch) {
    for (std::size_t j = 0; j < count; ++j) {
      const double angle = angles.data()[patch * count + j];
      if (pairs.empty()) {
        out.at(prefix + patch, j) = angle;
      } else {
        out.at(prefix + patch, pairs[j].p) = out.at(prefix + patch, pairs[j].q) = angle;
      }
    }
  }
  return out;
}

inline RopeNumbers numbers_of(const Table& table, double (*of)(double), Dtype precision) {
  RopeNumbers out{.values = Tensor<double>(Shape{table.tokens, table.columns}), .precision = precision};
  for (std::size_t i = 0; i < table.angles.size(); ++i)
    out.values.data()[i] = rounded(of(table.angles[i]), precision);
  return out;
}

inline RopeIdentity identify(const Table& table, Dtype precision, const IdentifyOptions& options = {}) {
  const std::vector<RopeReading> readings =
      read_factors(numbers_of(
                       table, [](double a) { return std::cos(a); }, precision),
                   numbers_of(
                       table, [](double a) { return std::sin(a); }, precision));
  return identify_rope(readings, {}, options);
}

}  // namespace vit::test
