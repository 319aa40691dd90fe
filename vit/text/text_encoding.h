// From a text to the ids of its tokens, without padding: the three ways used by libraries.
// tokenizer_folder.h selects one of them for a folder.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "vit/text/added_tokens.h"
#include "vit/text/clean.h"
#include "vit/text/clip_words.h"
#include "vit/text/normalizer.h"
#include "vit/text/sentencepiece.h"
#include "vit/text/text_model.h"

namespace vit::internal {

/// As the library tokenizers: added tokens are extracted, the rest is normalized, split and encoded word by
/// word.
struct PipelineEncoding {
  TextModel model;
  AddedTokens added;
  std::vector<NormalizerStep> normalizer;
  std::vector<SplitterStep> splitter;

  std::vector<TokenId> encode(std::string_view text) const;

 private:
  bool marks_first() const;
};

/// As SimpleTokenizer of CLIP in Python: CLIP's words, their merges, special tokens by their spelling.
struct SimpleEncoding {
  TextModel model;
  ClipPattern pattern;
  TokenId start = 0, end = 0;

  std::vector<TokenId> encode(std::string_view text) const;
};

/// As SiglipTokenizer of transformers, around SentencePiece itself.
struct SiglipEncoding {
  SentencePieceEncoder model;
  AddedTokens added;
  bool lower = true;
  std::string unknown = "<unk>";

  std::vector<TokenId> encode(std::string_view text) const;

 private:
  void encode_piece(std::string_view piece, std::vector<TokenId>& ids) const;
};

using TextEncoding = std::variant<PipelineEncoding, SimpleEncoding, SiglipEncoding>;

const Vocabulary& vocabulary_of(const TextEncoding& encoding);

/// Ids around a text, and the substitute for missing ones.
struct TextFrame {
  std::vector<TokenId> front, back;
  bool back_once = false;  // `back` is omitted if the text already ends in it
  TokenId pad = 0;
  bool pad_left = false;
  std::optional<TokenId> zeroed;  // written as 0 in padded rows
};

}  // namespace vit::internal
