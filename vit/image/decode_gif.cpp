// GIF through giflib: the first image on its canvas, as Pillow shows it.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include <gif_lib.h>

#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

/// The file as giflib reads it.
struct Stream {
  std::span<const std::uint8_t> bytes;
  std::size_t position = 0;
};

/// Behind the end there is one more byte, zero, which ends a chain of blocks: an image whose last block is
/// whole needs no terminator.
int read_stream(GifFileType* gif, GifByteType* out, int count) {
  Stream& stream = *static_cast<Stream*>(gif->UserData);
  if (stream.position >= stream.bytes.size() && count == 1) {
    *out = 0;
    return 1;
  }
  const std::size_t got = std::min(static_cast<std::size_t>(count), stream.bytes.size() - stream.position);
  std::memcpy(out, stream.bytes.data() + stream.position, got);
  stream.position += got;
  return static_cast<int>(got);
}

struct Close {
  void operator()(GifFileType* gif) const { DGifCloseFile(gif, nullptr); }
};
using GifPointer = std::unique_ptr<GifFileType, Close>;

[[noreturn]] void refuse_data(const Source& source, int error) {
  const char* const message = GifErrorString(error);
  refuse(source, "truncated or corrupt GIF: ", message == nullptr ? "unreadable" : message);
}

/// Reads one extension; returns the transparent index if it is a graphic control that names one.
std::optional<std::uint8_t> read_extension(const Source& source, GifFileType* gif) {
  std::optional<std::uint8_t> transparent;
  int function = 0;
  GifByteType* block = nullptr;
  int status = DGifGetExtension(gif, &function, &block);
  for (bool first = true; status == GIF_OK && block != nullptr; first = false) {
    constexpr int kTransparencyFlag = 1;
    const bool is_whole = block[0] >= 4;
    if (first && function == GRAPHICS_EXT_FUNC_CODE && is_whole && (block[1] & kTransparencyFlag) != 0)
      transparent = block[4];
    status = DGifGetExtensionNext(gif, &block);
  }
  if (status != GIF_OK) refuse_data(source, gif->Error);
  return transparent;
}

/// Moves to the first image; returns the transparent index in force there.
std::optional<std::uint8_t> find_image(const Source& source, GifFileType* gif, const Stream& stream) {
  std::optional<std::uint8_t> transparent;
  while (true) {
    GifRecordType type = UNDEFINED_RECORD_TYPE;
    const bool is_known = DGifGetRecordType(gif, &type) == GIF_OK;
    if (stream.position >= stream.bytes.size()) refuse(source, "truncated GIF: it has no image");
    if (!is_known) continue;  // stray bytes between the blocks
    if (type == TERMINATE_RECORD_TYPE) refuse(source, "corrupt GIF: it has no image");
    if (type == IMAGE_DESC_RECORD_TYPE) break;
    if (type == EXTENSION_RECORD_TYPE) {
      const auto named = read_extension(source, gif);
      if (named) transparent = named;
    }
  }
  if (DGifGetImageDesc(gif) != GIF_OK) refuse_data(source, gif->Error);
  return transparent;
}

/// Canvas of palette indices, (H, W).
struct Canvas {
  std::size_t width = 0;
  std::size_t height = 0;
  Tensor<std::uint8_t> indices;
};

/// Reads the rows of the image into the canvas, in the order of the file. An image that says itself that it
/// ends early is shown as far as it goes.
void read_rows(const Source& source, GifFileType* gif, Canvas& canvas) {
  const GifImageDesc& at = gif->Image;
  struct Pass {
    int first;
    int step;
  };
  constexpr Pass kInterlaced[] = {{0, 8}, {4, 8}, {2, 4}, {1, 2}};
  constexpr Pass kInOrder[] = {{0, 1}};
  const std::span<const Pass> passes =
      at.Interlace ? std::span<const Pass>(kInterlaced) : std::span<const Pass>(kInOrder);
  for (const Pass& pass : passes) {
    for (int row = pass.first; row < at.Height; row += pass.step) {
      std::uint8_t* const to = canvas.indices.data() + static_cast<std::size_t>(at.Top + row) * canvas.width +
                               static_cast<std::size_t>(at.Left);
      if (DGifGetLine(gif, to, at.Width) == GIF_OK) continue;
      if (gif->Error == D_GIF_ERR_EOF_TOO_SOON) return;
      refuse_data(source, gif->Error);
    }
  }
}

/// The color of every index: of the image's own table, else that of the file, else grey. What a table lacks
/// is black.
void fill_palette(const GifFileType& gif, std::uint8_t (&palette)[256][3]) {
  const ColorMapObject* const own = gif.Image.ColorMap;
  const ColorMapObject* const map = own != nullptr ? own : gif.SColorMap;
  bool is_grey = true;  // a table of i, i, i counts for none
  for (int i = 0; map != nullptr && i < map->ColorCount; ++i) {
    const GifColorType& color = map->Colors[i];
    is_grey = is_grey && color.Red == i && color.Green == i && color.Blue == i;
  }
  for (int i = 0; i < 256; ++i) {
    std::fill_n(palette[i], 3, static_cast<std::uint8_t>(is_grey ? i : 0));
    if (is_grey || i >= map->ColorCount) continue;
    palette[i][0] = map->Colors[i].Red;
    palette[i][1] = map->Colors[i].Green;
    palette[i][2] = map->Colors[i].Blue;
  }
}

}  // namespace

Decoded decode_gif(const Source& source) {
  Stream stream{.bytes = source.bytes};
  int error = 0;
  const GifPointer gif(DGifOpen(&stream, read_stream, &error));
  if (gif == nullptr) refuse_data(source, error);
  const auto transparent = find_image(source, gif.get(), stream);
  const GifImageDesc& at = gif->Image;
  if (at.Width == 0 || at.Height == 0) refuse(source, "corrupt GIF: an image without pixels");
  Canvas canvas;  // an image may reach beyond the canvas, which then grows
  canvas.width = static_cast<std::size_t>(std::max(gif->SWidth, at.Left + at.Width));
  canvas.height = static_cast<std::size_t>(std::max(gif->SHeight, at.Top + at.Height));
  check_size(source, canvas.width, canvas.height);
  canvas.indices = Tensor<std::uint8_t>(Shape{canvas.height, canvas.width});
  std::fill_n(canvas.indices.data(), canvas.indices.num_elements(), transparent.value_or(0));
  read_rows(source, gif.get(), canvas);

  std::uint8_t palette[256][3];
  fill_palette(*gif, palette);
  Decoded decoded;
  decoded.image = Image(canvas.height, canvas.width);
  if (transparent) decoded.alpha = Tensor<std::uint8_t>(Shape{canvas.height, canvas.width});
  for (std::size_t i = 0; i < canvas.indices.num_elements(); ++i) {
    const std::uint8_t index = canvas.indices.data()[i];
    std::copy_n(palette[index], 3, decoded.image.data() + 3 * i);
    if (transparent) decoded.alpha.data()[i] = index == *transparent ? 0 : 255;
  }
  return decoded;
}

}  // namespace vit::internal::codecs
