#include "vit/image/resample.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "vit/base/checked.h"
#include "vit/base/interpolation.h"

namespace vit::internal {
namespace {

/// Weights of the inputs of each output.
template <typename Number>
struct Taps {
  struct Tap {
    std::size_t input;
    Number weight;
  };
  std::vector<std::vector<Tap>> outputs;
};

/// Shares of the cells covered by an output; a share below a thousandth is ignored.
Taps<float> area_taps(std::size_t in, std::size_t out) {
  constexpr double kLeast = 1e-3;
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  Taps<float> taps;
  for (std::size_t i = 0; i < out; ++i) {
    const double begin = static_cast<double>(i) * scale, end = begin + scale;
    const double width = std::min(scale, static_cast<double>(in) - begin);
    const auto last = std::min(static_cast<std::size_t>(std::floor(end)), in - 1);
    const auto first = std::min(static_cast<std::size_t>(std::ceil(begin)), last);
    auto& row = taps.outputs.emplace_back();
    const double before = static_cast<double>(first) - begin, after = end - static_cast<double>(last);
    if (before > kLeast) row.push_back({first - 1, static_cast<float>(before / width)});
    for (std::size_t k = first; k < last; ++k) row.push_back({k, static_cast<float>(1.0 / width)});
    if (after > kLeast)
      row.push_back({last, static_cast<float>(std::min(std::min(after, 1.0), width) / width)});
  }
  return taps;
}

/// a = -0.75; the border is repeated beyond the image.
Taps<double> cubic_taps(std::size_t in, std::size_t out) {
  const double scale = static_cast<double>(in) / static_cast<double>(out);
  Taps<double> taps;
  for (std::size_t i = 0; i < out; ++i) {
    const double at = (static_cast<double>(i) + 0.5) * scale - 0.5;
    auto& row = taps.outputs.emplace_back();
    for (int k = -1; k <= 2; ++k) {
      const double place = std::floor(at) + k, d = std::abs(at - place);
      const double weight = d <= 1.0 ? cubic_near(d) : cubic_far(d);
      row.push_back({static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(in - 1))), weight});
    }
  }
  return taps;
}

/// The nearest integer, ties to even. Sums in double count as ties if they miss them only by rounding.
float to_integer(float value) {
  return std::nearbyint(value);
}
double to_integer(double value) {
  constexpr double kSteps = 16777216.0;
  return std::nearbyint(std::nearbyint(value * kSteps) / kSteps);
}

/// Rows are first resized to the width of the result, then summed.
template <typename Number>
void resize_by(const PixelRows& in, const Taps<Number>& rows, const Taps<Number>& columns,
               std::uint8_t* out) {
  const std::size_t width = columns.outputs.size(), values = checked_mul(width, 3, "resize");
  std::vector<Number> line(values), sum(values);
  for (std::size_t y = 0; y < rows.outputs.size(); ++y) {
    std::ranges::fill(sum, Number(0));
    for (const auto& row : rows.outputs[y]) {
      for (std::size_t x = 0; x < width; ++x) {
        Number color[3]{};
        for (const auto& tap : columns.outputs[x]) {
          const std::uint8_t* const pixel = in.at(row.input, tap.input);
          for (std::size_t c = 0; c < 3; ++c) color[c] += static_cast<Number>(pixel[c]) * tap.weight;
        }
        std::copy_n(color, 3, line.data() + 3 * x);
      }
      for (std::size_t i = 0; i < values; ++i) sum[i] += line[i] * row.weight;
    }
    for (std::size_t i = 0; i < values; ++i)
      out[y * values + i] = static_cast<std::uint8_t>(std::clamp(to_integer(sum[i]), Number(0), Number(255)));
  }
}

}  // namespace

void resize_opencv(const PixelRows& in, ImageSize target, std::uint8_t* out) {
  if (target.height > in.height || target.width > in.width)
    return resize_by(in, cubic_taps(in.height, target.height), cubic_taps(in.width, target.width), out);
  resize_by(in, area_taps(in.height, target.height), area_taps(in.width, target.width), out);
}

}  // namespace vit::internal
