// TIFF through libtiff: samples come out as stored and are mapped here as Pillow maps them.
#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include <tiffio.h>

#include "vit/base/checked.h"
#include "vit/base/tensor.h"
#include "vit/image/codecs.h"
#include "vit/image/convert.h"

namespace vit::internal::codecs {

namespace {

/// The file as libtiff sees it, and the last message of libtiff.
struct Stream {
  std::span<const std::uint8_t> bytes;
  std::uint64_t position = 0;
  char message[256] = "unreadable";
  bool lost_palette = false;
};

Stream& stream_of(thandle_t handle) {
  return *static_cast<Stream*>(handle);
}

tmsize_t read_stream(thandle_t handle, void* out, tmsize_t count) {
  Stream& stream = stream_of(handle);
  if (count < 0 || stream.position >= stream.bytes.size()) return 0;
  const std::uint64_t rest = stream.bytes.size() - stream.position;
  const std::uint64_t got = std::min<std::uint64_t>(rest, static_cast<std::uint64_t>(count));
  std::memcpy(out, stream.bytes.data() + stream.position, got);
  stream.position += got;
  return static_cast<tmsize_t>(got);
}

tmsize_t write_stream(thandle_t, void*, tmsize_t) {
  return 0;
}

toff_t seek_stream(thandle_t handle, toff_t offset, int whence) {
  Stream& stream = stream_of(handle);
  if (whence == SEEK_CUR) offset += stream.position;
  if (whence == SEEK_END) offset += stream.bytes.size();
  return stream.position = offset;
}

int close_stream(thandle_t) {
  return 0;
}
toff_t size_of_stream(thandle_t handle) {
  return stream_of(handle).bytes.size();
}

int map_stream(thandle_t handle, void** base, toff_t* size) {
  *base = const_cast<std::uint8_t*>(stream_of(handle).bytes.data());  // libtiff only reads it in mode "r"
  *size = stream_of(handle).bytes.size();
  return 1;
}

void unmap_stream(thandle_t, void*, toff_t) {}

int keep_message(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  Stream& stream = *static_cast<Stream*>(user);
  std::vsnprintf(stream.message, sizeof stream.message, format, arguments);
  return 1;  // nothing is printed
}

/// Warnings are not shown. One counts: libtiff takes an image whose palette it cannot read for a grey one.
int note_lost_palette(TIFF*, void* user, const char*, const char* format, va_list arguments) {
  Stream& stream = *static_cast<Stream*>(user);
  char message[sizeof stream.message];
  std::vsnprintf(message, sizeof message, format, arguments);
  if (std::strstr(message, "\"ColorMap\"") == nullptr) return 1;
  stream.lost_palette = true;
  std::memcpy(stream.message, message, sizeof message);
  return 1;
}

struct Close {
  void operator()(TIFF* tiff) const { TIFFClose(tiff); }
  void operator()(TIFFOpenOptions* options) const { TIFFOpenOptionsFree(options); }
};
using TiffPointer = std::unique_ptr<TIFF, Close>;

TiffPointer open_stream(Stream& stream) {
  const std::unique_ptr<TIFFOpenOptions, Close> options(TIFFOpenOptionsAlloc());
  if (options == nullptr) return nullptr;
  TIFFOpenOptionsSetErrorHandlerExtR(options.get(), keep_message, &stream);
  TIFFOpenOptionsSetWarningHandlerExtR(options.get(), note_lost_palette, &stream);
  return TiffPointer(TIFFClientOpenExt("image", "r", &stream, read_stream, write_stream, seek_stream,
                                       close_stream, size_of_stream, map_stream, unmap_stream,
                                       options.get()));
}

/// The tags that decide what a sample means.
struct Layout {
  std::uint32_t width = 0;
  std::uint32_t height = 0;
  std::size_t bits = 1;
  std::size_t num_samples = 1;
  std::uint16_t format = SAMPLEFORMAT_UINT;
  std::uint16_t photometric = 0;
  std::uint16_t compression = COMPRESSION_NONE;
  bool separate = false;
  bool little_endian = true;
  std::uint16_t orientation = 1;
  std::size_t num_colors = 1;  // samples before the extra ones
  bool has_alpha = false;
  bool premultiplied = false;
  std::uint16_t* palette[3] = {};
};

std::uint16_t tag16(TIFF* tiff, std::uint32_t tag, std::uint16_t otherwise) {
  std::uint16_t value = 0;
  return TIFFGetFieldDefaulted(tiff, tag, &value) != 0 ? value : otherwise;
}

bool is_readable(const Layout& layout) {
  const std::size_t bits = layout.bits;
  const bool plain = layout.format == SAMPLEFORMAT_UINT || layout.format == SAMPLEFORMAT_VOID;
  switch (layout.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK:
      if (layout.num_samples > 1) {
        const bool is_signed = layout.separate && layout.format == SAMPLEFORMAT_INT;
        return (plain || is_signed) && bits == 8 && layout.num_samples == 2;
      }
      if (bits == 12) return plain && layout.little_endian && layout.photometric == PHOTOMETRIC_MINISBLACK;
      if (layout.format == SAMPLEFORMAT_IEEEFP) return bits == 32;
      if (layout.format == SAMPLEFORMAT_INT) return bits == 8 || bits == 16 || bits == 32;
      return plain && (bits == 1 || bits == 2 || bits == 4 || bits == 8 || bits == 16 || bits == 32);
    case PHOTOMETRIC_YCBCR:
      return plain && bits == 8 && layout.num_samples == 3 && layout.compression != COMPRESSION_NONE;
    case PHOTOMETRIC_RGB: return plain && (bits == 8 || bits == 16) && layout.num_samples >= 3;
    case PHOTOMETRIC_PALETTE:
      return plain && bits <= 8 && 8 % bits == 0 && (layout.num_samples == 1 || bits == 8);
    case PHOTOMETRIC_SEPARATED: return plain && (bits == 8 || bits == 16) && layout.num_samples >= 4;
    case PHOTOMETRIC_CIELAB:
      return layout.format == SAMPLEFORMAT_UINT && bits == 8 && layout.num_samples == 3;
    default: return false;
  }
}

/// The compressions that Pillow reads. libtiff has more decoders, and the one for JBIG ends the program where
/// data are corrupt.
bool is_readable_compression(std::uint16_t compression) {
  constexpr std::uint16_t kReadable[] = {
      COMPRESSION_NONE,      COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,   COMPRESSION_CCITTFAX4,
      COMPRESSION_LZW,       COMPRESSION_OJPEG,    COMPRESSION_JPEG,        COMPRESSION_ADOBE_DEFLATE,
      COMPRESSION_CCITTRLEW, COMPRESSION_PACKBITS, COMPRESSION_THUNDERSCAN, COMPRESSION_DEFLATE,
      COMPRESSION_SGILOG,    COMPRESSION_SGILOG24, COMPRESSION_LZMA,        COMPRESSION_ZSTD,
      COMPRESSION_WEBP};
  return std::find(std::begin(kReadable), std::end(kReadable), compression) != std::end(kReadable);
}

Layout read_layout(const Source& source, TIFF* tiff) {
  Layout layout;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &layout.width) == 0 ||
      TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &layout.height) == 0) {
    refuse(source, "corrupt TIFF: no size");
  }
  check_size(source, layout.width, layout.height);
  layout.compression = tag16(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  if (!is_readable_compression(layout.compression))
    refuse_unsupported(source, "TIFF with compression ", layout.compression, " is not read");
  layout.little_endian = TIFFIsBigEndian(tiff) == 0;
  layout.bits = tag16(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  layout.num_samples = tag16(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  layout.format = tag16(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  std::uint16_t photometric = 0;
  layout.photometric =
      TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric) != 0 ? photometric : PHOTOMETRIC_MINISWHITE;
  layout.separate = tag16(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
  layout.orientation = tag16(tiff, TIFFTAG_ORIENTATION, 1);
  if (layout.photometric == PHOTOMETRIC_YCBCR && layout.compression == COMPRESSION_JPEG && !layout.separate &&
      layout.num_samples == 3) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);  // libjpeg turns YCbCr to RGB
    layout.photometric = PHOTOMETRIC_RGB;
  }
  constexpr std::size_t kMaxSamples = 6;
  if (layout.bits == 0 || layout.num_samples == 0 || layout.num_samples > kMaxSamples ||
      !is_readable(layout)) {
    refuse_unsupported(source, "TIFF with ", layout.num_samples, " samples of ", layout.bits,
                       " bits, format ", layout.format, ", photometric interpretation ", layout.photometric,
                       " is not read");
  }
  switch (layout.photometric) {
    case PHOTOMETRIC_RGB:
    case PHOTOMETRIC_CIELAB: layout.num_colors = 3; break;
    case PHOTOMETRIC_SEPARATED: layout.num_colors = 4; break;
    default: layout.num_colors = 1;
  }
  std::uint16_t num_extra = 0;
  std::uint16_t* extra = nullptr;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_EXTRASAMPLES, &num_extra, &extra);
  const bool is_plain =
      layout.format != SAMPLEFORMAT_INT;  // an extra sample beside signed ones is passed over
  if (layout.num_samples > layout.num_colors && layout.photometric != PHOTOMETRIC_SEPARATED && is_plain) {
    layout.has_alpha = num_extra == 0 || extra[0] != EXTRASAMPLE_UNSPECIFIED;
    layout.premultiplied = num_extra != 0 && extra[0] == EXTRASAMPLE_ASSOCALPHA;
  }
  if (layout.photometric == PHOTOMETRIC_PALETTE &&
      TIFFGetField(tiff, TIFFTAG_COLORMAP, &layout.palette[0], &layout.palette[1], &layout.palette[2]) == 0) {
    refuse(source, "corrupt TIFF: no palette");
  }
  return layout;
}

