#include "apps/vit/rings/dense/truth_maps.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "apps/vit/ground/read_rest.h"
#include "apps/vit/inputs/npy.h"
#include "apps/vit/inputs/png_values.h"
#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit::app {
using namespace internal;
namespace fs = std::filesystem;
namespace {

constexpr Where kWhere{"evaluate", ErrorKind::format};
constexpr std::uint32_t kMostEdge = 1u << 16;

std::string read_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  VIT_CHECK(file.is_open(), kWhere.with(ErrorKind::io), path.string(), ": cannot be opened");
  return read_rest(file, path);
}

Shape checked_shape(std::size_t height, std::size_t width, const fs::path& path) {
  VIT_CHECK(height != 0 && width != 0 && height <= kMostEdge && width <= kMostEdge &&
                checked_mul(height, width, kWhere) <= kMaxImagePixels,
            kWhere, path.string(), ": a map of ", height, " x ", width);
  return {height, width};
}

// ---------------------------------------------------------------------------------------------------------
// .npy and .pfm

Tensor<float> read_npy_map(const fs::path& path, double scale) {
  const Tensor<float> numbers = of_file(path, [&] { return load_npy_floats(path, scale); });
  std::size_t first = 0;  // dimensions of one before height and width
  while (first + 2 < numbers.shape().rank() && numbers.dim(first) == 1) ++first;
  VIT_CHECK(numbers.shape().rank() == first + 2, kWhere, path.string(), ": a map has the shape (H, W)");
  Tensor<float> out(checked_shape(numbers.dim(first), numbers.dim(first + 1), path));
  std::ranges::copy(numbers.flat(), out.data());
  return out;
}

/// "Pf", width and height, the factor, which is negative for little-endian, rows from the bottom.
Tensor<float> read_pfm_map(const fs::path& path) {
  const std::string bytes = read_file(path);
  std::string_view rest = bytes;
  std::array<std::string_view, 4> words{};
  for (std::string_view& word : words) {
    const std::size_t end = rest.find_first_of(" \n\r\t");
    VIT_CHECK(end != std::string_view::npos && end != 0 && end < 32, kWhere, path.string(), ": no .pfm file");
    word = rest.substr(0, end);
    rest.remove_prefix(end + 1);
  }
  const auto number = [&](std::string_view word) {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    VIT_CHECK(error == std::errc() && end == word.data() + word.size(), kWhere, path.string(),
              ": no .pfm file of sizes that can be read");
    return value;
  };
  VIT_CHECK(words[0] == "Pf" && words[3].starts_with('-'), kWhere, path.string(),
            ": a .pfm file of one channel, little-endian, is expected");
  Tensor<float> out(checked_shape(number(words[2]), number(words[1]), path));
  VIT_CHECK(rest.size() == out.num_elements() * sizeof(float), kWhere, path.string(),
            ": has another length than its header says");
  const std::size_t row_bytes = out.dim(1) * sizeof(float);
  for (std::size_t y = 0; y < out.dim(0); ++y)
    std::memcpy(out.view().row(out.dim(0) - 1 - y), rest.data() + y * row_bytes, row_bytes);
  return out;
}

}  // namespace

fs::path find_truth_map(const fs::path& folder, const fs::path& name, std::span<const char* const> endings) {
  std::error_code error;
  std::string tried;
  for (const char* const ending : endings) {
    fs::path path = folder / (name.string() + ending);
    if (fs::is_regular_file(path, error)) return path;
    tried += (tried.empty() ? "" : ", ") + std::string(ending);
  }
  fail(kWhere.with(ErrorKind::io), (folder / name).string(), ": no map of this name with the ending ", tried);
}

void check_map_size(const Shape& map, ImageSize image, const fs::path& path) {
  VIT_CHECK(map[0] == image.height && map[1] == image.width, kWhere.with(ErrorKind::mismatch), path.string(),
            ": a map of ", map[1], " x ", map[0], " pixels for an image of ", image.width, " x ",
            image.height);
}

Tensor<std::int32_t> read_label_map(const fs::path& path) {
  return read_png_values(path, kWhere).values;
}

Tensor<std::int32_t> read_class_map(const fs::path& path) {
  PngValues png = read_png_values(path, kWhere);
  if (png.channels == 1) return std::move(png.values);
  constexpr std::int32_t kGray = 1 + 256 + 65536;  // of three equal bytes
  for (std::int32_t& value : png.values.flat()) {
    VIT_CHECK(
        value % kGray == 0, kWhere.with(ErrorKind::mismatch), path.string(),
        ": is an RGB picture of colors; class indices are expected, in a gray or palette PNG (0 = the first "
        "class)");
    value /= kGray;
  }
  return std::move(png.values);
}

Tensor<float> read_depth_map(const fs::path& path, double scale) {
  const std::string extension = path.extension().string();
  if (extension == ".npy") return read_npy_map(path, scale);
  if (extension == ".pfm") return read_pfm_map(path);
  const PngValues png = read_png_values(path, kWhere);
  VIT_CHECK(png.bits == 16, kWhere, path.string(), ": depths of ", png.bits,
            " bits; a PNG of 16 is expected");
  Tensor<float> out(png.values.shape());
  std::ranges::transform(png.values.flat(), out.data(), [scale](std::int32_t value) {
    return static_cast<float>(static_cast<double>(value) / scale);
  });
  return out;
}

}  // namespace vit::app
