#include "vit/rings/dense/map_finish.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/base/rounded.h"

namespace vit::internal {
namespace {

/// Depths of bins. Logarithmic ones go over to even ones: bin i of n is w log + (1 - w) linear with w from 1
/// to 0.
std::vector<float> depth_bins(const MapOutput& output) {
  std::vector<float> bins;
  if (output.finish != MapFinish::linear_bins && output.finish != MapFinish::log_bins) return bins;
  const double low = output.lowest, high = output.highest;
  const auto last = static_cast<double>(output.channels - 1);
  for (std::size_t i = 0; i < output.channels; ++i) {
    const double t = last > 0 ? static_cast<double>(i) / last : 0.0;
    const double even = low + (high - low) * t;
    const double logarithmic = std::exp(std::log(low) + (std::log(high) - std::log(low)) * t);
    bins.push_back(static_cast<float>(
        output.finish == MapFinish::linear_bins ? even : (1.0 - t) * logarithmic + t * even));
  }
  return bins;
}

}  // namespace

MapFinisher::MapFinisher(const MapOutput& output) : output_(output), bins_(depth_bins(output)) {}

float MapFinisher::finished(float value) const {
  switch (output_.finish) {
    case MapFinish::relu: value = std::max(value, 0.0f); break;
    case MapFinish::sigmoid: value = rounded_sigmoid(value); break;
    case MapFinish::exponential: value = rounded_exp(value); break;
    default: break;
  }
  value = value * output_.scale + output_.offset;
  return output_.highest != 0.0f ? std::clamp(value, output_.lowest, output_.highest) : value;
}

void MapFinisher::finish_bins(const float* row, std::size_t width, float* out) const {
  const float least = output_.offset;  // so that no pixel is without any weight
  for (std::size_t x = 0; x < width; ++x, row += bins_.size()) {
    double sum = 0.0, weights = 0.0;
    for (std::size_t i = 0; i < bins_.size(); ++i) {
      const double weight = std::max(row[i], 0.0f) + least;
      weights += weight;
      sum += weight * bins_[i];
    }
    out[x] = static_cast<float>(sum / weights) * output_.scale;
  }
}

void MapFinisher::finish_row(const float* row, std::size_t y, TensorView<float> out) const {
  const std::size_t width = out.dim(2);
  if (!bins_.empty()) return finish_bins(row, width, out[0].row(y));
  for (std::size_t c = 0; c < output_.channels; ++c) {
    float* const to = out[c].row(y);
    for (std::size_t x = 0; x < width; ++x) to[x] = finished(row[x * output_.channels + c]);
  }
}

}  // namespace vit::internal
