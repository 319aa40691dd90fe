// The reader of tokenizer.json, the format of the library tokenizers: vocabulary, merges or scores, added
// tokens, and the steps around them. Unsupported parts are refused with an error that names them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vit/text/added_tokens.h"
#include "vit/text/normalizer.h"
#include "vit/text/text_model.h"

namespace vit::internal {

struct TokenizerJson {
  std::string name;
  TextModel model;
  std::vector<AddedToken> added;
  bool word_ends = false;  // tokens at the end of a word have the suffix "</w>"
  std::string normalizer, pre_tokenizer, post_processor;  // JSON of these parts; "null" if there is none
};

/// Reads `text` without building a document: a file of 34 MB costs about its own size in memory.
TokenizerJson parse_tokenizer_json(std::string_view text, std::string name);
TokenizerJson load_tokenizer_json(const std::filesystem::path& path);

/// Parts of the file as steps. Throw Error (unsupported) that names an unknown part.
std::vector<NormalizerStep> normalizer_steps(const TokenizerJson& file);
std::vector<SplitterStep> splitter_steps(const TokenizerJson& file);
/// The map of characters among the normalizers; empty if there is none.
Charsmap charsmap_of(const TokenizerJson& file);

/// Ids before and after a text.
struct Frame {
  std::vector<TokenId> front, back;
};
Frame frame_of(const TokenizerJson& file);

}  // namespace vit::internal
