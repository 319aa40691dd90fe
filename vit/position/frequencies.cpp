#include "vit/position/rope.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "vit/base/check.h"

namespace vit::position {
namespace {

template <typename Value>
std::vector<double> evaluate(std::size_t num_frequencies, Value&& value_of) {
  std::vector<double> values(num_frequencies);
  for (std::size_t k = 0; k < num_frequencies; ++k) values[k] = value_of(k);
  return values;
}

// 0 at the first of `count` steps, 1 at the last.
double progress(std::size_t step, std::size_t count) {
  return count < 2 ? 0.0 : static_cast<double>(step) / static_cast<double>(count - 1);
}

template <typename T>
std::vector<double> copy_mixed(TensorView<const T> frequencies) {
  const Shape& shape = frequencies.shape();
  VIT_CHECK(!frequencies.empty() && shape.rank() == 4 && shape[0] == 2 && shape.num_elements() > 0,
            "MixedFrequencies", "expected (2, depth, heads, pairs), found ", shape.to_string());
  std::vector<double> values;
  values.reserve(shape.num_elements());
  for (std::size_t r = 0; r < frequencies.num_rows(); ++r) {
    const T* const row = frequencies.row(r);
    values.insert(values.end(), row, row + frequencies.num_columns());
  }
  for (const double value : values) {
    VIT_CHECK(std::isfinite(value), "MixedFrequencies", "a frequency is ", value, "; damaged file?");
  }
  return values;
}

}  // namespace

std::size_t num_axial_frequencies(std::size_t head_dim) {
  VIT_CHECK(head_dim > 0 && head_dim % 4 == 0, "num_axial_frequencies",
            "two axes of channel pairs need a head width that 4 divides, got ", head_dim);
  return head_dim / 4;
}

std::size_t num_frequencies_1d(std::size_t head_dim) {
  VIT_CHECK(head_dim > 0 && head_dim % 2 == 0, "num_frequencies_1d",
            "channel pairs need an even head width, got ", head_dim);
  return head_dim / 2;
}

RopeFrequencies::RopeFrequencies(std::vector<double> frequencies) : frequencies_(std::move(frequencies)) {
  VIT_CHECK(!frequencies_.empty(), "RopeFrequencies", "at least one frequency is needed");
  for (std::size_t k = 0; k < frequencies_.size(); ++k) {
    VIT_CHECK(std::isfinite(frequencies_[k]), "RopeFrequencies", "frequency ", k, " is ", frequencies_[k]);
  }
}

RopeFrequencies RopeFrequencies::from_theta(std::size_t num_frequencies, double theta) {
  VIT_CHECK(std::isfinite(theta) && theta > 0, "RopeFrequencies", "theta must be positive and finite, got ",
            theta);
  const double count = static_cast<double>(num_frequencies);
  return RopeFrequencies(evaluate(
      num_frequencies, [&](std::size_t k) { return std::pow(theta, -static_cast<double>(k) / count); }));
}

RopeFrequencies RopeFrequencies::exp_pi(std::size_t num_frequencies) {
  const double count = static_cast<double>(num_frequencies);
  return RopeFrequencies(evaluate(num_frequencies, [&](std::size_t k) {
    return std::exp(-std::numbers::pi * static_cast<double>(k) / count);
  }));
}

RopeFrequencies RopeFrequencies::from_period_range(std::size_t num_frequencies, PeriodRange periods) {
  VIT_CHECK(std::isfinite(periods.longest) && periods.shortest > 0 && periods.shortest <= periods.longest,
            "RopeFrequencies", "periods must be positive, finite and in order, got ", periods.shortest,
            " to ", periods.longest);
  const double ratio = periods.longest / periods.shortest;
  return RopeFrequencies(evaluate(num_frequencies, [&](std::size_t k) {
    return 1.0 / (periods.shortest * std::pow(ratio, progress(k, num_frequencies)));
  }));
}

RopeFrequencies RopeFrequencies::from_periods(std::span<const float> periods) {
  for (std::size_t k = 0; k < periods.size(); ++k) {
    VIT_CHECK(std::isfinite(periods[k]) && periods[k] > 0, "RopeFrequencies", "period ", k, " is ",
              periods[k], ", expected a positive number; damaged file?");
  }
  return RopeFrequencies(
      evaluate(periods.size(), [&](std::size_t k) { return 1.0 / static_cast<double>(periods[k]); }));
}

RopeFrequencies RopeFrequencies::pixel_bands(std::size_t num_frequencies, double max_frequency) {
  const double last = max_frequency / 2.0;
  return RopeFrequencies(evaluate(num_frequencies, [&](std::size_t k) {
    return std::numbers::pi * (1.0 + (last - 1.0) * progress(k, num_frequencies));
  }));
}

RopeFrequencies RopeFrequencies::scaled(double factor) const {
  return RopeFrequencies(evaluate(size(), [&](std::size_t k) { return frequencies_[k] * factor; }));
}

MixedFrequencies::MixedFrequencies(TensorView<const float> frequencies)
    : depth_(frequencies.dim(1)),
      num_heads_(frequencies.dim(2)),
      num_pairs_(frequencies.dim(3)),
      values_(copy_mixed(frequencies)) {}

MixedFrequencies::MixedFrequencies(TensorView<const double> frequencies)
    : depth_(frequencies.dim(1)),
      num_heads_(frequencies.dim(2)),
      num_pairs_(frequencies.dim(3)),
      values_(copy_mixed(frequencies)) {}

std::span<const double> MixedFrequencies::axis(std::size_t axis, std::size_t layer, std::size_t head) const {
  VIT_CHECK(layer < depth_ && head < num_heads_, "MixedFrequencies", "layer ", layer, ", head ", head, " of ",
            depth_, " layers with ", num_heads_, " heads");
  return {values_.data() + ((axis * depth_ + layer) * num_heads_ + head) * num_pairs_, num_pairs_};
}

}  // namespace vit::position
