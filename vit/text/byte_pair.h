// Byte pair encoding: merges of neighboring symbols, lowest rank first, ties leftmost first.
// The caller chooses the initial symbols of a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/check.h"
#include "vit/text/vocabulary.h"

namespace vit::internal {

class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = kNone;
    TokenId merged = 0;
  };
  static constexpr std::uint32_t kNone = 0xFFFFFFFFu;

  /// Two tokens and the merged one.
  struct Pair {
    TokenId left, right, merged;
  };
  MergeTable() = default;
  /// Merges in the order of their ranks. Throws Error if two tokens merge twice; `name` is the file.
  MergeTable(const std::vector<Pair>& pairs, const Where& where, std::string_view name);
  /// rank is kNone if the two do not merge.
  Merge find(TokenId left, TokenId right) const;
  std::size_t size() const { return count_; }

  /// Merges `symbols` in place until no pair is left. Time n log n.
  void merge(std::vector<TokenId>& symbols) const;

 private:
  struct Slot {
    std::uint64_t pair = ~std::uint64_t{0};
    Merge merge;
  };
  std::size_t home_of(std::uint64_t pair) const;
  std::size_t slot_of(std::uint64_t pair) const;
  void merge_few(std::vector<TokenId>& symbols) const;
  void merge_many(std::vector<TokenId>& symbols) const;

  std::vector<Slot> slots_;
  std::size_t count_ = 0;
};

/// The pair of `left` and `right`. Throws Error if one of them is empty, or they or the merged token are
/// not in the vocabulary.
MergeTable::Pair merge_pair(const Vocabulary& vocabulary, std::string_view left, std::string_view right,
                            const Where& where);

}  // namespace vit::internal
