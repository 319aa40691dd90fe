#include "apps/vit/ground/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "apps/vit/ground/header_text.h"

namespace vit::app {
namespace {

constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 64, kSpace = 65, kPad = 66;

constexpr std::array<std::uint8_t, 256> make_values() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kAlphabet.size(); ++i)
    values[static_cast<unsigned char>(kAlphabet[i])] = static_cast<std::uint8_t>(i);
  values['-'] = 62;
  values['_'] = 63;
  for (const char space : {' ', '\t', '\r', '\n'}) values[static_cast<unsigned char>(space)] = kSpace;
  values['='] = kPad;
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = make_values();

}  // namespace

std::optional<std::string> decode_base64(std::string_view text) {
  const auto value_at = [text](std::size_t i) { return kValues[static_cast<unsigned char>(text[i])]; };
  std::string out((text.size() + 3) / 4 * 3, '\0');
  char* end = out.data();
  const auto put = [&end](std::uint32_t bits, unsigned shift) { *end++ = static_cast<char>(bits >> shift); };
  std::uint32_t bits = 0;
  std::size_t digits = 0, pads = 0;
  for (std::size_t i = 0; i < text.size();) {
    if (digits % 4 == 0 && pads == 0 && i + 4 <= text.size()) {  // four digits at once, most often
      const std::uint32_t a = value_at(i), b = value_at(i + 1), c = value_at(i + 2), d = value_at(i + 3);
      if ((a | b | c | d) < kNone) {
        bits = a << 18 | b << 12 | c << 6 | d;
        for (const unsigned shift : {16u, 8u, 0u}) put(bits, shift);
        i += 4;
        continue;
      }
    }
    const std::uint8_t value = value_at(i++);
    if (value == kSpace) continue;
    if (value == kNone) return std::nullopt;
    if (value == kPad) {
      ++pads;
      continue;
    }
    if (pads > 0) return std::nullopt;
    bits = (bits << 6) | value;
    if (++digits % 4 == 0) {
      for (const unsigned shift : {16u, 8u, 0u}) put(bits, shift);
    }
  }
  const std::size_t rest = digits % 4;
  if (rest == 1 || (pads > 0 && (rest == 0 || rest + pads != 4))) return std::nullopt;
  if (rest == 2) put(bits, 4);
  if (rest == 3) {
    put(bits, 10);
    put(bits, 2);
  }
  out.resize(static_cast<std::size_t>(end - out.data()));
  return out;
}

std::string encode_base64(std::string_view bytes) {
  std::string out((bytes.size() + 2) / 3 * 4, '=');
  char* end = out.data();
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t count = std::min<std::size_t>(bytes.size() - i, 3);
    std::uint32_t bits = 0;
    for (std::size_t j = 0; j < count; ++j)
      bits |= std::uint32_t{static_cast<unsigned char>(bytes[i + j])} << (16 - 8 * j);
    for (std::size_t j = 0; j <= count; ++j) end[j] = kAlphabet[bits >> (18 - 6 * j) & 63];
    end += 4;
  }
  return out;
}

std::optional<DataUri> split_data_uri(std::string_view text) {
  constexpr std::string_view kScheme = "data:", kBase64 = ";base64";
  const std::size_t comma = text.find(',');
  if (!starts_ignoring_case(text, kScheme) || comma == std::string_view::npos) return std::nullopt;
  DataUri uri{.media_type = text.substr(kScheme.size(), comma - kScheme.size()),
              .data = text.substr(comma + 1)};
  if (uri.media_type.size() >= kBase64.size() &&
      equal_ignoring_case(uri.media_type.substr(uri.media_type.size() - kBase64.size()), kBase64)) {
    uri.media_type.remove_suffix(kBase64.size());
    uri.is_base64 = true;
  }
  return uri;
}

bool is_url(std::string_view text) {
  if (starts_ignoring_case(text, "file:") || starts_ignoring_case(text, "blob:")) return true;
  return text.substr(0, 32).find("://") != std::string_view::npos;
}

}  // namespace vit::app
