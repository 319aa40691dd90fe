// CLIP's words: how its tokenizers cut a text, and the symbols that bytes are written as.
// Cleaning before and merging after are elsewhere.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "vit/text/vocabulary.h"

namespace vit::internal {

/// Whose regular expression cuts the text.
struct ClipPattern {
  /// Python's is told to ignore case, so that a long s ends a contraction as well.
  bool ignore_case = false;
  /// Spellings of special tokens that stay whole; empty: none.
  std::string start, end;
};

/// Special tokens, contractions ('s 't 're 've 'm 'll 'd), runs of letters, single numbers, runs of
/// everything else but white space, which is dropped.
std::vector<std::string_view> clip_words(std::string_view text, const ClipPattern& pattern);

/// The character that stands for each byte in the vocabulary: printable bytes of Latin-1 stand for
/// themselves, the others for U+0100 and so on.
const std::array<std::string, 256>& byte_symbols();

/// The bytes in the order of the published vocabulary: those that stand for themselves first.
std::array<unsigned char, 256> byte_order();

/// Ids of the symbols that a word starts as: of bytes, and of a word's last byte, which carries "</w>".
struct ByteSymbols {
  std::array<TokenId, 256> inner{}, last{};
};
/// Throws Error if one is missing.
ByteSymbols find_byte_symbols(const Vocabulary& vocabulary);

}  // namespace vit::internal
