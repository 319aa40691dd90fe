// JPEG 2000 through OpenJPEG, tile by tile, as Pillow reads it. Files that Pillow shows in wrong colors, and
// files of disproportionate cost, are refused before OpenJPEG reads them.
#include <algorithm>
#include <cstring>
#include <memory>

#include <openjpeg.h>

#include "vit/base/tensor.h"
#include "vit/image/codecs.h"

namespace vit::internal::codecs {

namespace {

/// Walks the boxes from `bytes`, up to the end or to one that leaves it; calls visit(type, contents).
template <typename Visit>
void for_each_box(std::span<const std::uint8_t> bytes, Visit visit) {
  while (bytes.size() >= 8) {
    std::uint64_t length = be32(bytes.data());
    const std::uint32_t type = be32(bytes.data() + 4);
    std::size_t header = 8;
    if (length == 1) {
      if (bytes.size() < 16) return;
      length = std::uint64_t{be32(bytes.data() + 8)} << 32 | be32(bytes.data() + 12);
      header = 16;
    } else if (length == 0) {
      length = bytes.size();
    }
    if (length < header || length > bytes.size()) return;
    visit(type, bytes.subspan(header, length - header));
    bytes = bytes.subspan(length);
  }
}

constexpr std::uint32_t box_type(const char (&name)[5]) {
  return static_cast<std::uint32_t>(name[0]) << 24 | static_cast<std::uint32_t>(name[1]) << 16 |
         static_cast<std::uint32_t>(name[2]) << 8 | static_cast<std::uint32_t>(name[3]);
}

/// Part of a file.
struct Part {
  std::size_t offset = 0;
  std::size_t length = 0;
};

Part find_codestream(const Source& source) {
  if (source.bytes[0] == 0xFF) return {.length = source.bytes.size()};
  std::span<const std::uint8_t> codestream;
  bool special = false;
  for_each_box(source.bytes, [&](std::uint32_t type, std::span<const std::uint8_t> contents) {
    if (type == box_type("jp2c") && codestream.empty()) codestream = contents;
    if (type != box_type("jp2h")) return;
    for_each_box(contents, [&](std::uint32_t inner, std::span<const std::uint8_t> data) {
      constexpr std::uint32_t kRgb = 16;
      constexpr std::uint32_t kGrey = 17;
      if (inner == box_type("pclr")) special = true;
      if (inner == box_type("colr") && data.size() >= 7 && data[0] == 1) {
        const std::uint32_t space = be32(data.data() + 3);
        special = special || (space != kRgb && space != kGrey);
      }
    });
  });
  if (codestream.empty()) refuse(source, "truncated JPEG 2000: no whole codestream");
  if (special)
    refuse_unsupported(source,
                       "JPEG 2000 with a palette or a color space other than RGB and gray is not supported");
  return {.offset = static_cast<std::size_t>(codestream.data() - source.bytes.data()),
          .length = codestream.size()};
}

/// The file as OpenJPEG reads it.
struct Stream {
  std::span<const std::uint8_t> bytes;
  std::size_t position = 0;
};

OPJ_SIZE_T read_stream(void* out, OPJ_SIZE_T count, void* user) {
  Stream& stream = *static_cast<Stream*>(user);
  const std::size_t got = std::min(count, stream.bytes.size() - stream.position);
  constexpr auto kEnd = static_cast<OPJ_SIZE_T>(-1);
  if (got == 0) return kEnd;
  std::memcpy(out, stream.bytes.data() + stream.position, got);
  stream.position += got;
  return got;
}

OPJ_BOOL seek_stream(OPJ_OFF_T offset, void* user) {
  Stream& stream = *static_cast<Stream*>(user);
  if (offset < 0 || static_cast<std::uint64_t>(offset) > stream.bytes.size()) return OPJ_FALSE;
  stream.position = static_cast<std::size_t>(offset);
  return OPJ_TRUE;
}

OPJ_OFF_T skip_stream(OPJ_OFF_T count, void* user) {
  const auto position = static_cast<OPJ_OFF_T>(static_cast<Stream*>(user)->position);
  return seek_stream(position + count, user) == OPJ_TRUE ? count : -1;
}

/// Keeps the first message: later ones report its consequences.
void keep_message(const char* text, void* user) {
  std::string& message = *static_cast<std::string*>(user);
  if (!message.empty()) return;
  message = text;
  while (!message.empty() && (message.back() == '\n' || message.back() == '.')) message.pop_back();
}

template <typename T, void (*release)(T*)>
struct Release {
  void operator()(T* object) const { release(object); }
};
using CodecPointer = std::unique_ptr<opj_codec_t, Release<opj_codec_t, opj_destroy_codec>>;
using StreamPointer = std::unique_ptr<opj_stream_t, Release<opj_stream_t, opj_stream_destroy>>;
using ImagePointer = std::unique_ptr<opj_image_t, Release<opj_image_t, opj_image_destroy>>;

/// The position of a tile in the image, and its bytes: one plane per component.
struct Tile {
  OPJ_UINT32 index = 0;
  OPJ_UINT32 num_bytes = 0;
  OPJ_INT32 left = 0;
  OPJ_INT32 top = 0;
  OPJ_INT32 right = 0;
  OPJ_INT32 bottom = 0;
  OPJ_UINT32 num_components = 0;
};

class Decoder {
 public:
  explicit Decoder(const Source& source) : source_(source), data_{.bytes = source.bytes} {
    codec_.reset(opj_create_decompress(source.bytes[0] == 0xFF ? OPJ_CODEC_J2K : OPJ_CODEC_JP2));
    constexpr OPJ_SIZE_T kBufferBytes = OPJ_SIZE_T{1} << 16;
    stream_.reset(opj_stream_create(kBufferBytes, OPJ_TRUE));
    if (codec_ == nullptr || stream_ == nullptr) throw std::bad_alloc();
    opj_set_error_handler(codec_.get(), keep_message, &message_);
    opj_set_warning_handler(codec_.get(), nullptr, nullptr);
    opj_set_info_handler(codec_.get(), nullptr, nullptr);
    opj_stream_set_user_data(stream_.get(), &data_, nullptr);
    opj_stream_set_user_data_length(stream_.get(), source.bytes.size());
    opj_stream_set_read_function(stream_.get(), read_stream);
    opj_stream_set_seek_function(stream_.get(), seek_stream);
    opj_stream_set_skip_function(stream_.get(), skip_stream);
  }

