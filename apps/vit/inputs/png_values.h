// The numbers of a PNG as stored: indices of a palette, gray values, colors. Letters: H, W = height and
// width.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/tensor.h"

namespace vit::app {

struct PngValues {
  Tensor<std::int32_t> values;  // (H, W): gray values or indices; of colors r + 256 g + 65536 b
  Tensor<std::uint8_t> alpha;   // (H, W), of 8 bits; empty if the file has no alpha channel
  int bits = 0;                 // of a channel
  std::size_t channels = 1;     // without alpha: 1 or 3
  std::vector<std::array<std::uint8_t, 3>> palette{};  // red, green, blue; empty if it has none
};

/// Throws Error of `where` that names the file and what is wrong, for colors of 16 bits, too.
PngValues read_png_values(const std::filesystem::path& path, const Where& where);

}  // namespace vit::app
