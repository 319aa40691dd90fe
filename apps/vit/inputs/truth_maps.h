// Maps that results are compared with: depths and classes of every pixel, as data sets store them. Letters:
// H, W = height and width.
#pragma once

#include <cstdint>
#include <filesystem>

#include "vit/base/tensor.h"

namespace vit::app {

/// The numbers of a PNG of one channel as stored, or the indices of a palette (H, W); of one with red, green
/// and blue r + 256 g + 65536 b. Throws Error that names the file and what is wrong.
Tensor<std::int32_t> read_label_map(const std::filesystem::path& path);

/// Depths (H, W): a .npy file of float32, float64, or unsigned 16 bits, a .pfm file, or a PNG of 16 bits,
/// whose values are divided by `scale`, as those of 16 bits are. Throws Error that names the file and what is
/// wrong.
Tensor<float> read_depth_map(const std::filesystem::path& path, double scale);

}  // namespace vit::app
