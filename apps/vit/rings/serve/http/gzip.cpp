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
  std::optional<bool> any;  // of *
  while (!header.empty()) {
    const std::string_view item = header.substr(0, header.find(','));
    header.remove_prefix(std::min(item.size() + 1, header.size()));
    const std::string_view name = header_trimmed(item.substr(0, item.find(';')));
    std::string_view weight = item.substr(std::min(item.find(';'), item.size()));
    const std::size_t equals = weight.find('=');
    weight = equals == std::string_view::npos ? "1" : header_trimmed(weight.substr(equals + 1));
    const bool is_taken = weight.find_first_not_of("0.") != std::string_view::npos;
    if (equal_ignoring_case(name, "gzip") || equal_ignoring_case(name, "x-gzip")) return is_taken;
    if (name == "*") any = is_taken;
  }
  return any.value_or(false);
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
