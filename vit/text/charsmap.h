// The precompiled map of characters in SentencePiece models: a double array of prefixes and their
// replacements. The two ways of using it are here; readers of files know its location.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"

namespace vit::internal {

/// Layout of the bytes: length of the double array (4 bytes, little endian), the array of 32-bit units as
/// laid out by the library Darts, then the replacements, each ending in NUL.
class Charsmap {
 public:
  Charsmap() = default;
  /// Throws Error if lengths, values or replacements do not match. `name` is used for the file in messages.
  Charsmap(std::string_view bytes, const Where& where, std::string_view name);

  bool empty() const { return units_.empty(); }

  /// The library tokenizers' rule: in a grapheme cluster of fewer than 6 bytes the shortest prefix that is
  /// found replaces the whole cluster; otherwise characters are looked up one by one.
  std::string normalize_clusters(std::string_view text) const;

  struct Prefix {
    std::size_t bytes = 0;  // taken from the text; 0 if no prefix is in the map
    std::string_view replacement;
  };
  /// SentencePiece's rule: the longest prefix of `text`.
  Prefix longest_prefix(std::string_view text) const;

 private:
  enum class Want { shortest, longest };
  Prefix find(std::string_view text, Want want) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

}  // namespace vit::internal
