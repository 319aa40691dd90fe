#include "vit/towers/outlier_channels.h"

#include <doctest/doctest.h>

#include <vector>

namespace vit::internal {
namespace {

std::vector<float> gammas(std::size_t channels,
                          std::initializer_list<std::pair<std::uint32_t, float>> large) {
  std::vector<float> gamma(channels, 1.0f);
  for (const auto& [channel, value] : large) gamma[channel] = value;
  return gamma;
}

TEST_CASE("towers: outlier channels are the few that most of the rounding error of a norm comes from") {
  const auto found = [](const std::vector<float>& gamma) { return outlier_channels(gamma, {}); };
  using Channels = std::vector<std::uint32_t>;
  CHECK(found(gammas(384, {})) == Channels{});
  CHECK(found(gammas(384, {{199, 1.5f}})) == Channels{});
  CHECK(found(gammas(384, {{199, 4.0f}})) == Channels{199});
  CHECK(found(gammas(384, {{199, -4.0f}})) == Channels{199});
  // Of two groups, both need to lose theirs.
  CHECK(found(gammas(384, {{300, 3.0f}, {7, 3.1f}})) == Channels{7, 300});
  CHECK(found(gammas(192, {{1, 3.0f}, {2, 3.0f}, {3, 3.0f}, {4, 3.0f}})) == Channels{1, 2, 3, 4});
  CHECK(found(gammas(192, {{1, 3.0f}, {2, 3.0f}, {3, 3.0f}, {4, 3.0f}, {5, 3.0f}})) == Channels{});
  CHECK(found({}) == Channels{});
  // A lone channel would leave nothing to round.
  CHECK(found({1.0f}) == Channels{0});
}

TEST_CASE("towers: beta counts for the range of a channel") {
  std::vector<float> beta(192, 0.5f);
  beta[40] = -20.0f;
  CHECK(outlier_channels(gammas(192, {}), beta) == std::vector<std::uint32_t>{40});
}

}  // namespace
}  // namespace vit::internal