/// Takes no memory until it is written.
using Bytes = Tensor<std::uint8_t>;

/// All samples as stored: one plane of interleaved samples, or one plane per sample.
struct Samples {
  Bytes bytes;
  std::size_t row_bytes = 0;
  std::size_t plane_bytes = 0;
};

[[noreturn]] void refuse_data(const Source& source, const Stream& stream) {
  refuse(source, "truncated or corrupt TIFF: ", stream.message);
}

std::uint32_t rows_per_strip(const Source& source, TIFF* tiff) {
  std::uint32_t num_rows = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &num_rows);
  if (num_rows == 0) refuse(source, "corrupt TIFF: strips without rows");
  return num_rows;
}

void read_strips(const Source& source, const Stream& stream, TIFF* tiff, const Layout& layout,
                 std::size_t num_planes, Samples& samples) {
  const std::uint32_t strip_rows = rows_per_strip(source, tiff);
  for (std::size_t plane = 0; plane < num_planes; ++plane) {
    for (std::uint32_t y = 0; y < layout.height; y += std::min(strip_rows, layout.height - y)) {
      const std::uint32_t num_rows = std::min(strip_rows, layout.height - y);
      const auto wanted = static_cast<tmsize_t>(num_rows * samples.row_bytes);
      std::uint8_t* const to = samples.bytes.data() + plane * samples.plane_bytes + y * samples.row_bytes;
      const std::uint32_t strip = TIFFComputeStrip(tiff, y, static_cast<std::uint16_t>(plane));
      if (TIFFReadEncodedStrip(tiff, strip, to, wanted) != wanted) refuse_data(source, stream);
    }
  }
}

