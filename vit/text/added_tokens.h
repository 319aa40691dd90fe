// Tokens that are searched in the text before it is normalized or split: special tokens and a publisher's
// own. Rules of the library tokenizers.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "vit/text/vocabulary.h"

namespace vit::internal {

struct AddedToken {
  std::string text;
  TokenId id = 0;
  bool strip_left = false;   // includes the white space before
  bool strip_right = false;  // and after
  bool normalized = false;   // searched in normalized text, not in the original
};

/// A stretch of text: an added token, or the text between two.
struct Stretch {
  std::string_view text;
  TokenId id = kNoToken;  // kNoToken: no added token
};

/// Finds the longest token at the leftmost position.
class AddedTokens {
 public:
  /// A token replaces an earlier one with the same text.
  void add(AddedToken token);
  const std::vector<AddedToken>& tokens() const { return tokens_; }
  /// Must follow the last add().
  void finish();

  /// Splits `text` at the tokens whose `normalized` is as given. No stretch is empty.
  std::vector<Stretch> split(std::string_view text, bool normalized) const;

 private:
  const AddedToken* match(std::string_view text, bool normalized) const;

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  std::vector<AddedToken> tokens_;
  std::unordered_map<std::string, std::size_t, Hash, std::equal_to<>> by_text_;  // indices
  std::array<std::vector<std::size_t>, 256> lengths_;  // by first byte, largest first, each once
  bool any_[2] = {false, false};
};

}  // namespace vit::internal
