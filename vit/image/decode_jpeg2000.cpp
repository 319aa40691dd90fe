// JPEG 2000 through OpenCV (OpenJPEG). What OpenCV would read differently from Pillow, or complain about on
// stderr, is refused here before OpenCV sees it.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <iostream>
#include <mutex>
#include <streambuf>

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
    refuse(source, "JPEG 2000 with a palette or a colour space other than RGB and grey is not read");
  return {.offset = static_cast<std::size_t>(codestream.data() - source.bytes.data()),
          .length = codestream.size()};
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

/// Drops what a thread writes while it is inside OpenCV and hands on what the others write.
class Sieve : public std::streambuf {
 public:
  void set_target(std::streambuf* target) { target_ = target; }
  static thread_local bool inside_opencv;

 protected:
  int_type overflow(int_type c) override {
    if (inside_opencv) return traits_type::not_eof(c);
    return traits_type::eq_int_type(c, traits_type::eof())
               ? traits_type::not_eof(c)
               : target_.load()->sputc(traits_type::to_char_type(c));
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    return inside_opencv ? count : target_.load()->sputn(text, count);
  }
  int sync() override { return inside_opencv ? 0 : target_.load()->pubsync(); }

 private:
  std::atomic<std::streambuf*> target_ = nullptr;
};

thread_local bool Sieve::inside_opencv = false;

/// OpenCV says nothing in this thread while one lives. Its log has a level; that data cannot be decoded,
/// imdecode writes to std::cerr at any level. One lives at a time: log level and stream belong to the
/// process.
class Silence {
 public:
  Silence() : level_(cv::utils::logging::getLogLevel()) {
    cv::utils::logging::setLogLevel(cv::utils::logging::LOG_LEVEL_SILENT);
    Sieve::inside_opencv = true;
    std::streambuf* const buffer = std::cerr.rdbuf();
    // A stream that is not good writes nothing, and would be good again after a change of its buffer.
    if (buffer == nullptr || buffer == &sieve() || !std::cerr.good()) return;
    buffer_ = buffer;
    sieve().set_target(buffer);
    std::cerr.rdbuf(&sieve());
  }
  ~Silence() {
    if (buffer_ != nullptr && std::cerr.rdbuf() == &sieve()) std::cerr.rdbuf(buffer_);
    Sieve::inside_opencv = false;
    cv::utils::logging::setLogLevel(level_);
  }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  /// Never destroyed: another thread may be writing through it when its turn ends.
  static Sieve& sieve() {
    static Sieve& sieve = *new Sieve;
    return sieve;
  }

  cv::utils::logging::LogLevel level_;
  std::streambuf* buffer_ = nullptr;  // of std::cerr before; null where it was left alone
};

cv::Mat decode_quietly(std::span<const std::uint8_t> bytes) {
  const Imdecode imdecode = find_imdecode();
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  const Silence silence;
  try {
    const cv::Mat encoded(1, static_cast<int>(bytes.size()), CV_8UC1,
                          const_cast<std::uint8_t*>(bytes.data()));
    return imdecode(encoded, cv::IMREAD_UNCHANGED);
  } catch (const cv::Exception&) {
    return {};
  }
}

}  // namespace

Decoded decode_jpeg2000(const Source& source) {
  if (source.bytes.size() > 0x7FFFFFFF) refuse(source, "JPEG 2000 files above 2 GiB are not read");
  const Part codestream = find_codestream(source);
  check_codestream(source, source.bytes.subspan(codestream.offset), codestream.length);
  const cv::Mat pixels = decode_quietly(source.bytes);
  if (pixels.empty() || pixels.depth() != CV_8U) refuse(source, "corrupt JPEG 2000");
  const auto channels = static_cast<std::size_t>(pixels.channels());
  Decoded decoded;
  decoded.image = Image(static_cast<std::size_t>(pixels.rows), static_cast<std::size_t>(pixels.cols));
  if (channels == 4)
    decoded.alpha = Tensor<std::uint8_t>(Shape{decoded.image.height(), decoded.image.width()});
  for (std::size_t y = 0; y < decoded.image.height(); ++y) {
    const std::uint8_t* in = pixels.ptr<std::uint8_t>(static_cast<int>(y));
    std::uint8_t* rgb = decoded.image.row(y);
    for (std::size_t x = 0; x < decoded.image.width(); ++x, in += channels, rgb += 3) {
      for (std::size_t c = 0; c < 3; ++c)
        rgb[c] = in[channels == 1 ? 0 : 2 - c];  // OpenCV's order is B, G, R
      if (channels == 4) decoded.alpha.data()[y * decoded.image.width() + x] = in[3];
    }
  }
  return decoded;
}

}  // namespace vit::codecs
