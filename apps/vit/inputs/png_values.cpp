#include "apps/vit/inputs/png_values.h"

#include <png.h>

#include <csetjmp>
#include <cstring>
#include <fstream>
#include <string>
#include <string_view>

#include "apps/vit/ground/read_rest.h"
#include "vit/base/checked.h"
#include "vit/image/image.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr std::uint32_t kMostPngEdge = 1u << 16;

struct PngSource {
  std::string_view rest;
  std::string message{};
  std::jmp_buf on_error;
};

void read_png(png_structp png, png_bytep to, std::size_t count) {
  auto& source = *static_cast<PngSource*>(png_get_io_ptr(png));
  if (count > source.rest.size()) png_error(png, "the file ends too early");
  std::memcpy(to, source.rest.data(), count);
  source.rest.remove_prefix(count);
}

[[noreturn]] void fail_png(png_structp png, png_const_charp message) {
  auto& source = *static_cast<PngSource*>(png_get_error_ptr(png));
  source.message = message;
  std::longjmp(source.on_error, 1);
}
void ignore_png(png_structp, png_const_charp) {}

struct PngReader {
  png_structp png = nullptr;
  png_infop info = nullptr;
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
};

/// What a PNG holds, row by row.
struct PngRows {
  int bits = 0;              // of a channel
  std::size_t channels = 1;  // with alpha
  std::size_t height = 0, width = 0;
  std::vector<png_byte> data;
  std::vector<png_bytep> rows;
  std::vector<std::array<std::uint8_t, 3>> palette;
};

void take_palette(const PngReader& reader, PngRows& out) {
  png_colorp colors = nullptr;
  int count = 0;
  if (png_get_PLTE(reader.png, reader.info, &colors, &count) == 0 || out.channels != 1) return;
  for (int i = 0; i < count; ++i) out.palette.push_back({colors[i].red, colors[i].green, colors[i].blue});
}

/// Everything with a destructor is made before libpng may jump.
void read_rows(const std::filesystem::path& path, const Where& where, PngRows& out) {
  std::ifstream file(path, std::ios::binary);
  VIT_CHECK(file.is_open(), where.with(ErrorKind::io), path.string(), ": cannot be opened");
  const std::string bytes = read_rest(file, path);
  PngSource source{.rest = bytes, .on_error = {}};
  PngReader reader{.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &source, fail_png, ignore_png)};
  reader.info = reader.png != nullptr ? png_create_info_struct(reader.png) : nullptr;
  VIT_CHECK(reader.info != nullptr, where, path.string(), ": libpng does not start");
  if (setjmp(source.on_error) != 0) fail(where, path.string(), ": no readable PNG: ", source.message);
  png_set_read_fn(reader.png, &source, read_png);
  png_set_user_limits(reader.png, kMostPngEdge, kMostPngEdge);
  png_read_info(reader.png, reader.info);
  png_set_packing(reader.png);
  png_set_interlace_handling(reader.png);
  out.bits = png_get_bit_depth(reader.png, reader.info);
  png_read_update_info(reader.png, reader.info);
  out.height = png_get_image_height(reader.png, reader.info);
  out.width = png_get_image_width(reader.png, reader.info);
  out.channels = png_get_channels(reader.png, reader.info);
  const std::size_t row_bytes = png_get_rowbytes(reader.png, reader.info);
  VIT_CHECK(out.channels == 1 || out.bits <= 8, where, path.string(), ": a PNG of ", out.channels,
            " channels of ", out.bits,
            " bits is no map of numbers; one channel, a palette, or channels of 8 bits are");
  VIT_CHECK(checked_mul(out.height, out.width, where) <= kMaxImagePixels, where, path.string(), ": a map of ",
            out.height, " x ", out.width);
  take_palette(reader, out);
  out.data.resize(checked_mul(out.height, row_bytes, where));
  for (std::size_t y = 0; y < out.height; ++y) out.rows.push_back(out.data.data() + y * row_bytes);
  png_read_image(reader.png, out.rows.data());
  png_read_end(reader.png, nullptr);
}

}  // namespace

PngValues read_png_values(const std::filesystem::path& path, const Where& where) {
  PngRows png;
  read_rows(path, where, png);
  const bool has_alpha = png.channels % 2 == 0;
  PngValues out{.values = Tensor<std::int32_t>(Shape{png.height, png.width}),
                .alpha = {},
                .bits = png.bits,
                .channels = has_alpha ? png.channels - 1 : png.channels,
                .palette = std::move(png.palette)};
  if (has_alpha) out.alpha = Tensor<std::uint8_t>(Shape{png.height, png.width});
  const std::size_t sample = png.bits == 16 ? 2 : 1;
  for (std::size_t y = 0; y < png.height; ++y) {
    const png_byte* from = png.rows[y];
    for (std::size_t x = 0; x < png.width; ++x, from += png.channels * sample) {
      std::int32_t value = from[0];
      if (sample == 2) value = 256 * from[0] + from[1];
      if (out.channels == 3) value = from[0] + 256 * from[1] + 65536 * from[2];
      out.values.view().row(y)[x] = value;
      if (has_alpha) out.alpha.view().row(y)[x] = from[png.channels - 1];
    }
  }
  return out;
}

}  // namespace vit::app
