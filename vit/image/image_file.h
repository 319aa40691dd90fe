// The bytes of an image file, for callers that need them in addition to its pixels.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "vit/image/image.h"

namespace vit::internal {

/// The bytes that decode_file() decodes. Throws Error as it does if the first bytes are no image's,
/// or is too large for `options.max_pixels`.
std::vector<std::byte> read_image_file(const std::filesystem::path& path, const DecodeOptions& options);
/// Reads an image file into `bytes`, whose memory is reused. Also throws Error if memory is short.
void read_image_file(const std::filesystem::path& path, const DecodeOptions& options,
                     std::vector<std::byte>& bytes);

/// Opens the libraries of all formats that are opened when a file needs them (vit/base/late_library.h), where
/// they can be: for a process that will be confined, or have others like it.
void open_decoders() noexcept;

/// The bands of an image that is not red, green and blue.
struct Bands {
  Tensor<float> planes;    // (K, H, W), values as stored
  bool are_bytes = false;  // 8 bits, without sign

  ImageSize size() const { return {planes.dim(1), planes.dim(2)}; }
};

/// The bands of a TIFF (chunky or planar, strips or tiles; integers of 8, 16 and 32 bits, floats of 32 and
/// 64) for a model of `num_bands` channels, not 3. Nothing for what decode_bytes() reads as an image of one
/// channel: other formats, colors, and gray of up to 8 bits. Throws Error (mismatch) for a file that has
/// another number of bands, and as decode_bytes() does.
std::optional<Bands> decode_bands(std::span<const std::byte> bytes, const DecodeOptions& options,
                                  const std::string& name, std::size_t num_bands);

}  // namespace vit::internal
