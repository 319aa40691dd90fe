// TIFF through libtiff: samples are output as stored and mapped here as Pillow maps them.
#include <tiffio.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>

#include "vit/base/checked.h"
#include "vit/base/tensor.h"
#include "vit/image/codecs.h"
#include "vit/image/convert.h"
#include "vit/image/tiff_layout.h"
#include "vit/image/tiff_samples.h"

namespace vit::internal::codecs {

namespace {

std::uint32_t rows_per_strip(const Source& source, TIFF* tiff) {
  std::uint32_t num_rows = 0;
  TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &num_rows);
  if (num_rows == 0) refuse(source, "corrupt TIFF: strips without rows");
  return num_rows;
}

void read_strips(const Source& source, const TiffStream& stream, TIFF* tiff, const TiffLayout& layout,
                 std::size_t num_planes, TiffSamples& samples) {
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

/// Tiles extend beyond the edges of the image. The outside part is decoded too; it may be as large as
/// the largest image, or as one tile of 4096 x 4096 pixels.
void check_tiles(const Source& source, const TiffLayout& layout, std::uint32_t tile_width,
                 std::uint32_t tile_height) {
  constexpr std::uint64_t kAlwaysRead = std::uint64_t{1} << 24;
  const std::uint64_t width = round_up(std::uint64_t{layout.width}, std::uint64_t{tile_width});
  const std::uint64_t height = round_up(std::uint64_t{layout.height}, std::uint64_t{tile_height});
  const std::uint64_t num_pixels = checked_mul(width, height, kDecode);
  if (num_pixels > kAlwaysRead && num_pixels / 2 > source.max_pixels) {
    refuse_unsupported(source, "TIFF with tiles of ", tile_width, " x ", tile_height,
                       " pixels for an image of ", layout.width, " x ", layout.height,
                       ": too many pixels outside the image");
  }
}

void read_tiles(const Source& source, const TiffStream& stream, TIFF* tiff, const TiffLayout& layout,
                std::size_t num_planes, TiffSamples& samples) {
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
  TiffBytes tile(Shape{static_cast<std::size_t>(tile_bytes)});
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

/// Bytes of a row of one plane.
std::size_t row_bytes_of(const Source& source, TIFF* tiff, const TiffLayout& layout) {
  const std::size_t row_bits = layout.width * layout.bits * (layout.separate ? 1 : layout.num_samples);
  const std::size_t row_bytes = (row_bits + 7) / 8;
  if (static_cast<std::size_t>(TIFFScanlineSize(tiff)) != row_bytes)
    refuse_unsupported(source, "TIFF with an unusual row layout is not supported");
  return row_bytes;
}

TiffSamples read_samples(const Source& source, const TiffStream& stream, TIFF* tiff,
                         const TiffLayout& layout) {
  TiffSamples samples;
  // Of extra samples in separate planes only the opacity is used.
  const std::size_t num_planes = layout.separate ? layout.num_colors + (layout.has_alpha ? 1 : 0) : 1;
  samples.row_bytes = row_bytes_of(source, tiff, layout);
  samples.plane_bytes = samples.row_bytes * layout.height;
  samples.bytes = TiffBytes(Shape{checked_mul(samples.plane_bytes, num_planes, kDecode)});
  const auto read = TIFFIsTiled(tiff) != 0 ? read_tiles : read_strips;
  read(source, stream, tiff, layout, num_planes, samples);
  return samples;
}

/// Subsampled chroma, as in old-style JPEG: libtiff converts it to RGB.
void read_chroma(const Source& source, const TiffStream& stream, TIFF* tiff, Image& image) {
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

void read_pixels(const Source& source, const TiffStream& stream, TIFF* tiff, const TiffLayout& layout,
                 Decoded& decoded) {
  const TiffSamples samples = read_samples(source, stream, tiff, layout);
  if (layout.has_alpha) decoded.alpha = Tensor<std::uint8_t>(Shape{layout.height, layout.width});
  const TiffMapper mapper(layout, samples);
  for (std::size_t y = 0; y < layout.height; ++y) {
    for (std::size_t x = 0; x < layout.width; ++x) {
      const std::uint8_t alpha = mapper.map(x, y, decoded.image.row(y) + 3 * x);
      if (layout.has_alpha) decoded.alpha.data()[y * layout.width + x] = alpha;
    }
    if (layout.photometric == PHOTOMETRIC_CIELAB) lab_to_rgb(source, decoded.image.row(y), layout.width);
  }
}

/// Strips one after another. Tiles and planes of samples are not in row order.
class TiffRows final : public RowSource {
 public:
  explicit TiffRows(const Source& source) : source_(source) {
    stream_.bytes = source.bytes;
    tiff_ = open_tiff_stream(source_, stream_);
    layout_ = read_tiff_layout(source_, tiff_.get());
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
    strip_.bytes = within_memory(source_, [&] {
      return TiffBytes(Shape{rows_per_strip_, strip_.row_bytes});
    });
    return columns_ = wanted;
  }

  void read(std::uint8_t* rows, std::size_t count) override {
    const TiffMapper mapper(layout_, strip_);
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
  TiffStream stream_;
  TiffPointer tiff_;  // points at stream_
  TiffLayout layout_;
  TiffSamples strip_;
  std::uint32_t rows_per_strip_ = 1;
  ColumnRange columns_;  // of the rows
  std::size_t next_y_ = 0;
};

// ----------------------------------------------------------------------------------------------------- bands

/// A sample type, and how a row of one band is read, with samples `stride` apart.
struct BandType {
  std::uint16_t format;
  std::size_t bits;
  void (*read)(const std::uint8_t* first, std::size_t stride, std::size_t count, float* out);
};

template <typename Number>
void read_band_row(const std::uint8_t* first, std::size_t stride, std::size_t count, float* out) {
  for (std::size_t x = 0; x < count; ++x) {  // libtiff delivers the byte order of the machine
    Number value;
    std::memcpy(&value, first + x * stride * sizeof value, sizeof value);
    out[x] = static_cast<float>(value);
  }
}

constexpr BandType kBandTypes[] = {
    {SAMPLEFORMAT_UINT, 8, read_band_row<std::uint8_t>},
    {SAMPLEFORMAT_INT, 8, read_band_row<std::int8_t>},
    {SAMPLEFORMAT_UINT, 16, read_band_row<std::uint16_t>},
    {SAMPLEFORMAT_INT, 16, read_band_row<std::int16_t>},
    {SAMPLEFORMAT_UINT, 32, read_band_row<std::uint32_t>},
    {SAMPLEFORMAT_INT, 32, read_band_row<std::int32_t>},
    {SAMPLEFORMAT_IEEEFP, 32, read_band_row<float>},
    {SAMPLEFORMAT_IEEEFP, 64, read_band_row<double>},
};

const BandType& band_type(const Source& source, const TiffLayout& layout) {
  const std::uint16_t format = layout.format == SAMPLEFORMAT_VOID ? SAMPLEFORMAT_UINT : layout.format;
  for (const BandType& type : kBandTypes) {
    if (type.format == format && type.bits == layout.bits) return type;
  }
  refuse_unsupported(source, "TIFF with bands of ", layout.bits, " bits, format ", layout.format,
                     " is not supported; expected integers of 8, 16 or 32 bits, or floats of 32 or 64");
}

/// Compressions for samples of any type; others are for colors or bits.
bool takes_bands(std::uint16_t compression) {
  constexpr std::uint16_t kTaking[] = {COMPRESSION_NONE,     COMPRESSION_LZW,     COMPRESSION_ADOBE_DEFLATE,
                                       COMPRESSION_PACKBITS, COMPRESSION_DEFLATE, COMPRESSION_LZMA,
                                       COMPRESSION_ZSTD};
  return std::find(std::begin(kTaking), std::end(kTaking), compression) != std::end(kTaking);
}

/// Whether the samples of a TIFF are colors or gray of 8 bits: the input of a model of one channel.
bool is_image_of_gray(const TiffLayout& layout) {
  const bool is_single = layout.num_samples == 1 && (layout.photometric == PHOTOMETRIC_MINISBLACK ||
                                                     layout.photometric == PHOTOMETRIC_MINISWHITE);
  return !is_single || layout.bits <= 8;
}

void check_bands(const Source& source, const TiffLayout& layout, std::size_t num_bands) {
  VIT_CHECK(layout.num_samples == num_bands, kDecode.with(ErrorKind::mismatch), source.name, ": has ",
            layout.num_samples, layout.num_samples == 1 ? " band" : " bands", ", but the model takes ",
            num_bands, " channels");
  constexpr std::uint64_t kSamplesPerPixel = 4;  // as many as an image with opacity
  if (std::uint64_t{layout.width} * layout.height > kSamplesPerPixel * source.max_pixels / num_bands)
    refuse_unsupported(source, "too many pixels: ", layout.width, " x ", layout.height, " of ", num_bands,
                       " bands, the limit is ", kSamplesPerPixel * source.max_pixels, " samples");
  if (layout.orientation >= 2 && layout.orientation <= 8)
    refuse_unsupported(source, "TIFF of bands that its tag rotates (", layout.orientation,
                       ") is not supported");
  if (!takes_bands(layout.compression))
    refuse_unsupported(source, "TIFF of bands with compression ", layout.compression, " is not supported");
}

}  // namespace

std::optional<Bands> decode_tiff_bands(const Source& source, std::size_t num_bands) {
  TiffStream stream{.bytes = source.bytes};
  const TiffPointer tiff = open_tiff_stream(source, stream);
  const TiffLayout layout = read_tiff_tags(source, tiff.get());
  if (num_bands == 1 && is_image_of_gray(layout)) return std::nullopt;
  check_bands(source, layout, num_bands);
  const BandType& type = band_type(source, layout);
  const TiffSamples samples = read_samples(source, stream, tiff.get(), layout);
  const std::size_t bytes = layout.bits / 8, stride = layout.separate ? 1 : num_bands;
  Bands bands{.planes = Tensor<float>(Shape{num_bands, layout.height, layout.width}),
              .are_bytes = layout.bits == 8 && layout.format != SAMPLEFORMAT_INT};
  for (std::size_t k = 0; k < num_bands; ++k) {
    for (std::size_t y = 0; y < layout.height; ++y) {
      const std::uint8_t* const row = samples.bytes.data() + y * samples.row_bytes;
      type.read(layout.separate ? row + k * samples.plane_bytes : row + k * bytes, stride, layout.width,
                bands.planes.view().row(k * layout.height + y));
    }
  }
  return bands;
}

std::unique_ptr<RowSource> open_tiff(const Source& source) {
  auto rows = std::make_unique<TiffRows>(source);
  return rows->has_rows() ? std::move(rows) : nullptr;
}

Decoded decode_tiff(const Source& source) {
  TiffStream stream{.bytes = source.bytes};
  const TiffPointer tiff = open_tiff_stream(source, stream);
  const TiffLayout layout = read_tiff_layout(source, tiff.get());
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
