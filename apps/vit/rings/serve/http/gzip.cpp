#include "apps/vit/rings/serve/http/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "apps/vit/ground/header_text.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr std::size_t kLeastBytes = 4096;                    // of a text: below, headers weigh as much
constexpr std::size_t kSampleBytes = std::size_t{64} << 10;  // that show whether it pays
constexpr double kMostOfSample = 0.7;  // digits shrink to half, base64 to three quarters
constexpr int kLevel = 1;              // five times as fast as 6, a tenth longer
constexpr int kGzipWindow = 15 + 16;   // 32 KiB, with the header of gzip
constexpr int kMemoryLevel = 8;

struct Deflater {
  z_stream stream{};
  Deflater() {
    VIT_CHECK(
        deflateInit2(&stream, kLevel, Z_DEFLATED, kGzipWindow, kMemoryLevel, Z_DEFAULT_STRATEGY) == Z_OK,
        (Where{"serve", ErrorKind::io}), "zlib cannot be initialized");
  }
  ~Deflater() { deflateEnd(&stream); }
  Deflater(const Deflater&) = delete;
  Deflater& operator=(const Deflater&) = delete;

  std::string compress(std::string_view text) {
    deflateReset(&stream);
    std::string out(deflateBound(&stream, text.size()), '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in = static_cast<uInt>(text.size());
    stream.next_out = reinterpret_cast<Bytef*>(out.data());
    stream.avail_out = static_cast<uInt>(out.size());
    VIT_CHECK(deflate(&stream, Z_FINISH) == Z_STREAM_END, (Where{"serve", ErrorKind::io}),
              "zlib cannot compress an answer");
    out.resize(stream.total_out);
    return out;
  }
};

}  // namespace

bool accepts_gzip(std::string_view header) {
  for (const std::string_view name : {"gzip", "x-gzip", "*"}) {
    if (const std::optional<bool> is_taken = accepted(header, name)) return *is_taken;
  }
  return false;
}

std::optional<std::string> gzipped(std::string_view text) {
  if (text.size() < kLeastBytes || text.size() > std::numeric_limits<uInt>::max() / 2) return std::nullopt;
  Deflater deflater;
  const std::string_view sample = text.substr(0, kSampleBytes);
  std::string out = deflater.compress(sample);
  if (static_cast<double>(out.size()) > kMostOfSample * static_cast<double>(sample.size()))
    return std::nullopt;
  if (sample.size() < text.size()) out = deflater.compress(text);
  return out;
}

}  // namespace vit::app