/// Tiles reach over the edges of the image. What lies outside is decoded too, so that it may be as large as
/// the largest image again, or as one tile of 4096 x 4096 pixels.
void check_tiles(const Source& source, const Layout& layout, std::uint32_t tile_width,
                 std::uint32_t tile_height) {
  constexpr std::uint64_t kAlwaysRead = std::uint64_t{1} << 24;
  const std::uint64_t width = round_up(std::uint64_t{layout.width}, std::uint64_t{tile_width});
  const std::uint64_t height = round_up(std::uint64_t{layout.height}, std::uint64_t{tile_height});
  const std::uint64_t num_pixels = checked_mul(width, height, kWhere);
  if (num_pixels > kAlwaysRead && num_pixels / 2 > source.max_pixels) {
    refuse_unsupported(source, "TIFF with tiles of ", tile_width, " x ", tile_height,
                       " pixels for an image of ", layout.width, " x ", layout.height,
                       ": too many pixels outside the image");
  }
}

void read_tiles(const Source& source, const Stream& stream, TIFF* tiff, const Layout& layout,
                std::size_t num_planes, Samples& samples) {
  std::uint32_t tile_width = 0;
  std::uint32_t tile_height = 0;
  TIFFGetField(tiff, TIFFTAG_TILEWIDTH, &tile_width);
  TIFFGetField(tiff, TIFFTAG_TILELENGTH, &tile_height);
  const tmsize_t tile_bytes = TIFFTileSize(tiff);
  const tmsize_t tile_row_bytes = TIFFTileRowSize(tiff);
  constexpr tmsize_t kMaxTileBytes = tmsize_t{1} << 30;
  if (tile_width == 0 || tile_height == 0 || tile_bytes <= 0 || tile_row_bytes <= 0 ||
      tile_bytes > kMaxTileBytes) {
    refuse(source, "corrupt TIFF: tiles of ", tile_width, " x ", tile_height, " pixels");
  }
  check_tiles(source, layout, tile_width, tile_height);
  const std::size_t pixel_bits = layout.bits * (layout.separate ? 1 : layout.num_samples);
  if (tile_width * pixel_bits % 8 != 0) refuse(source, "corrupt TIFF: tiles of ", tile_width, " pixels");
  Bytes tile(Shape{static_cast<std::size_t>(tile_bytes)});
  for (std::size_t plane = 0; plane < num_planes; ++plane) {
    for (std::uint64_t y = 0; y < layout.height; y += tile_height) {
      for (std::uint64_t x = 0; x < layout.width; x += tile_width) {
        const std::uint32_t index =
            TIFFComputeTile(tiff, static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y), 0,
                            static_cast<std::uint16_t>(plane));
        if (TIFFReadEncodedTile(tiff, index, tile.data(), tile_bytes) != tile_bytes)
          refuse_data(source, stream);
        const std::size_t at = x * pixel_bits / 8;
        const std::size_t count = std::min(static_cast<std::size_t>(tile_row_bytes), samples.row_bytes - at);
        for (std::uint64_t row = 0; row < std::min<std::uint64_t>(tile_height, layout.height - y); ++row) {
          std::copy_n(
              tile.data() + row * static_cast<std::size_t>(tile_row_bytes), count,
              samples.bytes.data() + plane * samples.plane_bytes + (y + row) * samples.row_bytes + at);
        }
      }
    }
  }
}

