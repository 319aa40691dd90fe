// AVIF through libavif: the first image, stored orientation, 8 bits. Samples of 10 and 12 bits are cut to 8
// before conversion to RGB if Pillow's libavif does so.
#include <algorithm>
#include <memory>

#include <avif/avif.h>

#include "vit/base/late_library.h"
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

/// The functions of libavif, opened with the first file.
struct Avif {
  VIT_LATE_FUNCTION(avifCodecName);
  VIT_LATE_FUNCTION(avifDecoderCreate);
  VIT_LATE_FUNCTION(avifDecoderDestroy);
  VIT_LATE_FUNCTION(avifDecoderNthImage);
  VIT_LATE_FUNCTION(avifDecoderParse);
  VIT_LATE_FUNCTION(avifDecoderSetIOMemory);
  VIT_LATE_FUNCTION(avifGetPixelFormatInfo);
  VIT_LATE_FUNCTION(avifImageAllocatePlanes);
  VIT_LATE_FUNCTION(avifImageCreate);
  VIT_LATE_FUNCTION(avifImageDestroy);
  VIT_LATE_FUNCTION(avifImageYUVToRGB);
  VIT_LATE_FUNCTION(avifRGBImageSetDefaults);
  VIT_LATE_FUNCTION(avifRGBImageUnpremultiplyAlpha);
  VIT_LATE_FUNCTION(avifResultToString);
};

const Avif& avif() {
  static const Avif functions;
  return functions;
}

struct Release {
  void operator()(avifDecoder* decoder) const { avif().avifDecoderDestroy(decoder); }
  void operator()(avifImage* image) const { avif().avifImageDestroy(image); }
};
using DecoderPointer = std::unique_ptr<avifDecoder, Release>;
using ImagePointer = std::unique_ptr<avifImage, Release>;

void require(const Source& source, avifResult result) {
  if (result == AVIF_RESULT_OK) return;
  if (result == AVIF_RESULT_OUT_OF_MEMORY) throw std::bad_alloc();
  if (result == AVIF_RESULT_NO_CODEC_AVAILABLE)
    refuse_unsupported(source, "libavif was built without a decoder of AV1");
  refuse(source, "truncated or corrupt AVIF: ", avif().avifResultToString(result));
}

/// Orientation 1..8 of the container's rotation and mirror.
int container_orientation(const avifImage& image) {
#if AVIF_VERSION >= 1000000
  const bool left_right = image.imir.axis != 0;
#else
  const bool left_right = image.imir.mode != 0;
#endif
  const bool mirrored = (image.transformFlags & AVIF_TRANSFORM_IMIR) != 0;
  const int angle = (image.transformFlags & AVIF_TRANSFORM_IROT) != 0 ? image.irot.angle & 3 : 0;
  constexpr int kRotated[] = {1, 8, 3, 6};  // by the angle, counterclockwise
  constexpr int kLeftRight[] = {2, 7, 4, 5};
  constexpr int kTopBottom[] = {4, 5, 2, 7};
  return !mirrored ? kRotated[angle] : left_right ? kLeftRight[angle] : kTopBottom[angle];
}

/// The container's orientation replaces that of EXIF; XMP is used if there is neither.
int orientation_of(const avifImage& image) {
  const int container = container_orientation(image);
  const int exif = exif_orientation({image.exif.data, image.exif.size});
  if (container != std::max(exif, 1)) return container;
  if (exif != 0) return exif;
  const int xmp = xmp_orientation({image.xmp.data, image.xmp.size});
  return xmp != 0 ? xmp : 1;
}

