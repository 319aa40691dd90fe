// Maps that results are compared with: depths and classes of every pixel, as data sets store them. Letters:
// H, W = height and width.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>

#include "vit/base/tensor.h"
#include "vit/image/image.h"

namespace vit::app {

/// The map of an image: the file of `folder` with the image's name and one of the endings, the first that
/// there is. Throws Error if there is none.
std::filesystem::path find_truth_map(const std::filesystem::path& folder, const std::filesystem::path& name,
                                     std::span<const char* const> endings);

/// Throws Error unless a map (H, W) has the size of its image.
void check_map_size(const Shape& map, ImageSize image, const std::filesystem::path& path);

/// The numbers of a PNG of one channel as stored, or the indices of a palette (H, W); of one with red, green
/// and blue r + 256 g + 65536 b. Throws Error that names the file and what is wrong.
Tensor<std::int32_t> read_label_map(const std::filesystem::path& path);
/// The classes (H, W) of a PNG of one channel or a palette; of three channels if they are equal. Throws Error
/// for a picture in colors, which are no indices.
Tensor<std::int32_t> read_class_map(const std::filesystem::path& path);

/// Depths (H, W): a .npy file of float32, float64, or unsigned 16 bits, a .pfm file, or a PNG of 16 bits,
/// whose values are divided by `scale`, as those of 16 bits are. Throws Error that names the file and what is
/// wrong.
Tensor<float> read_depth_map(const std::filesystem::path& path, double scale);

}  // namespace vit::app
