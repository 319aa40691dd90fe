#include "vit/rings/fit/standardize.h"

#include <cmath>
#include <limits>

namespace vit::internal {

void Standardization::apply(const float* row, double* out) const {
  for (std::size_t c = 0; c < mean.size(); ++c) out[c] = (static_cast<double>(row[c]) - mean[c]) / scale[c];
}

Standardization standardization_of(TensorView<const float> features) {
  const std::size_t rows = features.num_rows(), columns = features.num_columns();
  const double count = static_cast<double>(rows);
  Standardization out{.mean = std::vector<double>(columns), .scale = std::vector<double>(columns)};
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) out.mean[c] += static_cast<double>(features.row(r)[c]);
  }
  for (double& mean : out.mean) mean /= count;
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const double difference = static_cast<double>(features.row(r)[c]) - out.mean[c];
      out.scale[c] += difference * difference;
    }
  }
  // A variance below rounding errors is zero: the bound of Chan, Golub and LeVeque, as in scikit-learn.
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  for (std::size_t c = 0; c < columns; ++c) {
    const double variance = out.scale[c] / count;
    const double rounding = count * out.mean[c] * kEpsilon;
    out.scale[c] = variance <= count * kEpsilon * variance + rounding * rounding ? 1.0 : std::sqrt(variance);
  }
  return out;
}

Standardization no_standardization(std::size_t num_features) {
  return {.mean = std::vector<double>(num_features, 0.0), .scale = std::vector<double>(num_features, 1.0)};
}

}  // namespace vit::internal
