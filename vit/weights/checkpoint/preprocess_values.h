// Values that the preprocessing of several libraries shares, with their limits.
#pragma once

#include <vector>

#include "vit/io/json.h"
#include "vit/weights/architectures/pixel_statistics.h"
#include "vit/weights/families/source_files.h"

namespace vit::internal {

constexpr SizeRange kPatchesRange{1, std::size_t{1} << 20};

/// Whether one number may be given for all three channels.
enum class ScalarForm { refused, allowed };

/// A number for each channel, R, G, B of most; every one between -1e6 and 1e6.
std::vector<double> read_mean(const Json& value, ScalarForm scalar);
/// A number for each channel; every one between 1e-6 and 1e6.
std::vector<double> read_std(const Json& value, ScalarForm scalar);

/// Throws Error naming the key if `mean` and `std`, read of `object` or defaults, are not of the same
/// channels.
void check_channels(const Json& object, const char* mean_key, const std::vector<double>& mean,
                    const char* std_key, const std::vector<double>& std);

}  // namespace vit::internal
