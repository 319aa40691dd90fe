#include "apps/vit/outputs/map_files.h"

#include <png.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <csetjmp>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "apps/vit/inputs/npy.h"
#include "vit/base/check.h"
#include "vit/io/atomic_file.h"

namespace vit::app {
namespace {

constexpr Where kWhere{"write", ErrorKind::io};
static_assert(std::endian::native == std::endian::little);

void write_whole(const std::filesystem::path& path, std::string_view head, std::span<const std::byte> body) {
  internal::AtomicFile file(path, kWhere);
  file.write(std::as_bytes(std::span(head)));
  file.write(body);
  file.commit();
}

/// The output of libpng, and its error jump target.
struct PngTarget {
  std::vector<std::byte> bytes{};
  std::string message{};
  std::jmp_buf on_error;
};

void append_png(png_structp png, png_bytep data, std::size_t count) {
  auto& target = *static_cast<PngTarget*>(png_get_io_ptr(png));
  const auto* const from = reinterpret_cast<const std::byte*>(data);
  target.bytes.insert(target.bytes.end(), from, from + count);
}

[[noreturn]] void fail_png(png_structp png, png_const_charp message) {
  auto& target = *static_cast<PngTarget*>(png_get_error_ptr(png));
  target.message = message;
  std::longjmp(target.on_error, 1);
}

struct PngStructs {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngStructs() { png_destroy_write_struct(&png, &info); }
};

struct PngPixels {
  std::size_t height, width;
  int bits;                         // of a pixel
  std::span<const Color> colors;    // of a palette; none = gray
  std::span<const std::byte> rows;  // most significant byte first
};

/// All objects with destructors are created before libpng may jump.
std::vector<std::byte> encode_png_pixels(const PngPixels& pixels) {
  PngTarget target;
  std::vector<png_color> palette;
  for (const Color& color : pixels.colors) palette.push_back({color[0], color[1], color[2]});
  PngStructs structs{.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &target, fail_png, nullptr)};
  structs.info = structs.png != nullptr ? png_create_info_struct(structs.png) : nullptr;
  VIT_CHECK(structs.info != nullptr, kWhere, "libpng cannot be initialized");
  const std::size_t row_bytes = pixels.width * static_cast<std::size_t>(pixels.bits) / 8;
  if (setjmp(target.on_error) != 0) fail(kWhere, "the PNG could not be made: ", target.message);
  png_set_write_fn(structs.png, &target, append_png, nullptr);
  png_set_IHDR(structs.png, structs.info, static_cast<png_uint_32>(pixels.width),
               static_cast<png_uint_32>(pixels.height), pixels.bits,
               palette.empty() ? PNG_COLOR_TYPE_GRAY : PNG_COLOR_TYPE_PALETTE, PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  png_set_compression_level(structs.png,
                            3);  // a third of the time of level 6 at the cost of a few percent in size
  if (!palette.empty())
    png_set_PLTE(structs.png, structs.info, palette.data(), static_cast<int>(palette.size()));
  png_write_info(structs.png, structs.info);
  for (std::size_t y = 0; y < pixels.height; ++y)
    png_write_row(structs.png, reinterpret_cast<png_const_bytep>(pixels.rows.data() + y * row_bytes));
  png_write_end(structs.png, structs.info);
  return std::move(target.bytes);
}

}  // namespace

std::vector<std::byte> encode_gray_png(TensorView<const std::uint16_t> values, int bits) {
  std::vector<std::byte> rows;
  rows.reserve(values.num_elements() * static_cast<std::size_t>(bits) / 8);
  for (const std::uint16_t value : values.flat()) {
    if (bits == 16) rows.push_back(static_cast<std::byte>(value >> 8));
    rows.push_back(static_cast<std::byte>(value & 255));
  }
  return encode_png_pixels({values.dim(0), values.dim(1), bits, {}, rows});
}

std::vector<std::byte> encode_palette_png(TensorView<const std::uint8_t> indices,
                                          std::span<const Color> palette) {
  return encode_png_pixels({indices.dim(0), indices.dim(1), 8, palette, std::as_bytes(indices.flat())});
}

void write_gray_png(const std::filesystem::path& path, TensorView<const std::uint16_t> values, int bits) {
  write_whole(path, "", encode_gray_png(values, bits));
}

void write_palette_png(const std::filesystem::path& path, TensorView<const std::uint8_t> indices,
                       std::span<const Color> palette) {
  write_whole(path, "", encode_palette_png(indices, palette));
}

void write_bytes(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  write_whole(path, "", bytes);
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  write_whole(path, text, {});
}

void write_pfm(const std::filesystem::path& path, TensorView<const float> values) {
  const std::size_t height = values.dim(0), width = values.dim(1);
  std::vector<float> upside_down;
  upside_down.reserve(height * width);
  for (std::size_t y = height; y-- > 0;)
    upside_down.insert(upside_down.end(), values.row(y), values.row(y) + width);
  write_whole(path, text("Pf\n", width, " ", height, "\n-1.0\n"), std::as_bytes(std::span(upside_down)));
}

void write_npy(const std::filesystem::path& path, TensorView<const float> values) {
  std::vector<std::size_t> shape;
  for (std::size_t i = 0; i < values.rank(); ++i) shape.push_back(values.dim(i));
  write_whole(path, npy_header("<f4", shape), std::as_bytes(values.flat()));
}

void write_ply(const std::filesystem::path& path, TensorView<const float> depth, const Image& image,
               double focal) {
  const std::size_t height = depth.dim(0), width = depth.dim(1);
  const bool has_colors = image.height() == height && image.width() == width;
  std::vector<std::byte> points;
  std::size_t count = 0;
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      const float z = depth.row(y)[x];
      if (!(z > 0.0f)) continue;
      const double middle_x = static_cast<double>(width) / 2.0, middle_y = static_cast<double>(height) / 2.0;
      const float point[3] = {static_cast<float>((static_cast<double>(x) - middle_x) / focal * z),
                              static_cast<float>((static_cast<double>(y) - middle_y) / focal * z), z};
      const auto* const bytes = reinterpret_cast<const std::byte*>(point);
      points.insert(points.end(), bytes, bytes + sizeof point);
      if (has_colors) {
        const auto* const color = reinterpret_cast<const std::byte*>(image.row(y) + 3 * x);
        points.insert(points.end(), color, color + 3);
      }
      ++count;
    }
  }
  std::string head = text("ply\nformat binary_little_endian 1.0\nelement vertex ", count,
                          "\nproperty float x\nproperty float y\nproperty float z\n");
  if (has_colors) head += "property uchar red\nproperty uchar green\nproperty uchar blue\n";
  write_whole(path, head + "end_header\n", points);
}

