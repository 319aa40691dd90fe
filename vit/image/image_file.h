// The bytes of an image file, for whoever needs them beside its pixels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "vit/image/image.h"

namespace vit::internal {

/// What decode_file() decodes. Throws Error as it does for a path that is no image file by its first bytes,
/// or for a file that is too large for `options.max_pixels`.
std::vector<std::byte> read_image_file(const std::filesystem::path& path, const DecodeOptions& options);
/// Reads an image file into `bytes`, whose memory is used again. Also throws Error if memory is short.
void read_image_file(const std::filesystem::path& path, const DecodeOptions& options,
                     std::vector<std::byte>& bytes);

}  // namespace vit::internal