/// Of a row of one plane.
std::size_t row_bytes_of(const Source& source, TIFF* tiff, const Layout& layout) {
  const std::size_t row_bits = layout.width * layout.bits * (layout.separate ? 1 : layout.num_samples);
  const std::size_t row_bytes = (row_bits + 7) / 8;
  if (static_cast<std::size_t>(TIFFScanlineSize(tiff)) != row_bytes)
    refuse_unsupported(source, "TIFF with an unusual row layout is not read");
  return row_bytes;
}

Samples read_samples(const Source& source, const Stream& stream, TIFF* tiff, const Layout& layout) {
  Samples samples;
  // Of extra samples in planes of their own only the opacity counts.
  const std::size_t num_planes = layout.separate ? layout.num_colors + (layout.has_alpha ? 1 : 0) : 1;
  samples.row_bytes = row_bytes_of(source, tiff, layout);
  samples.plane_bytes = samples.row_bytes * layout.height;
  samples.bytes = Bytes(Shape{checked_mul(samples.plane_bytes, num_planes, kWhere)});
  const auto read = TIFFIsTiled(tiff) != 0 ? read_tiles : read_strips;
  read(source, stream, tiff, layout, num_planes, samples);
  return samples;
}

std::uint8_t clipped(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::isnan(value) ? 0.0 : value, 0.0, 255.0));
}

class Mapper {
 public:
  Mapper(const Layout& layout, const Samples& samples) : layout_(layout), samples_(samples) {}

  /// One pixel's color, of CIELab what lab_to_rgb() takes; returns its opacity.
  std::uint8_t map(std::size_t x, std::size_t y, std::uint8_t* rgb) const {
    switch (layout_.photometric) {
      case PHOTOMETRIC_PALETTE: {
        const std::size_t index = small(sample(x, y, 0));
        for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(layout_.palette[c][index] >> 8);
        break;
      }
      case PHOTOMETRIC_SEPARATED: {
        std::uint8_t ink[4];
        for (std::size_t c = 0; c < 4; ++c) ink[c] = high_byte(sample(x, y, c));
        cmyk_to_rgb(ink, rgb);
        break;
      }
      case PHOTOMETRIC_RGB:
        for (std::size_t c = 0; c < 3; ++c) rgb[c] = high_byte(sample(x, y, c));
        break;
      case PHOTOMETRIC_CIELAB:
        // a and b are signed. Pillow takes those of planes as if they were not.
        for (std::size_t c = 0; c < 3; ++c) {
          const bool is_signed = c > 0 && !layout_.separate;
          rgb[c] = static_cast<std::uint8_t>(*sample(x, y, c).bytes ^ (is_signed ? 0x80 : 0));
        }
        break;
      default: std::fill_n(rgb, 3, grey(sample(x, y, 0)));
    }
    if (!layout_.has_alpha) return 255;
    const std::uint8_t alpha = high_byte(sample(x, y, layout_.num_colors));
    if (layout_.premultiplied && alpha != 255) {
      for (int c = 0; c < 3; ++c)
        rgb[c] = alpha == 0 ? 0 : static_cast<std::uint8_t>(std::min(255, rgb[c] * 255 / alpha));
    }
    return alpha;
  }