Tensor<std::uint16_t> to_units(TensorView<const float> depth, double units_per_meter) {
  constexpr double kMost = 65535.0;
  return to_full_range(depth, 0.0f, static_cast<float>(kMost / units_per_meter), kMost);
}

Tensor<std::uint16_t> to_full_range(TensorView<const float> depth, float lowest, float highest,
                                    double largest) {
  Tensor<std::uint16_t> out(depth.shape());
  const double range = static_cast<double>(highest) - lowest;
  for (std::size_t i = 0; i < out.num_elements(); ++i) {
    const double t = range > 0.0 ? (static_cast<double>(depth.data()[i]) - lowest) / range : 0.0;
    out.data()[i] = static_cast<std::uint16_t>(std::lround(std::clamp(t, 0.0, 1.0) * largest));
  }
  return out;
}

Image colored_ids(TensorView<const std::int32_t> ids, std::span<const Color> palette, const Image* under) {
  Image out(ids.dim(0), ids.dim(1));
  for (std::size_t i = 0; i < ids.num_elements(); ++i) {
    const std::int32_t id = ids.data()[i];
    const Color color = id < 0 ? Color{} : palette[static_cast<std::size_t>(id) % palette.size()];
    for (std::size_t c = 0; c < 3; ++c) {
      const unsigned over = under != nullptr ? (color[c] + under->data()[3 * i + c] + 1u) / 2u : color[c];
      out.data()[3 * i + c] = static_cast<unsigned char>(over);
    }
  }
  return out;
}

Image side_by_side(const Image& left, const Image& right) {
  constexpr std::size_t kGap = 16;
  Image out(left.height(), left.width() + kGap + right.width());
  std::fill_n(out.data(), 3 * out.height() * out.width(), static_cast<unsigned char>(255));
  for (std::size_t y = 0; y < out.height(); ++y) {
    std::copy_n(left.row(y), 3 * left.width(), out.row(y));
    std::copy_n(right.row(y), 3 * right.width(), out.row(y) + 3 * (left.width() + kGap));
  }
  return out;
}

Image colored(TensorView<const float> values, float lowest, float highest, const ColorMap& colors) {
  Image out(values.dim(0), values.dim(1));
  const float range = highest - lowest;
  for (std::size_t y = 0; y < out.height(); ++y) {
    for (std::size_t x = 0; x < out.width(); ++x) {
      const float t = range > 0.0f ? (values.row(y)[x] - lowest) / range * 255.0f : 0.0f;
      const Color color = colors[static_cast<std::size_t>(std::clamp(t, 0.0f, 255.0f))];
      std::copy_n(color.data(), 3, out.row(y) + 3 * x);
    }
  }
  return out;
}

}  // namespace vit::app
