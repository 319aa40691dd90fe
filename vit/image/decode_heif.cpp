// HEIF (HEIC) through libheif: the primary image, upright according to its container. libheif converts it
// to RGB, as for pillow-heif; its releases round differently, so that an image with halved chroma may differ
// by a level or two between releases.
#include <algorithm>
#include <memory>

#include <libheif/heif.h>

#include "vit/base/late_library.h"
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

/// The functions of libheif, opened with the first file.
struct Heif {
  VIT_LATE_FUNCTION(heif_context_alloc);
  VIT_LATE_FUNCTION(heif_context_free);
  VIT_LATE_FUNCTION(heif_context_get_primary_image_handle);
  VIT_LATE_FUNCTION(heif_context_read_from_memory_without_copy);
  VIT_LATE_FUNCTION(heif_context_set_max_decoding_threads);
  VIT_LATE_FUNCTION(heif_decode_image);
  VIT_LATE_FUNCTION(heif_decoding_options_alloc);
  VIT_LATE_FUNCTION(heif_decoding_options_free);
  VIT_LATE_FUNCTION(heif_image_get_height);
  VIT_LATE_FUNCTION(heif_image_get_plane_readonly);
  VIT_LATE_FUNCTION(heif_image_get_width);
  VIT_LATE_FUNCTION(heif_image_handle_get_height);
  VIT_LATE_FUNCTION(heif_image_handle_get_width);
  VIT_LATE_FUNCTION(heif_image_handle_has_alpha_channel);
  VIT_LATE_FUNCTION(heif_image_handle_is_premultiplied_alpha);
  VIT_LATE_FUNCTION(heif_image_handle_release);
  VIT_LATE_FUNCTION(heif_image_release);
};

const Heif& heif() {
  static const Heif functions;
  return functions;
}

struct Release {
  void operator()(heif_context* object) const { heif().heif_context_free(object); }
  void operator()(const heif_image_handle* object) const { heif().heif_image_handle_release(object); }
  void operator()(const heif_image* object) const { heif().heif_image_release(object); }
  void operator()(heif_decoding_options* object) const { heif().heif_decoding_options_free(object); }
};
using ContextPointer = std::unique_ptr<heif_context, Release>;
using HandlePointer = std::unique_ptr<const heif_image_handle, Release>;
using ImagePointer = std::unique_ptr<const heif_image, Release>;
using OptionsPointer = std::unique_ptr<heif_decoding_options, Release>;

void require(const Source& source, const heif_error& error) {
  if (error.code == heif_error_Ok) return;
  const std::string_view whole(error.message == nullptr ? "unreadable" : error.message);
  const std::string_view message = whole.substr(0, whole.find('\n'));
  // The library's own limits of sizes have the code of memory that is short.
  if (error.subcode == heif_suberror_Security_limit_exceeded)
    refuse_unsupported(source, "larger than libheif decodes: ", message);
  if (error.code == heif_error_Memory_allocation_error) throw std::bad_alloc();
  if (error.code == heif_error_Unsupported_filetype || error.code == heif_error_Unsupported_feature)
    refuse_unsupported(source, "unsupported kind of HEIF: ", message);
  refuse(source, "truncated or corrupt HEIF: ", message);
}

ImagePointer decode(const Source& source, const heif_image_handle* handle, bool has_alpha) {
  const OptionsPointer options(heif().heif_decoding_options_alloc());
  if (options == nullptr) throw std::bad_alloc();
  options->convert_hdr_to_8bit = 1;
  heif_image* image = nullptr;
  const heif_error error = heif().heif_decode_image(
      handle, &image, heif_colorspace_RGB,
      has_alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, options.get());
  ImagePointer owner(image);
  require(source, error);
  return owner;
}

void copy_pixels(const Source& source, const heif_image* image, bool has_alpha, Decoded& decoded) {
  int stride = 0;
  const std::uint8_t* const rows =
      heif().heif_image_get_plane_readonly(image, heif_channel_interleaved, &stride);
  if (rows == nullptr || stride < 0) refuse(source, "corrupt HEIF: no colors");
  const std::size_t width = decoded.image.width();
  if (has_alpha) decoded.alpha = Tensor<std::uint8_t>(Shape{decoded.image.height(), width});
  for (std::size_t y = 0; y < decoded.image.height(); ++y) {
    const std::uint8_t* in = rows + y * static_cast<std::size_t>(stride);
    std::uint8_t* const rgb = decoded.image.row(y);
    if (!has_alpha) {
      std::copy_n(in, 3 * width, rgb);
      continue;
    }
    for (std::size_t x = 0; x < width; ++x, in += 4) {
      std::copy_n(in, 3, rgb + 3 * x);
      decoded.alpha.data()[y * width + x] = in[3];
    }
  }
}

/// Pillow's RGBa to RGBA.
void divide_by_alpha(Decoded& decoded) {
  for (std::size_t i = 0; i < decoded.alpha.num_elements(); ++i) {
    const int alpha = decoded.alpha.data()[i];
    if (alpha == 0 || alpha == 255) continue;
    std::uint8_t* const rgb = decoded.image.data() + 3 * i;
    for (int c = 0; c < 3; ++c) rgb[c] = static_cast<std::uint8_t>(std::min(255, 255 * rgb[c] / alpha));
  }
}

}  // namespace

void open_heif() {
  heif();
}

Decoded decode_heif(const Source& source) {
  open_for(source, "HEIF", open_heif);
  const ContextPointer context(heif().heif_context_alloc());
  if (context == nullptr) throw std::bad_alloc();
  heif().heif_context_set_max_decoding_threads(context.get(), 0);  // in the calling thread
  require(source, heif().heif_context_read_from_memory_without_copy(context.get(), source.bytes.data(),
                                                                    source.bytes.size(), nullptr));
  heif_image_handle* primary = nullptr;
  require(source, heif().heif_context_get_primary_image_handle(context.get(), &primary));
  const HandlePointer handle(primary);
  check_size(source, static_cast<std::uint64_t>(std::max(0, heif().heif_image_handle_get_width(primary))),
             static_cast<std::uint64_t>(std::max(0, heif().heif_image_handle_get_height(primary))));

  const bool has_alpha = heif().heif_image_handle_has_alpha_channel(primary) != 0;
  const ImagePointer image = decode(source, primary, has_alpha);
  // The size of the video frame may differ from the header.
  const auto width = static_cast<std::uint64_t>(
      std::max(0, heif().heif_image_get_width(image.get(), heif_channel_interleaved)));
  const auto height = static_cast<std::uint64_t>(
      std::max(0, heif().heif_image_get_height(image.get(), heif_channel_interleaved)));
  check_size(source, width, height);
  Decoded decoded;  // the EXIF orientation is for readers that ignore the container's
  decoded.image = Image(height, width);
  copy_pixels(source, image.get(), has_alpha, decoded);
  if (has_alpha && heif().heif_image_handle_is_premultiplied_alpha(primary) != 0) divide_by_alpha(decoded);
  return decoded;
}

}  // namespace vit::internal::codecs