/// Whether libyuv has a conversion for the colors of the image; for others libavif computes in float.
bool is_converted_by_libyuv(const avifImage& image) {
  avifMatrixCoefficients matrix = image.matrixCoefficients;
  if (image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400 && matrix == AVIF_MATRIX_COEFFICIENTS_IDENTITY) return true;
  if (matrix == AVIF_MATRIX_COEFFICIENTS_CHROMA_DERIVED_NCL) {
    return image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT709 ||
           image.colorPrimaries == AVIF_COLOR_PRIMARIES_UNSPECIFIED ||
           image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT470BG ||
           image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT601 ||
           image.colorPrimaries == AVIF_COLOR_PRIMARIES_BT2020;
  }
  return matrix == AVIF_MATRIX_COEFFICIENTS_BT709 || matrix == AVIF_MATRIX_COEFFICIENTS_UNSPECIFIED ||
         matrix == AVIF_MATRIX_COEFFICIENTS_BT470BG || matrix == AVIF_MATRIX_COEFFICIENTS_BT601 ||
         matrix == AVIF_MATRIX_COEFFICIENTS_BT2020_NCL;
}

/// One row of samples of more than 8 bits, without their lowest bits.
void cut_row(const std::uint8_t* in, std::size_t count, std::uint32_t depth, std::uint8_t* out) {
  const auto* const samples = reinterpret_cast<const std::uint16_t*>(in);
  for (std::size_t x = 0; x < count; ++x)
    out[x] = static_cast<std::uint8_t>(std::min(samples[x] >> (depth - 8), 255));
}

/// The colors of an image of more than 8 bits per sample, truncated to 8.
ImagePointer cut_to_8_bits(const Source& source, const avifImage& image) {
  ImagePointer cut(avif().avifImageCreate(image.width, image.height, 8, image.yuvFormat));
  if (cut == nullptr) throw std::bad_alloc();
  cut->yuvRange = image.yuvRange;
  cut->yuvChromaSamplePosition = image.yuvChromaSamplePosition;
  cut->colorPrimaries = image.colorPrimaries;
  cut->transferCharacteristics = image.transferCharacteristics;
  cut->matrixCoefficients = image.matrixCoefficients;
  require(source, avif().avifImageAllocatePlanes(cut.get(), AVIF_PLANES_YUV));
  avifPixelFormatInfo info;
  avif().avifGetPixelFormatInfo(image.yuvFormat, &info);
  const std::size_t chroma_width = (image.width + std::size_t(info.chromaShiftX)) >> info.chromaShiftX;
  const std::size_t chroma_height = (image.height + std::size_t(info.chromaShiftY)) >> info.chromaShiftY;
  for (std::size_t plane = 0; plane < (info.monochrome != 0 ? 1u : 3u); ++plane) {
    const std::size_t width = plane == 0 ? image.width : chroma_width;
    const std::size_t height = plane == 0 ? image.height : chroma_height;
    for (std::size_t y = 0; y < height; ++y) {
      cut_row(image.yuvPlanes[plane] + y * image.yuvRowBytes[plane], width, image.depth,
              cut->yuvPlanes[plane] + y * cut->yuvRowBytes[plane]);
    }
  }
  return cut;
}

/// Converts a row of opacity with more than 8 bits: truncated if libyuv reads colors and opacity together,
/// else rounded.
void write_alpha(const avifImage& image, std::size_t y, bool is_cut, std::uint8_t* out) {
  const std::uint8_t* const in = image.alphaPlane + y * image.alphaRowBytes;
  if (image.depth == 8) {
    std::copy_n(in, image.width, out);
  } else if (is_cut) {
    cut_row(in, image.width, image.depth, out);
  } else {
    const std::uint32_t most = (1u << image.depth) - 1;
    for (std::size_t x = 0; x < image.width; ++x) {
      const std::uint32_t value = reinterpret_cast<const std::uint16_t*>(in)[x];
      out[x] = static_cast<std::uint8_t>((std::min(value, most) * 255 + most / 2) / most);
    }
  }
}

