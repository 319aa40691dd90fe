// WebP through libwebp; an animation yields its first image on its canvas.
#include <algorithm>
#include <cstring>
#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

int orientation_of(const WebPDemuxer* demuxer) {
  int exif = 0;
  int xmp = 0;
  WebPChunkIterator chunk{};
  if (WebPDemuxGetChunk(demuxer, "EXIF", 1, &chunk) != 0)
    exif = exif_orientation({chunk.chunk.bytes, chunk.chunk.size});
  WebPDemuxReleaseChunkIterator(&chunk);
  if (WebPDemuxGetChunk(demuxer, "XMP ", 1, &chunk) != 0)
    xmp = xmp_orientation({chunk.chunk.bytes, chunk.chunk.size});
  WebPDemuxReleaseChunkIterator(&chunk);
  return exif != 0 ? exif : xmp != 0 ? xmp : 1;
}

}  // namespace

Decoded decode_webp(const Source& source) {
  WebPBitstreamFeatures features{};
  if (WebPGetFeatures(source.bytes.data(), source.bytes.size(), &features) != VP8_STATUS_OK) {
    refuse(source, "truncated or corrupt WebP: no readable header");
  }
  check_size(source, static_cast<std::uint64_t>(features.width), static_cast<std::uint64_t>(features.height));

  const WebPData data{source.bytes.data(), source.bytes.size()};
  const std::unique_ptr<WebPDemuxer, void (*)(WebPDemuxer*)> demuxer(WebPDemux(&data), WebPDemuxDelete);
  if (demuxer == nullptr) refuse(source, "truncated or corrupt WebP");
  const std::uint64_t canvas_width = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_WIDTH);
  const std::uint64_t canvas_height = WebPDemuxGetI(demuxer.get(), WEBP_FF_CANVAS_HEIGHT);
  check_size(source, canvas_width, canvas_height);

  WebPAnimDecoderOptions options{};
  if (WebPAnimDecoderOptionsInit(&options) == 0)
    refuse_unsupported(source, "the version of libwebp differs from its header");
  options.color_mode = MODE_RGBA;
  const std::unique_ptr<WebPAnimDecoder, void (*)(WebPAnimDecoder*)> decoder(
      WebPAnimDecoderNew(&data, &options), WebPAnimDecoderDelete);
  std::uint8_t* canvas = nullptr;
  int end_of_frame = 0;
  if (decoder == nullptr || WebPAnimDecoderGetNext(decoder.get(), &canvas, &end_of_frame) == 0) {
    refuse(source, "truncated or corrupt WebP");
  }
  Decoded decoded;
  decoded.orientation = orientation_of(demuxer.get());
  decoded.image = Image(canvas_height, canvas_width);
  const std::size_t num_pixels = canvas_height * canvas_width;
  const bool has_alpha = (WebPDemuxGetI(demuxer.get(), WEBP_FF_FORMAT_FLAGS) & ALPHA_FLAG) != 0;
  if (has_alpha) decoded.alpha = Tensor<std::uint8_t>(Shape{canvas_height, canvas_width});
  for (std::size_t i = 0; i < num_pixels; ++i) {
    std::copy_n(canvas + 4 * i, 3, decoded.image.data() + 3 * i);
    if (has_alpha) decoded.alpha.data()[i] = canvas[4 * i + 3];
  }
  return decoded;
}

}  // namespace vit::internal::codecs