  Decoded decode() {
    read_header();
    Decoded decoded;
    decoded.image = Image(height_, width_);
    if (num_components_ % 2 == 0) decoded.alpha = Tensor<std::uint8_t>(Shape{height_, width_});
    while (true) {
      Tile tile;
      OPJ_BOOL is_tile = OPJ_FALSE;
      require(opj_read_tile_header(codec_.get(), stream_.get(), &tile.index, &tile.num_bytes, &tile.left,
                                   &tile.top, &tile.right, &tile.bottom, &tile.num_components, &is_tile));
      if (is_tile == OPJ_FALSE) break;
      read_tile(tile, decoded);
    }
    require(opj_end_decompress(codec_.get(), stream_.get()));
    return decoded;
  }

 private:
  void require(OPJ_BOOL success) const {
    if (success == OPJ_TRUE) return;
    refuse(source_, "corrupt JPEG 2000: ", message_.empty() ? "unreadable" : message_);
  }

  /// check_codestream() has checked the size and the components; OpenJPEG's values are used.
  void read_header() {
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    require(opj_setup_decoder(codec_.get(), &parameters));
    opj_image_t* image = nullptr;
    const OPJ_BOOL success = opj_read_header(stream_.get(), codec_.get(), &image);
    image_.reset(image);
    require(success);
    width_ = image->x1 - image->x0;
    height_ = image->y1 - image->y0;
    num_components_ = image->numcomps;
    check_size(source_, width_, height_);
    const std::span<const opj_image_comp_t> components(image->comps, num_components_);
    for (const opj_image_comp_t& component : components) {
      constexpr OPJ_UINT32 kMaxBits = 16;
      if (component.dx != 1 || component.dy != 1 || component.prec < 1 || component.prec > kMaxBits)
        refuse(source_, "corrupt JPEG 2000: the components changed");
      scales_.push_back({.bits = component.prec,
                         .is_signed = component.sgnd != 0,
                         .is_wide_grey = num_components_ == 1 && component.prec > 8});
    }
    constexpr std::size_t kMaxComponents = 4;  // gray or RGB, with or without opacity
    if (scales_.empty() || scales_.size() > kMaxComponents)
      refuse(source_, "corrupt JPEG 2000: the components changed");
  }

