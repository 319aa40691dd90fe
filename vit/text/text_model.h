// A vocabulary with the rule that splits words into its tokens: byte pair encoding, unigram or WordPiece, as
// the library tokenizers runs them. Words are split off elsewhere.
#pragma once

#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "vit/text/byte_pair.h"
#include "vit/text/clip_words.h"
#include "vit/text/unigram.h"
#include "vit/text/vocabulary.h"
#include "vit/text/word_piece.h"

namespace vit::internal {

struct BytePairModel {
  MergeTable merges;
  /// Words start as the symbols of their bytes (CLIP); as characters if there are none.
  std::optional<ByteSymbols> symbols;
  /// Characters without a token: their bytes as <0xNN>, else `unknown`, else nothing.
  bool byte_fallback = false;
  ByteTokens bytes{};
  std::optional<TokenId> unknown;
  bool fuse_unknown = false;  // adjacent unknown characters become one
};

struct TextModel {
  Vocabulary vocabulary;
  std::variant<BytePairModel, UnigramModel, WordPieceModel> algorithm;

  bool is_byte_pair() const { return std::holds_alternative<BytePairModel>(algorithm); }
  bool is_unigram() const { return std::holds_alternative<UnigramModel>(algorithm); }
  bool is_word_piece() const { return std::holds_alternative<WordPieceModel>(algorithm); }
  /// Appends the tokens of one word.
  void encode(std::string_view word, std::vector<TokenId>& ids) const;
};

/// Merges and vocabulary of CLIP's byte pair encoding.
TextModel clip_model(Vocabulary vocabulary, MergeTable merges);

}  // namespace vit::internal
