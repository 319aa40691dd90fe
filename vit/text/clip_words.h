// CLIP's words and GPT-2's: how their tokenizers split a text, and the symbols that represent bytes.
// Cleaning before and merging after are elsewhere.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "vit/text/vocabulary.h"

namespace vit::internal {

/// The regular expression that splits the text.
struct ClipPattern {
  /// Python's ignores case, so that a long s ends a contraction as well.
  bool ignore_case = false;
  /// Spellings of special tokens that are not split; empty: none.
  std::string start, end;
};

/// Special tokens, contractions ('s 't 're 've 'm 'll 'd), runs of letters, single numbers, runs of
/// everything else except white space, which is dropped.
std::vector<std::string_view> clip_words(std::string_view text, const ClipPattern& pattern);

/// The character that represents each byte in the vocabulary: printable bytes of Latin-1 represent
/// themselves, the others for U+0100 and so on.
const std::array<std::string, 256>& byte_symbols();

/// The bytes in the order of the published vocabulary: those that represent themselves first.
std::array<unsigned char, 256> byte_order();

/// GPT-2's words, which keep their white space: contractions as above, runs of letters, of numbers and of
/// everything else, each with one space in front of it if there is one, and runs of white space without that
/// space.
std::vector<std::string_view> gpt2_words(std::string_view text);

/// Ids of the initial symbols of a word: of bytes, and of a word's last byte.
struct ByteSymbols {
  std::array<TokenId, 256> inner{}, last{};
};
/// How a word's last byte is spelled: as the others (GPT-2), or with the suffix "</w>" (CLIP).
enum class WordEnds { none, suffix };
/// Throws Error if one is missing.
ByteSymbols find_byte_symbols(const Vocabulary& vocabulary, WordEnds ends = WordEnds::suffix);

}  // namespace vit::internal
