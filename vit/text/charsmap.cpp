// Traversal of the double array, checked once when it is read and at every step.
#include "vit/text/charsmap.h"

#include <optional>

#include "vit/base/check.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

// A unit of the array: bit 31 marks a value; otherwise the label in bits 0 to 7, "a value is below" in bit 8,
// "the offset is in steps of 256" in bit 9, the offset above.
constexpr bool is_value(std::uint32_t unit) {
  return (unit >> 31) != 0;
}
constexpr std::uint32_t value_of(std::uint32_t unit) {
  return unit & 0x7FFFFFFFu;
}
constexpr std::uint32_t label_of(std::uint32_t unit) {
  return unit & 0x800000FFu;
}
constexpr bool has_value(std::uint32_t unit) {
  return ((unit >> 8) & 1) != 0;
}
constexpr std::uint32_t offset_of(std::uint32_t unit) {
  return (unit >> 10) << ((unit & (1u << 9)) >> 6);
}

std::uint32_t little_endian(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  }
  return value;
}

}  // namespace

Charsmap::Charsmap(std::string_view bytes, const Where& where, std::string_view name) {
  VIT_CHECK(bytes.size() >= 8, where, name, ": the map of characters ends too early");
  const std::size_t length = little_endian(bytes, 0);
  VIT_CHECK(length > 0 && length % 4 == 0 && length <= bytes.size() - 4, where, name,
            ": the map of characters states ", length, " bytes of ", bytes.size() - 4);
  units_.resize(length / 4);
  for (std::size_t i = 0; i < units_.size(); ++i) units_[i] = little_endian(bytes, 4 + 4 * i);
  replacements_ = bytes.substr(4 + length);
  if (!replacements_.ends_with('\0')) replacements_ += '\0';
  VIT_CHECK(is_utf8(replacements_), where, name,
            ": the replacements in the map of characters are not valid UTF-8");
  for (const std::uint32_t unit : units_) {
    if (!is_value(unit)) continue;
    const std::uint32_t value = value_of(unit);
    VIT_CHECK(
        value < replacements_.size() && (static_cast<unsigned char>(replacements_[value]) & 0xC0u) != 0x80,
        where, name, ": a value of the map of characters is ", value, ", beyond its ", replacements_.size(),
        " bytes of replacements or within a character");
  }
}

Charsmap::Prefix Charsmap::find(std::string_view text, Want want) const {
  Prefix found;
  std::size_t node = 0;
  std::uint32_t unit = units_[0];
  node ^= offset_of(unit);
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    node ^= byte;
    if (byte == 0 || node >= units_.size()) break;
    unit = units_[node];
    if (label_of(unit) != byte) break;
    node ^= offset_of(unit);
    if (!has_value(unit)) continue;
    // Units that are no value end the search as well: only damaged files have them here.
    if (node >= units_.size() || !is_value(units_[node])) break;
    const std::size_t begin = value_of(units_[node]);
    found = {i + 1, std::string_view(replacements_).substr(begin, replacements_.find('\0', begin) - begin)};
    if (want == Want::shortest) break;
  }
  return found;
}

Charsmap::Prefix Charsmap::longest_prefix(std::string_view text) const {
  return empty() ? Prefix{} : find(text, Want::longest);
}

std::string Charsmap::normalize_clusters(std::string_view text) const {
  constexpr std::size_t kLongCluster = 6;
  if (empty()) return std::string(text);
  std::string result;
  result.reserve(text.size());
  std::size_t start = 0;
  for (const std::size_t end : cluster_ends(text)) {
    const std::string_view cluster = text.substr(start, end - start);
    start = end;
    if (cluster.size() < kLongCluster) {
      if (const Prefix whole = find(cluster, Want::shortest); whole.bytes > 0) {
        result += whole.replacement;
        continue;
      }
    }
    for (std::size_t at = 0; at < cluster.size();) {
      const std::string_view character = cluster.substr(at, character_bytes(cluster[at]));
      at += character.size();
      const Prefix single = find(character, Want::shortest);
      result += single.bytes > 0 ? single.replacement : character;
    }
  }
  return result;
}

}  // namespace vit::internal
