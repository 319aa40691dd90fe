// Means and standard deviations of pixels of published models; R, G, B.
#pragma once

#include <array>
#include <vector>

namespace vit::internal {

/// In the form of PreprocessConfig.
inline std::vector<double> to_vector(const std::array<double, 3>& values) {
  return {values.begin(), values.end()};
}

inline constexpr std::array<double, 3> kImageNetMean{0.485, 0.456, 0.406};
inline constexpr std::array<double, 3> kImageNetStd{0.229, 0.224, 0.225};
inline constexpr std::array<double, 3> kClipMean{0.48145466, 0.4578275, 0.40821073};
inline constexpr std::array<double, 3> kClipStd{0.26862954, 0.26130258, 0.27577711};
inline constexpr std::array<double, 3> kCanopyMean{0.420, 0.411, 0.296}, kCanopyStd{0.213, 0.156, 0.143};
inline constexpr std::array<double, 3> kHalf{0.5, 0.5, 0.5};
inline constexpr std::array<double, 3> kZero{0.0, 0.0, 0.0}, kOne{1.0, 1.0, 1.0};  // no normalization

}  // namespace vit::internal
