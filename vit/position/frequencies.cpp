#include "vit/position/frequencies.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/base/moved.h"

namespace vit::position {
namespace {

template <typename Value>
std::vector<double> evaluate(std::size_t num_frequencies, Value&& value_of) {
  constexpr std::size_t kMost = std::size_t{1} << 20;  // far more than any head has channels
  VIT_CHECK(num_frequencies <= kMost, "RopeFrequencies", num_frequencies, " frequencies; at most ", kMost,
            " expected");
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

std::size_t num_volume_frequencies(std::size_t head_dim) {
  const std::size_t count = head_dim / 3 / 2;
  VIT_CHECK(count > 0, "num_volume_frequencies", "heads of ", head_dim,
            " channels, three axes of channel pairs need at least 6");
  return count;
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
  internal::check_not_moved(!values_.empty(), "MixedFrequencies");
  return {values_.data() + ((axis * depth_ + layer) * num_heads_ + head) * num_pairs_, num_pairs_};
}

FrequencyVectors::FrequencyVectors(std::vector<FrequencyVector> vectors)
    : num_angles_(vectors.size()), vectors_(std::move(vectors)) {
  check();
}

FrequencyVectors::FrequencyVectors(std::size_t num_layers, std::size_t num_heads,
                                   std::vector<FrequencyVector> vectors)
    : num_layers_(num_layers), num_heads_(num_heads), vectors_(std::move(vectors)) {
  const std::size_t rows = checked_mul(num_layers, num_heads, "FrequencyVectors");
  VIT_CHECK(rows > 0 && vectors_.size() % rows == 0, "FrequencyVectors", vectors_.size(), " vectors for ",
            num_layers, " layers of ", num_heads, " heads");
  num_angles_ = vectors_.size() / rows;
  check();
}

void FrequencyVectors::check() const {
  VIT_CHECK(num_angles_ > 0, "FrequencyVectors", "at least one angle is needed");
  for (std::size_t i = 0; i < vectors_.size(); ++i) {
    const FrequencyVector& w = vectors_[i];
    VIT_CHECK(std::isfinite(w.x) && std::isfinite(w.y) && std::isfinite(w.t), "FrequencyVectors", "vector ",
              i, " is (", w.x, ", ", w.y, ", ", w.t, "), expected finite numbers");
  }
}

FrequencyVectors FrequencyVectors::axial(const RopeFrequencies& x, const RopeFrequencies& y,
                                         AxisOrder order) {
  check_choice("axial_angles", "order", order, AxisOrder::y_then_x);
  VIT_CHECK(x.size() == y.size(), "axial_angles", x.size(), " frequencies of x and ", y.size(), " of y");
  std::vector<FrequencyVector> of_x, of_y;
  for (const double f : x.values()) of_x.push_back({.x = f});
  for (const double f : y.values()) of_y.push_back({.y = f});
  std::vector<FrequencyVector>& first = order == AxisOrder::x_then_y ? of_x : of_y;
  const std::vector<FrequencyVector>& second = order == AxisOrder::x_then_y ? of_y : of_x;
  first.insert(first.end(), second.begin(), second.end());
  return FrequencyVectors(std::move(first));
}

FrequencyVectors FrequencyVectors::mixed(const MixedFrequencies& frequencies, AxisOrder order) {
  check_choice("FrequencyVectors", "order", order, AxisOrder::y_then_x);
  const bool x_first = order == AxisOrder::x_then_y;
  std::vector<FrequencyVector> vectors;
  for (std::size_t row = 0; row < frequencies.depth() * frequencies.num_heads(); ++row) {
    const std::size_t layer = row / frequencies.num_heads(), head = row % frequencies.num_heads();
    const std::span<const double> first = frequencies.x(layer, head), second = frequencies.y(layer, head);
    for (std::size_t j = 0; j < first.size(); ++j)
      vectors.push_back({.x = x_first ? first[j] : second[j], .y = x_first ? second[j] : first[j]});
  }
  return FrequencyVectors(frequencies.depth(), frequencies.num_heads(), std::move(vectors));
}

FrequencyVectors FrequencyVectors::volume(const RopeFrequencies& frequencies, std::size_t head_dim) {
  const std::size_t per_axis = 2 * frequencies.size();
  VIT_CHECK(3 * per_axis <= head_dim, "FrequencyVectors", frequencies.size(),
            " frequencies of three axes in a head of ", head_dim, " channels");
  std::vector<FrequencyVector> vectors(head_dim);
  for (std::size_t i = 0; i < per_axis; ++i) {
    const double f = frequencies[i % frequencies.size()];
    vectors[i].t = f;
    vectors[per_axis + i].y = f;
    vectors[2 * per_axis + i].x = f;
  }
  return FrequencyVectors(std::move(vectors));
}

FrequencyVectors FrequencyVectors::volume_pairs(const RopeFrequencies& frequencies, std::size_t head_dim) {
  const std::size_t per_axis = frequencies.size();
  VIT_CHECK(6 * per_axis <= head_dim, "FrequencyVectors", per_axis,
            " frequencies of three axes in a head of ", head_dim, " channels");
  std::vector<FrequencyVector> vectors(head_dim / 2);
  for (std::size_t i = 0; i < per_axis; ++i) {
    vectors[i].t = frequencies[i];
    vectors[per_axis + i].y = frequencies[i];
    vectors[2 * per_axis + i].x = frequencies[i];
  }
  return FrequencyVectors(std::move(vectors));
}

std::span<const FrequencyVector> FrequencyVectors::of(std::size_t layer, std::size_t head) const {
  VIT_CHECK(layer < num_layers_ && head < num_heads_, "FrequencyVectors", "layer ", layer, ", head ", head,
            " of ", num_layers_, " layers with ", num_heads_, " heads");
  internal::check_not_moved(!vectors_.empty(), "FrequencyVectors");
  return {vectors_.data() + (layer * num_heads_ + head) * num_angles_, num_angles_};
}

}  // namespace vit::position