  void read_tile(const Tile& tile, Decoded& decoded) {
    const bool is_inside = tile.left >= 0 && tile.top >= 0 && tile.left < tile.right &&
                           tile.top < tile.bottom && static_cast<std::size_t>(tile.right) <= width_ &&
                           static_cast<std::size_t>(tile.bottom) <= height_;
    const auto tile_width = static_cast<std::size_t>(tile.right - tile.left);
    const auto tile_height = static_cast<std::size_t>(tile.bottom - tile.top);
    std::size_t pixel_bytes = 0;
    for (const Scale& scale : scales_) pixel_bytes += scale.num_bytes();
    if (!is_inside || tile.num_components != num_components_ ||
        tile.num_bytes != tile_width * tile_height * pixel_bytes) {
      refuse(source_, "corrupt JPEG 2000: tile ", tile.index, " lies outside the image");
    }
    if (tile.num_bytes > tile_.num_elements()) {
      tile_ = {};
      tile_ = Tensor<std::uint8_t>(Shape{tile.num_bytes});
    }
    require(opj_decode_tile_data(codec_.get(), tile.index, tile_.data(), tile.num_bytes, stream_.get()));
    const std::size_t start =
        static_cast<std::size_t>(tile.top) * width_ + static_cast<std::size_t>(tile.left);
    const std::uint8_t* plane = tile_.data();
    for (std::size_t c = 0; c < scales_.size(); ++c) {
      const bool is_alpha = c + 1 == scales_.size() && !decoded.alpha.empty();
      const std::size_t num_copies = !is_alpha && num_components_ <= 2 ? 3 : 1;  // gray is all three colors
      const std::size_t step = is_alpha ? 1 : 3;
      std::uint8_t* const out =
          is_alpha ? decoded.alpha.data() + start : decoded.image.data() + 3 * start + c;
      for (std::size_t y = 0; y < tile_height; ++y) {
        for (std::size_t x = 0; x < tile_width; ++x, plane += scales_[c].num_bytes())
          std::fill_n(out + (y * width_ + x) * step, num_copies, scales_[c].level(plane));
      }
    }
  }

  /// How a sample of a component is converted to 8 bits: shifted with rounding, and
  /// wrapping on overflow, as in Pillow. Gray of more than 8 bits is first scaled to 16, then clamped to 255.
  struct Scale {
    OPJ_UINT32 bits = 8;
    bool is_signed = false;
    bool is_wide_grey = false;

    std::size_t num_bytes() const { return bits > 8 ? 2 : 1; }
    std::uint8_t level(const std::uint8_t* sample) const {
      std::uint32_t value = sample[0];
      if (bits > 8) {
        std::uint16_t wide = 0;  // OpenJPEG writes the byte order of the machine
        std::memcpy(&wide, sample, sizeof wide);
        value = wide;
      }
      if (is_signed) value += 1u << (bits - 1);
      if (is_wide_grey) return static_cast<std::uint8_t>(std::min((value << (16 - bits)) & 0xFFFFu, 255u));
      if (bits <= 8) return static_cast<std::uint8_t>(value << (8 - bits));
      return static_cast<std::uint8_t>((value + (1u << (bits - 9))) >> (bits - 8));
    }
  };

  const Source& source_;
  Stream data_;
  std::string message_;  // OpenJPEG's first message
  CodecPointer codec_;
  StreamPointer stream_;
  ImagePointer image_;
  std::size_t width_ = 0;
  std::size_t height_ = 0;
  std::size_t num_components_ = 0;
  std::vector<Scale> scales_;  // per component
  Tensor<std::uint8_t> tile_;  // the samples of one tile, planes without gaps
};

}  // namespace

Decoded decode_jpeg2000(const Source& source) {
  const Part codestream = find_codestream(source);
  check_codestream(source, source.bytes.subspan(codestream.offset), codestream.length);
  return Decoder(source).decode();
}

}  // namespace vit::internal::codecs
