// The tokens of a tokenizer and their ids, both ways, in one block of text.
// The models split text into tokens (byte_pair.h, unigram.h).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"

namespace vit::internal {

using TokenId = std::uint32_t;

inline constexpr TokenId kNoToken = 0xFFFFFFFFu;

/// Largest supported vocabulary: four times the largest published one (901,629 tokens).
inline constexpr std::size_t kMaxVocabulary = std::size_t{1} << 22;

/// Hash of a growing string of bytes, so that all prefixes of a text cost one step each.
class PrefixHash {
 public:
  void add(char byte) { state_ = (state_ ^ static_cast<unsigned char>(byte)) * 0x100000001B3u; }
  std::uint64_t value() const {
    std::uint64_t hash = state_ ^ (state_ >> 32);
    hash *= 0x9E3779B97F4A7C15u;
    return hash ^ (hash >> 29);
  }

 private:
  std::uint64_t state_ = 0xCBF29CE484222325u;
};

class Vocabulary {
 public:
  /// `where` and `name` are the operation and the file in messages.
  Vocabulary(Where where, std::string name) : where_(where), name_(std::move(name)) {}

  /// Throws Error for a duplicate id or token, for an id that leaves more gaps than there are
  /// tokens (checked by finish()), and for more than kMaxVocabulary tokens.
  void add(std::string_view token, TokenId id);
  /// Must follow the last add() of a file; more tokens may be added later.
  void finish();

  std::optional<TokenId> find(std::string_view token) const;
  /// The token of `length` bytes at `text` whose PrefixHash is `hash`.
  std::optional<TokenId> find(const char* text, std::size_t length, std::uint64_t hash) const;
  /// The id of a token that must exist.
  TokenId at(std::string_view token) const;

  /// Empty for an id without token.
  std::string_view token(TokenId id) const;
  bool has(TokenId id) const { return id < records_.size() && records_[id] != kNone; }
  /// One more than the largest id.
  std::size_t size() const { return records_.size(); }
  std::size_t count() const { return count_; }
  std::size_t longest_bytes() const { return longest_; }
  const std::string& name() const { return name_; }

 private:
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;
  /// The data before the bytes of a token, so that a look-up touches a slot and one memory location.
  struct Header {
    TokenId id = 0;
    std::uint32_t length = 0;
  };
  /// Upper half of a hash and the position of a record; kNone means empty.
  struct Slot {
    std::uint32_t tag = 0;
    std::uint32_t record = kNone;
  };
  Header header(std::uint32_t record) const;
  std::string_view bytes(std::uint32_t record) const;
  void grow();
  void insert(std::uint32_t record);

  Where where_;
  std::string name_;
  std::string text_;                    // records: Header, bytes of the token
  std::vector<std::uint32_t> records_;  // by id: where they start
  std::vector<Slot> slots_;             // a power of two of them, at most two thirds in use
  std::size_t count_ = 0;
  std::size_t longest_ = 0;
};

/// The tokens <0x00> to <0xFF> for characters without one; kNoToken if one is missing.
using ByteTokens = std::array<TokenId, 256>;
ByteTokens byte_tokens(const Vocabulary& vocabulary);

}  // namespace vit::internal