 private:
  struct Place {
    const std::uint8_t* bytes;
    std::size_t bit;  // inside the first byte
  };

  Place sample(std::size_t x, std::size_t y, std::size_t channel) const {
    const std::size_t index = layout_.separate ? x : x * layout_.num_samples + channel;
    const std::size_t plane = layout_.separate ? channel : 0;
    const std::size_t bit = index * layout_.bits;
    return {samples_.bytes.data() + plane * samples_.plane_bytes + y * samples_.row_bytes + bit / 8, bit % 8};
  }
  template <typename Number>
  static Number number(Place place) {  // libtiff delivers the byte order of the machine
    Number value;
    std::memcpy(&value, place.bytes, sizeof value);
    return value;
  }
  /// Two samples of 12 bits lie in three bytes, the high bits first.
  static std::uint32_t twelve_bits(Place place) {
    const std::uint8_t* const p = place.bytes;
    return place.bit == 0 ? std::uint32_t{p[0]} << 4 | p[1] >> 4 : (p[0] & 15u) << 8 | p[1];
  }
  std::uint8_t small(Place place) const {
    return static_cast<std::uint8_t>((*place.bytes >> (8 - layout_.bits - place.bit)) &
                                     ((1u << layout_.bits) - 1));
  }
  std::uint8_t high_byte(Place place) const {
    return layout_.bits == 16 ? static_cast<std::uint8_t>(number<std::uint16_t>(place) >> 8) : *place.bytes;
  }
  /// Up to 8 bits are spread to 0..255, more are cut off there.
  std::uint8_t grey(Place place) const {
    if (layout_.bits <= 8) {
      const auto level = static_cast<std::uint8_t>(small(place) * (255 / ((1u << layout_.bits) - 1)));
      return layout_.photometric == PHOTOMETRIC_MINISWHITE ? static_cast<std::uint8_t>(255 - level) : level;
    }
    if (layout_.bits == 12) return clipped(twelve_bits(place));
    if (layout_.format == SAMPLEFORMAT_IEEEFP) return clipped(static_cast<double>(number<float>(place)));
    if (layout_.bits == 32) return clipped(number<std::int32_t>(place));
    return layout_.format == SAMPLEFORMAT_INT ? clipped(number<std::int16_t>(place))
                                              : clipped(number<std::uint16_t>(place));
  }

  const Layout& layout_;
  const Samples& samples_;
};

/// Chroma of its own sampling, as in JPEGs of the old style: libtiff makes RGB of it.
void read_chroma(const Source& source, const Stream& stream, TIFF* tiff, Image& image) {
  TIFFRGBAImage rgba;
  char message[1024] = "";
  constexpr int kStopOnError = 1;
  if (TIFFRGBAImageOK(tiff, message) == 0 || TIFFRGBAImageBegin(&rgba, tiff, kStopOnError, message) == 0)
    refuse(source, "truncated or corrupt TIFF: ", message);
  const std::unique_ptr<TIFFRGBAImage, void (*)(TIFFRGBAImage*)> end(&rgba, TIFFRGBAImageEnd);
  rgba.orientation = rgba.req_orientation = ORIENTATION_TOPLEFT;  // as stored
  Tensor<std::uint32_t> pixels(Shape{image.height(), image.width()});
  if (TIFFRGBAImageGet(&rgba, pixels.data(), static_cast<std::uint32_t>(image.width()),
                       static_cast<std::uint32_t>(image.height())) == 0) {
    refuse_data(source, stream);
  }
  for (std::size_t i = 0; i < pixels.num_elements(); ++i) {
    const std::uint32_t pixel = pixels.data()[i];
    std::uint8_t* const rgb = image.data() + 3 * i;
    rgb[0] = static_cast<std::uint8_t>(TIFFGetR(pixel));
    rgb[1] = static_cast<std::uint8_t>(TIFFGetG(pixel));
    rgb[2] = static_cast<std::uint8_t>(TIFFGetB(pixel));
  }
}

