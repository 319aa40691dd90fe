#include "vit/towers/outlier_channels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "vit/kernels/int8.h"

namespace vit::internal {
namespace {

constexpr std::size_t kMost = 4;
constexpr double kLeft = 0.4;  // of the squared error

/// In proportion to the squared rounding error.
double expected_error(std::span<const double> ranges) {
  double error = 0.0;
  for (std::size_t first = 0; first < ranges.size(); first += kernels::kInt8Group) {
    const auto group = ranges.subspan(first, std::min(kernels::kInt8Group, ranges.size() - first));
    const double largest = std::ranges::max(group);
    error += static_cast<double>(group.size()) * largest * largest;
  }
  return error;
}

}  // namespace

std::vector<std::uint32_t> outlier_channels(std::span<const float> gamma, std::span<const float> beta) {
  std::vector<double> ranges(gamma.size());
  for (std::size_t c = 0; c < gamma.size(); ++c)
    ranges[c] = 3.0 * std::fabs(double{gamma[c]}) + (beta.empty() ? 0.0 : std::fabs(double{beta[c]}));
  const double enough = kLeft * expected_error(ranges);
  std::vector<std::uint32_t> channels;
  while (channels.size() < std::min(kMost, ranges.size())) {
    const auto largest = std::ranges::max_element(ranges);
    channels.push_back(static_cast<std::uint32_t>(largest - ranges.begin()));
    *largest = 0.0;
    if (expected_error(ranges) > enough) continue;
    std::ranges::sort(channels);
    return channels;
  }
  return {};
}

}  // namespace vit::internal