/// Copies the pixels of a decoded image.
void copy_pixels(const Source& source, const avifImage& image, Decoded& decoded) {
  const bool has_alpha = image.alphaPlane != nullptr;
  const bool is_grey = image.yuvFormat == AVIF_PIXEL_FORMAT_YUV400;
  const bool by_libyuv = is_converted_by_libyuv(image);
  // With opacity libyuv reads 10 bits directly, and 12 bits if chroma is halved both ways. Gray without
  // opacity does not reach it.
  const bool is_12_bit_420 = image.depth == 12 && image.yuvFormat == AVIF_PIXEL_FORMAT_YUV420;
  const bool direct = is_grey ? !has_alpha : has_alpha && (image.depth == 10 || is_12_bit_420);
  ImagePointer cut;
  if (image.depth > 8 && by_libyuv && !direct) cut = cut_to_8_bits(source, image);

  Tensor<std::uint8_t> rgba(Shape{image.height, image.width, has_alpha ? 4u : 3u});
  avifRGBImage rgb;
  avif().avifRGBImageSetDefaults(&rgb, &image);
  rgb.depth = 8;
  rgb.format = has_alpha ? AVIF_RGB_FORMAT_RGBA : AVIF_RGB_FORMAT_RGB;
  rgb.alphaPremultiplied = image.alphaPremultiplied;  // it is divided out below, once the opacity is right
  rgb.pixels = rgba.data();
  rgb.rowBytes = static_cast<std::uint32_t>(image.width * (has_alpha ? 4 : 3));
  if (cut != nullptr) cut->alphaPremultiplied = image.alphaPremultiplied;
  require(source, avif().avifImageYUVToRGB(cut != nullptr ? cut.get() : &image, &rgb));

  if (!has_alpha) {
    std::copy_n(rgba.data(), rgba.num_elements(), decoded.image.data());
    return;
  }
  decoded.alpha = Tensor<std::uint8_t>(Shape{image.height, image.width});
  for (std::size_t y = 0; y < image.height; ++y)
    write_alpha(image, y, by_libyuv && !is_grey && !is_12_bit_420, decoded.alpha.data() + y * image.width);
  for (std::size_t i = 0; i < decoded.alpha.num_elements(); ++i)
    rgba.data()[4 * i + 3] = decoded.alpha.data()[i];
  if (image.alphaPremultiplied != 0) require(source, avif().avifRGBImageUnpremultiplyAlpha(&rgb));
  for (std::size_t i = 0; i < decoded.alpha.num_elements(); ++i)
    std::copy_n(rgba.data() + 4 * i, 3, decoded.image.data() + 3 * i);
}

}  // namespace

void open_avif() {
  avif();
}

Decoded decode_avif(const Source& source) {
  open_for(source, "AVIF", open_avif);
  const DecoderPointer decoder(avif().avifDecoderCreate());
  if (decoder == nullptr) throw std::bad_alloc();
  decoder->maxThreads = 1;
  // All AV1 decoders give the same pixels. dav1d, libavif's first choice, prints messages to stderr
  // for damaged files.
  if (avif().avifCodecName(AVIF_CODEC_CHOICE_AOM, AVIF_CODEC_FLAG_CAN_DECODE) != nullptr)
    decoder->codecChoice = AVIF_CODEC_CHOICE_AOM;
  // Older encoders write wrong crops and sample depths; Pillow accepts these too.
  decoder->strictFlags &= ~static_cast<avifStrictFlags>(AVIF_STRICT_CLAP_VALID | AVIF_STRICT_PIXI_REQUIRED);
  require(source, avif().avifDecoderSetIOMemory(decoder.get(), source.bytes.data(), source.bytes.size()));
  require(source, avif().avifDecoderParse(decoder.get()));
  check_size(source, decoder->image->width, decoder->image->height);
  // The size of the video frames may differ.
  decoder->imageSizeLimit =
      static_cast<std::uint32_t>(std::min<std::size_t>(source.max_pixels, AVIF_DEFAULT_IMAGE_SIZE_LIMIT));
  require(source, avif().avifDecoderNthImage(decoder.get(), 0));
  const avifImage& image = *decoder->image;
  check_size(source, image.width, image.height);
  Decoded decoded;
  decoded.image = Image(image.height, image.width);
  decoded.orientation = orientation_of(image);
  copy_pixels(source, image, decoded);
  return decoded;
}

}  // namespace vit::internal::codecs
