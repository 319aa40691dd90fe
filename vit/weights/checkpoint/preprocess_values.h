// Values that the preprocessing of several libraries shares, with their limits.
#pragma once

#include <array>

#include "vit/io/json.h"
#include "vit/weights/architectures/pixel_statistics.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {

constexpr SizeRange kPatchesRange{1, std::size_t{1} << 20};

/// Whether one number may stand for all three channels.
enum class ScalarForm { refused, allowed };

/// R, G, B; every number between -1e6 and 1e6.
std::array<double, 3> read_mean(const Json& value, ScalarForm scalar);
/// R, G, B; every number between 1e-6 and 1e6.
std::array<double, 3> read_std(const Json& value, ScalarForm scalar);

}  // namespace vit::internal
