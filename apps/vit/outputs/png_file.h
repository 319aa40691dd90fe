// RGB images to PNG files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "vit/image/image.h"

namespace vit::app {

/// The bytes of such a file.
std::vector<std::byte> encode_png(const Image& image);
/// Writes the image. Throws Error that names the file.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace vit::app
