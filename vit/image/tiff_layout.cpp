#include "vit/image/tiff_layout.h"

#include <algorithm>
#include <iterator>

namespace vit::internal::codecs {

namespace {

std::uint16_t tag16(TIFF* tiff, std::uint32_t tag, std::uint16_t otherwise) {
  std::uint16_t value = 0;
  return TIFFGetFieldDefaulted(tiff, tag, &value) != 0 ? value : otherwise;
}

bool is_readable(const TiffLayout& layout) {
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

/// The compressions that Pillow reads. libtiff has more decoders, and the one for JBIG ends the program if
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

/// The first image of raw photographs is a small preview; the photograph is in a directory below it.
void refuse_preview(const Source& source, TIFF* tiff, const TiffLayout& layout) {
  std::uint32_t kind = 0;
  std::uint16_t num_below = 0;
  void* below = nullptr;
  const std::uint8_t* dng_version = nullptr;
  const bool is_reduced =
      TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind) != 0 && (kind & FILETYPE_REDUCEDIMAGE) != 0;
  const bool has_others = TIFFGetField(tiff, TIFFTAG_SUBIFD, &num_below, &below) != 0 && num_below > 0;
  const bool is_dng = TIFFGetField(tiff, TIFFTAG_DNGVERSION, &dng_version) != 0;
  if (is_reduced && (has_others || is_dng))
    refuse_unsupported(source, "a raw photograph (DNG, NEF, ARW, ...), whose first image is a preview of ",
                       layout.width, " x ", layout.height,
                       " pixels; develop it to TIFF, PNG or JPEG first, with darktable or dcraw_emu");
}

}  // namespace

TiffLayout read_tiff_tags(const Source& source, TIFF* tiff) {
  TiffLayout layout;
  if (TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &layout.width) == 0 ||
      TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &layout.height) == 0) {
    refuse(source, "corrupt TIFF: no size");
  }
  check_size(source, layout.width, layout.height);
  refuse_preview(source, tiff, layout);
  layout.compression = tag16(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
  if (!is_readable_compression(layout.compression))
    refuse_unsupported(source, "TIFF with compression ", layout.compression, " is not supported");
  layout.little_endian = TIFFIsBigEndian(tiff) == 0;
  layout.bits = tag16(tiff, TIFFTAG_BITSPERSAMPLE, 1);
  layout.num_samples = tag16(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
  layout.format = tag16(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_UINT);
  std::uint16_t photometric = 0;
  layout.photometric =
      TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric) != 0 ? photometric : PHOTOMETRIC_MINISWHITE;
  layout.separate = tag16(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG) == PLANARCONFIG_SEPARATE;
  layout.orientation = tag16(tiff, TIFFTAG_ORIENTATION, 1);
  layout.num_colors = layout.num_samples;
  return layout;
}

TiffLayout read_tiff_layout(const Source& source, TIFF* tiff) {
  TiffLayout layout = read_tiff_tags(source, tiff);
  if (layout.photometric == PHOTOMETRIC_YCBCR && layout.compression == COMPRESSION_JPEG && !layout.separate &&
      layout.num_samples == 3) {
    TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);  // libjpeg converts YCbCr to RGB
    layout.photometric = PHOTOMETRIC_RGB;
  }
  constexpr std::size_t kMaxSamples = 6;
  if (layout.bits == 0 || layout.num_samples == 0 || layout.num_samples > kMaxSamples ||
      !is_readable(layout)) {
    refuse_unsupported(source, "TIFF with ", layout.num_samples, " samples of ", layout.bits,
                       " bits, format ", layout.format, ", photometric interpretation ", layout.photometric,
                       " is not supported");
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
  const bool is_plain = layout.format != SAMPLEFORMAT_INT;  // an extra sample next to signed ones is ignored
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

}  // namespace vit::internal::codecs
