#include "apps/vit/ground/text_format.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "vit/base/utf8.h"

namespace vit::app {
namespace {

constexpr char32_t kReplacement = 0xFFFD;

/// The code point at the start of `text` (not empty); U+FFFD for a byte that is not UTF-8.
internal::CodePoint decode_first(std::string_view text) {
  return internal::first_code_point(text).value_or(internal::CodePoint{kReplacement, 1});
}

/// Marks, embeddings, overrides and isolates of the bidirectional algorithm (Unicode, UAX 9), and the two
/// separators that end a line.
bool moves_text(char32_t code) {
  return code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x2028 && code <= 0x202E) ||
         (code >= 0x2066 && code <= 0x2069);
}

}  // namespace

JsonWriter& write_edges(JsonWriter& json, const std::array<double, 4>& edges) {
  json.begin_array();
  for (const double edge : edges) json.value(static_cast<float>(edge));
  return json.end_array();
}

JsonWriter& write_box(JsonWriter& json, const Box& box) {
  return write_edges(json, {box.x0, box.y0, box.x1, box.y1});
}

std::string_view leading_json_string(std::string_view text) {
  if (!text.starts_with('"')) return {};
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return text.substr(0, i + 1);
    }
  }
  return {};
}

std::string csv_field(std::string_view value) {
  if (value.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(value);
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string printable(std::string_view value) {
  std::string out;
  while (!value.empty()) {
    const internal::CodePoint decoded = decode_first(value);
    const std::string_view bytes = value.substr(0, decoded.bytes);
    const bool is_control = decoded.code < 0x20 || (decoded.code >= 0x7F && decoded.code < 0xA0);
    const bool is_broken = decoded.code == kReplacement && bytes.size() == 1;
    if (decoded.code == '\n') {
      out += "\\n";
    } else if (decoded.code == '\t') {
      out += "\\t";
    } else if (is_control || is_broken || moves_text(decoded.code)) {
      for (const char c : bytes) {
        std::array<char, 8> escaped;
        std::snprintf(escaped.data(), escaped.size(), "\\x%02x",
                      static_cast<unsigned>(static_cast<unsigned char>(c)));
        out += escaped.data();
      }
    } else {
      out += bytes;
    }
    value.remove_prefix(decoded.bytes);
  }
  return out;
}

std::u32string decode_utf8(std::string_view value) {
  std::u32string out;
  while (!value.empty()) {
    const internal::CodePoint decoded = decode_first(value);
    out += decoded.code;
    value.remove_prefix(decoded.bytes);
  }
  return out;
}

std::string with_thousands(unsigned long long value) {
  std::string out = std::to_string(value);
  for (std::size_t i = out.size(); i > 3; i -= 3) out.insert(i - 3, 1, ',');
  return out;
}

std::string with_unit(double value) {
  constexpr std::array<const char*, 5> kUnits{"", " k", " M", " G", " T"};
  std::size_t unit = 0;
  while (value >= 999.95 && unit + 1 < kUnits.size()) {
    value /= 1000.0;
    ++unit;
  }
  std::array<char, 32> out;
  std::snprintf(out.data(), out.size(),
                unit == 0    ? "%.0f%s"
                : value < 10 ? "%.2f%s"
                             : "%.1f%s",
                value, kUnits[unit]);
  return out.data();
}

}  // namespace vit::app
