// Maps of numbers as files: PNG of 8 and 16 bits, PFM, .npy, point clouds as PLY. Each is written
// atomically; encode_...() gives the bytes of a file. Letters: H, W = height and width.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "apps/vit/outputs/color_maps.h"
#include "vit/base/tensor.h"
#include "vit/image/image.h"

namespace vit::app {

/// A map of integers (H, W), stored with the given number of bits.
std::vector<std::byte> encode_gray_png(TensorView<const std::uint16_t> values, int bits);
void write_gray_png(const std::filesystem::path& path, TensorView<const std::uint16_t> values, int bits);
/// A map of indices (H, W), below the number of colors.
std::vector<std::byte> encode_palette_png(TensorView<const std::uint8_t> indices,
                                          std::span<const Color> palette);
void write_palette_png(const std::filesystem::path& path, TensorView<const std::uint8_t> indices,
                       std::span<const Color> palette);
/// Float32 (H, W): little-endian, rows from the bottom.
void write_pfm(const std::filesystem::path& path, TensorView<const float> values);
/// Float32 of any shape without gaps.
void write_npy(const std::filesystem::path& path, TensorView<const float> values);
/// A file of bytes or of text.
void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_text(const std::filesystem::path& path, std::string_view text);
/// A point for each pixel of depth (H, W) > 0 in metres: x right, y down, z = depth, of a camera whose focal
/// length is `focal` pixels and whose axis goes through the middle. `image` gives the colors; of another size
/// than the depth: none.
void write_ply(const std::filesystem::path& path, TensorView<const float> depth, const Image& image,
               double focal);

/// Meters in units, at most 65535; or lowest .. highest as 0 .. 65535.
Tensor<std::uint16_t> to_units(TensorView<const float> depth, double units_per_meter);
Tensor<std::uint16_t> to_full_range(TensorView<const float> depth, float lowest, float highest,
                                    double largest);

/// The colors of ids (H, W), repeated if there are more ids than colors, and black for those below 0; half
/// transparent over `under` unless that is null.
Image colored_ids(TensorView<const std::int32_t> ids, std::span<const Color> palette,
                  const Image* under = nullptr);
/// Two pictures of one height, white columns between them.
Image side_by_side(const Image& left, const Image& right);

/// The colors of lowest .. highest, with values truncated to bytes as is usual with matplotlib.
Image colored(TensorView<const float> values, float lowest, float highest, const ColorMap& colors);

}  // namespace vit::app
