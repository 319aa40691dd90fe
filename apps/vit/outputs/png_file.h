// RGB images to PNG files.
#pragma once

#include <filesystem>

#include "vit/image/image.h"

namespace vit::app {

/// Writes the image. Throws Error that names the file.
void write_png(const std::filesystem::path& path, const Image& image);

}  // namespace vit::app
