// Which channels of a norm are outliers: so much larger than the others that int8 leaves their products in
// float32.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace vit::internal {

/// The fewest channels, at most four, without which the squared rounding error to expect of a norm's outputs
/// in int8 falls to 0.4 of what it is with them; ascending, empty if there are none. gamma (C), beta (C) or
/// empty: normalized numbers have variance 1 and seldom exceed 3, so channel c is within 3 |gamma_c| +
/// |beta_c|, and the largest range of a group of channels sets its step. Norms of self-supervised models have
/// such channels (DINOv2 ViT-S: one in its first MLP, four in its sixth).
std::vector<std::uint32_t> outlier_channels(std::span<const float> gamma, std::span<const float> beta);

}  // namespace vit::internal
