// JPEG 2000 through OpenCV (OpenJPEG). What OpenCV would read differently from Pillow, or complain about on
// stderr, is refused here before OpenCV sees it.
#include <algorithm>
#include <cstring>
#include <mutex>

#include <opencv2/core.hpp>
#include <opencv2/core/utils/logger.hpp>
#include <opencv2/imgcodecs.hpp>

#include "vit/image/codecs.h"

#ifdef VIT_IMGCODECS_FILE
#include <dlfcn.h>
#endif

namespace vit::codecs {

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

std::span<const std::uint8_t> find_codestream(const Source& source) {
  if (source.bytes[0] == 0xFF) return source.bytes;
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
    refuse(source, "JPEG 2000 with a palette or a colour space other than RGB and grey is not read");
  return codestream;
}

/// Checks sizes and components, and that every tile part lies inside the file. Returns the number of
/// components.
std::size_t check_codestream(const Source& source, std::span<const std::uint8_t> code) {
  constexpr std::uint32_t kSiz = 0xFF51;
  constexpr std::uint32_t kTilePart = 0xFF90;
  constexpr std::uint32_t kEnd = 0xFFD9;
  if (code.size() < 42 || be16(code.data() + 2) != kSiz)
    refuse(source, "truncated JPEG 2000: no whole header");
  const std::uint8_t* const siz = code.data() + 4;  // from its length on
  const std::uint64_t width = std::uint64_t{be32(siz + 4)} - std::min(be32(siz + 12), be32(siz + 4));
  const std::uint64_t height = std::uint64_t{be32(siz + 8)} - std::min(be32(siz + 16), be32(siz + 8));
  check_size(source, width, height);
  const std::size_t count = be16(siz + 36);
  if (be16(siz) < 38 + 3 * count || code.size() < 42 + 3 * count)
    refuse(source, "truncated JPEG 2000: no whole header");
  if (count != 1 && count != 3 && count != 4)
    refuse(source, "JPEG 2000 with ", count, " components is not read");
  for (std::size_t c = 0; c < count; ++c) {
    const std::uint8_t* const component = siz + 38 + 3 * c;
    if (component[0] != 7 || component[1] != 1 || component[2] != 1) {
      refuse(source, "JPEG 2000 with components other than 8 bits, unsigned, in full resolution is not read");
    }
  }
  for (std::size_t at = 2; at + 2 <= code.size();) {
    const std::uint32_t marker = be16(code.data() + at);
    if (marker == kEnd) return count;
    std::uint64_t length = 0;
    if (marker == kTilePart) {
      if (at + 12 > code.size()) break;
      length = be32(code.data() + at + 6);  // of the whole tile part; 0 = up to the end
      if (length == 0) return count;
    } else {
      if (at + 4 > code.size()) break;
      length = 2 + std::uint64_t{be16(code.data() + at + 2)};
    }
    if (length < 4 || length > code.size() - at) break;
    at += length;
    if (at == code.size()) return count;  // only the end marker is missing
  }
  refuse(source, "truncated JPEG 2000: the data end before the picture does");
}

using Imdecode = cv::Mat (*)(cv::InputArray, int);

#ifdef VIT_IMGCODECS_FILE

/// cv::imdecode, found at the first picture that needs it: OpenCV's codecs bring some 130 libraries along,
/// which cost every start of a program 80 ms and 44 MB. Throws Error where they cannot be loaded.
Imdecode find_imdecode() {
  static const Imdecode found = [] {
    void* const library = ::dlopen(VIT_IMGCODECS_FILE, RTLD_NOW | RTLD_LOCAL);
    VIT_CHECK(library != nullptr, kWhere,
              "JPEG 2000 needs OpenCV's codecs, which cannot be loaded: ", ::dlerror());
    void* const symbol =
        ::dlsym(library, "_ZN2cv8imdecodeERKNS_11_InputArrayEi");  // as the compilers spell it
    VIT_CHECK(symbol != nullptr, kWhere, "JPEG 2000 needs cv::imdecode, which ", VIT_IMGCODECS_FILE,
              " lacks");
    return reinterpret_cast<Imdecode>(symbol);
  }();
  return found;
}

#else

Imdecode find_imdecode() {
  return &cv::imdecode;
}

#endif

cv::Mat decode_quietly(std::span<const std::uint8_t> bytes) {
  const Imdecode imdecode = find_imdecode();
  static std::mutex mutex;  // OpenCV's log level belongs to the process
  const std::lock_guard lock(mutex);
  const auto level = cv::utils::logging::getLogLevel();
  cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
  cv::Mat pixels;
  try {
    const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8UC1,
                          const_cast<std::uint8_t*>(bytes.data()));
    pixels = imdecode(encoded, cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception&) {
    pixels.release();
  }
  cv::utils::logging::setLogLevel(level);
  return pixels;
}

}  // namespace

Decoded decode_jpeg2000(const Source& source) {
  if (source.bytes.size() > 0x7FFFFFFF) refuse(source, "JPEG 2000 files above 2 GiB are not read");
  check_codestream(source, find_codestream(source));
  const cv::Mat pixels = decode_quietly(source.bytes);
  if (pixels.empty() || pixels.depth() != CV_8U) refuse(source, "corrupt JPEG 2000");
  const auto channels = static_cast<std::size_t>(pixels.channels());
  Decoded decoded;
  decoded.image = Image(static_cast<std::size_t>(pixels.rows), static_cast<std::size_t>(pixels.cols));
  if (channels == 4) decoded.alpha.resize(decoded.image.height() * decoded.image.width());
  for (std::size_t y = 0; y < decoded.image.height(); ++y) {
    const std::uint8_t* in = pixels.ptr<std::uint8_t>(static_cast<int>(y));
    std::uint8_t* rgb = decoded.image.row(y);
    for (std::size_t x = 0; x < decoded.image.width(); ++x, in += channels, rgb += 3) {
      for (std::size_t c = 0; c < 3; ++c)
        rgb[c] = in[channels == 1 ? 0 : 2 - c];  // OpenCV's order is B, G, R
      if (channels == 4) decoded.alpha[y * decoded.image.width() + x] = in[3];
    }
  }
  return decoded;
}

}  // namespace vit::codecs
