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

template <typename Number>
void copy_numbers(std::string_view bytes, double scale, std::span<float> to) {
  for (std::size_t i = 0; i < to.size(); ++i) {
    Number value;
    std::memcpy(&value, bytes.data() + i * sizeof(Number), sizeof(Number));
    to[i] = static_cast<float>(static_cast<double>(value) / scale);
  }
}

Tensor<float> read_npy_map(const fs::path& path, double scale) {
  const std::string bytes = read_file(path);
  const auto wrong = [&](const char* what) { fail(kWhere, path.string(), ": ", what); };
  constexpr std::string_view kMagic = "\x93NUMPY";
  if (bytes.size() < 12 || !bytes.starts_with(kMagic)) wrong("no .npy file");
  const auto byte = [&](std::size_t i) {
    return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i]));
  };
  const bool is_long = byte(6) > 1;
  const std::size_t begin = is_long ? 12 : 10;
  const std::size_t length =
      is_long ? byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24 : byte(8) | byte(9) << 8;
  if (length > bytes.size() - begin) wrong("its header ends beyond the file");
  const NpyHeader header = parse_npy_header(std::string_view(bytes).substr(begin, length));
  std::vector<std::size_t> shape = header.shape;
  while (shape.size() > 2 && shape.front() == 1) shape.erase(shape.begin());
  if (header.fortran_order || shape.size() != 2) wrong("a map has the shape (H, W), in C order");
  Tensor<float> out(checked_shape(shape[0], shape[1], path));
  const std::string_view numbers = std::string_view(bytes).substr(begin + length);
  const std::size_t size = header.descr == "<f8"   ? 8
                           : header.descr == "<f4" ? 4
                           : header.descr == "<u2" ? 2
                                                   : 0;
  if (size == 0) wrong("numbers must be float32, float64 or unsigned 16 bits, little-endian");
  if (numbers.size() != size * out.num_elements()) wrong("has another length than its header says");
  if (size == 8) copy_numbers<double>(numbers, 1.0, out.flat());
  if (size == 4) copy_numbers<float>(numbers, 1.0, out.flat());
  if (size == 2) copy_numbers<std::uint16_t>(numbers, scale, out.flat());
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
