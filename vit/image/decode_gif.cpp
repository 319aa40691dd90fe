// GIF: the first image on its canvas, as in Pillow. giflib reads the structure, the pixels are decoded
// here.
#include <algorithm>
#include <array>
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

int read_stream(GifFileType* gif, GifByteType* out, int count) {
  Stream& stream = *static_cast<Stream*>(gif->UserData);
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

/// Reads one extension; returns the transparent index if it is a graphic control with one.
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

/// Unpacks the codes of an image (LZW) as strictly as Pillow: giflib accepts undefined codes
/// and truncated images.
class PixelReader {
 public:
  /// `stream` is positioned after the first byte of the data, the width of a pixel.
  PixelReader(const Source& source, const Stream& stream)
      : source_(source),
        bytes_(stream.bytes.subspan(stream.position)),
        pixel_bits_(stream.bytes[stream.position - 1]) {
    reset();
  }

  void read(std::span<std::uint8_t> row) {
    for (std::uint8_t& pixel : row) {
      if (num_pending_ == 0) expand();
      pixel = pending_[--num_pending_];
    }
  }

 private:
  static constexpr unsigned kMaxBits = 12;
  static constexpr std::size_t kTableSize = std::size_t{1} << kMaxBits;

  unsigned clear() const { return 1u << pixel_bits_; }

  void reset() {
    next_ = clear() + 2;
    code_bits_ = pixel_bits_ + 1;
    is_first_ = true;
  }

  /// The next byte of the blocks; empty blocks are skipped.
  std::uint8_t byte() {
    while (block_left_ == 0) {
      if (position_ >= bytes_.size() || bytes_.size() - position_ - 1 < bytes_[position_])
        refuse(source_, "truncated GIF: the data end before the image does");
      block_left_ = bytes_[position_++];
    }
    --block_left_;
    return bytes_[position_++];
  }

  unsigned code() {
    for (; num_bits_ < code_bits_; num_bits_ += 8) bits_ |= static_cast<unsigned>(byte()) << num_bits_;
    const unsigned code = bits_ & ((1u << code_bits_) - 1);
    bits_ >>= code_bits_;
    num_bits_ -= code_bits_;
    return code;
  }

  /// Puts the pixels of the next code into pending_, the last one first.
  void expand() {
    unsigned code = this->code();
    for (; code == clear(); code = this->code()) reset();
    if (code == clear() + 1)
      refuse(source_, "truncated GIF: the end code comes before the image is complete");
    if (code > (is_first_ ? clear() : next_)) refuse(source_, "corrupt GIF: an undefined code");
    const unsigned whole = code;
    if (!is_first_ && code == next_) {  // the previous pixels, and the first of them again
      pending_[num_pending_++] = first_pixel_;
      code = last_;
    }
    for (; code >= clear(); code = prefix_[code]) pending_[num_pending_++] = suffix_[code];
    first_pixel_ = static_cast<std::uint8_t>(code);
    pending_[num_pending_++] = first_pixel_;
    if (!is_first_ && next_ < kTableSize) {
      suffix_[next_] = first_pixel_;
      prefix_[next_] = static_cast<std::uint16_t>(last_);
      if (next_ == (1u << code_bits_) - 1 && code_bits_ < kMaxBits) ++code_bits_;
      ++next_;
    }
    is_first_ = false;
    last_ = whole;
  }

  const Source& source_;
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  std::size_t block_left_ = 0;
  unsigned pixel_bits_, code_bits_ = 0;
  unsigned bits_ = 0, num_bits_ = 0;
  unsigned next_ = 0;             // the code that will be defined next
  unsigned last_ = 0;             // the last code
  bool is_first_ = true;          // since the table was cleared
  std::uint8_t first_pixel_ = 0;  // of the last code
  std::array<std::uint16_t, kTableSize> prefix_{};
  std::array<std::uint8_t, kTableSize> suffix_{};
  std::array<std::uint8_t, kTableSize + 1> pending_{};  // every code is longer than the one it extends
  std::size_t num_pending_ = 0;
};

/// Reads the rows of the image into the canvas, in the order of the file.
void read_rows(const GifImageDesc& at, PixelReader& pixels, Canvas& canvas) {
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
      pixels.read({to, static_cast<std::size_t>(at.Width)});
    }
  }
}

/// The color of every index: from the image's own table, else the file's, else gray. Missing entries are
/// black.
void fill_palette(const GifFileType& gif, std::uint8_t (&palette)[256][3]) {
  const ColorMapObject* const own = gif.Image.ColorMap;
  const ColorMapObject* const map = own != nullptr ? own : gif.SColorMap;
  bool is_grey = true;  // a table of i, i, i counts as none
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
  const auto pixels = std::make_unique<PixelReader>(source, stream);
  read_rows(at, *pixels, canvas);

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