void read_pixels(const Source& source, const Stream& stream, TIFF* tiff, const Layout& layout,
                 Decoded& decoded) {
  const Samples samples = read_samples(source, stream, tiff, layout);
  if (layout.has_alpha) decoded.alpha = Tensor<std::uint8_t>(Shape{layout.height, layout.width});
  const Mapper mapper(layout, samples);
  for (std::size_t y = 0; y < layout.height; ++y) {
    for (std::size_t x = 0; x < layout.width; ++x) {
      const std::uint8_t alpha = mapper.map(x, y, decoded.image.row(y) + 3 * x);
      if (layout.has_alpha) decoded.alpha.data()[y * layout.width + x] = alpha;
    }
    if (layout.photometric == PHOTOMETRIC_CIELAB) lab_to_rgb(source, decoded.image.row(y), layout.width);
  }
}

/// Strips one after another. Tiles and planes of samples come in another order than rows.
class TiffRows final : public RowSource {
 public:
  explicit TiffRows(const Source& source) : source_(source) {
    stream_.bytes = source.bytes;
    tiff_ = open_stream(stream_);
    if (tiff_ == nullptr || stream_.lost_palette) refuse_data(source_, stream_);
    layout_ = read_layout(source_, tiff_.get());
  }

  bool has_rows() const {
    const bool is_rotated = layout_.orientation >= 2 && layout_.orientation <= 8;
    return TIFFIsTiled(tiff_.get()) == 0 && !layout_.separate && !is_rotated &&
           layout_.photometric != PHOTOMETRIC_YCBCR;
  }
  ImageSize size() const override { return {layout_.height, layout_.width}; }
  int orientation() const override { return 1; }

  ColumnRange start(ColumnRange wanted) override {
    strip_.row_bytes = row_bytes_of(source_, tiff_.get(), layout_);
    rows_per_strip_ = std::min(rows_per_strip(source_, tiff_.get()), layout_.height);
    strip_.bytes = within_memory(source_, [&] { return Bytes(Shape{rows_per_strip_, strip_.row_bytes}); });
    return columns_ = wanted;
  }

  void read(std::uint8_t* rows, std::size_t count) override {
    const Mapper mapper(layout_, strip_);
    const bool on_white = layout_.has_alpha && source_.alpha == Alpha::on_white;
    for (; count > 0; --count, ++next_y_) {
      read_strip();
      const std::size_t y = next_y_ % rows_per_strip_;
      std::uint8_t* const row = rows;
      for (std::size_t x = columns_.begin; x < columns_.end; ++x, rows += 3) {
        const std::uint8_t alpha = mapper.map(x, y, rows);
        if (on_white) composite_on_white(rows, alpha);
      }
      if (layout_.photometric == PHOTOMETRIC_CIELAB) lab_to_rgb(source_, row, columns_.count());
    }
  }
  void skip(std::size_t count) override {
    for (; count > 0; --count, ++next_y_) read_strip();
  }
  void finish() override { skip(layout_.height - next_y_); }

 private:
  /// The strip that begins with the next row, if one does.
  void read_strip() {
    if (next_y_ % rows_per_strip_ != 0) return;
    const std::uint32_t y = static_cast<std::uint32_t>(next_y_);
    const auto wanted =
        static_cast<tmsize_t>(std::min(rows_per_strip_, layout_.height - y) * strip_.row_bytes);
    const std::uint32_t strip = TIFFComputeStrip(tiff_.get(), y, 0);
    if (TIFFReadEncodedStrip(tiff_.get(), strip, strip_.bytes.data(), wanted) != wanted)
      refuse_data(source_, stream_);
  }

  Source source_;
  Stream stream_;
  TiffPointer tiff_;  // points at stream_
  Layout layout_;
  Samples strip_;
  std::uint32_t rows_per_strip_ = 1;
  ColumnRange columns_;  // that rows hold
  std::size_t next_y_ = 0;
};

}  // namespace

std::unique_ptr<RowSource> open_tiff(const Source& source) {
  auto rows = std::make_unique<TiffRows>(source);
  return rows->has_rows() ? std::move(rows) : nullptr;
}

Decoded decode_tiff(const Source& source) {
  Stream stream{.bytes = source.bytes};
  const TiffPointer tiff = open_stream(stream);
  if (tiff == nullptr || stream.lost_palette) refuse_data(source, stream);
  const Layout layout = read_layout(source, tiff.get());
  Decoded decoded;
  decoded.image = Image(layout.height, layout.width);
  if (layout.photometric == PHOTOMETRIC_YCBCR) {
    read_chroma(source, stream, tiff.get(), decoded.image);
  } else {
    read_pixels(source, stream, tiff.get(), layout, decoded);
  }
  decoded.orientation = layout.orientation >= 1 && layout.orientation <= 8 ? layout.orientation : 1;
  decoded.always_rotate = true;
  return decoded;
}

}  // namespace vit::internal::codecs
