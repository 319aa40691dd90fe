// Values that the preprocessing of several libraries shares, with their limits.
#pragma once

#include <array>

#include "vit/weights/files/json.h"

namespace vit::internal {

constexpr SizeRange kEdgeRange{1, 32768};

// Means and deviations that models are published with; R, G, B.
inline constexpr std::array<double, 3> kImageNetMean{0.485, 0.456, 0.406};
inline constexpr std::array<double, 3> kImageNetStd{0.229, 0.224, 0.225};
inline constexpr std::array<double, 3> kClipMean{0.48145466, 0.4578275, 0.40821073};
inline constexpr std::array<double, 3> kClipStd{0.26862954, 0.26130258, 0.27577711};
inline constexpr std::array<double, 3> kHalf{0.5, 0.5, 0.5};

/// Whether one number may stand for all three channels.
enum class ScalarForm { refused, allowed };

/// R, G, B; every number between -1e6 and 1e6.
std::array<double, 3> read_mean(const Json& value, ScalarForm scalar);
/// R, G, B; every number between 1e-6 and 1e6.
std::array<double, 3> read_std(const Json& value, ScalarForm scalar);

}  // namespace vit::internal
