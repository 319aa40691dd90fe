// Tokenizers of text towers: text to the ids that a model was trained with, equal to those of the library
// that the model comes from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vit/base/error.h"

namespace vit {
namespace internal {
struct TokenizerFolder;
}

/// The library whose cleaning and splitting is used. They differ for the same files: transformers ignores
/// HTML and makes no repairs, open_clip removes punctuation for some models.
enum class TextLibrary {
  automatic,     ///< the library of the folder: open_clip if it contains open_clip_config.json, else
                 ///< transformers; of weights without a configuration, the code of who published them
  transformers,  ///< transformers 5
  open_clip,     ///< open_clip 3, perception_models
  openai,        ///< openai/CLIP and dino.txt: open_clip's, with other spellings of the special tokens
};

/// "auto", "transformers", "open_clip" or "openai".
VIT_API const char* to_string(TextLibrary library);
/// The inverse. Throws Error for another name.
VIT_API TextLibrary text_library(std::string_view name);

/// Settings that Tokenizer::load cannot infer from the files.
struct TokenizerOptions {
  TextLibrary library = TextLibrary::automatic;  // whose rules are used
  /// Rows of the model's token table, if known. Of merges without a vocabulary, as many are used as
  /// fit (all published models have 49408); other files state their tokens.
  std::size_t vocabulary_size = 0;
};

/// A row of ids for a model.
struct TokenRow {
  std::vector<std::int32_t> ids;  ///< (context length)
  std::size_t count = 0;          ///< how many of them are not padding
  bool cut = false;               ///< the text was longer
};

/// Immutable once loaded; threads may share it. Copies share the loaded data.
/// ```
/// vit::Tokenizer::load("siglip2").encode("a photo of a cat", 64).ids;  // 64 numbers
/// ```
/// Texts must be UTF-8. Bytes that are not, and surrogates, are an Error: the libraries receive text that
/// Python has decoded, so there is no result of theirs to reproduce.
class VIT_API Tokenizer {
 public:
  /// Loads the tokenizer in `path`: a folder as published (tokenizer.json, vocab.json and merges.txt,
  /// spiece.model, tokenizer.model, with tokenizer_config.json and config.json or open_clip_config.json if
  /// they exist), or one file with CLIP's merges (bpe_simple_vocab_16e6.txt.gz, packed or not). Throws Error
  /// that names the missing file and where it is published, or the unsupported part of a file.
  static Tokenizer load(const std::filesystem::path& path, const TokenizerOptions& options = {});

  /// The tokenizer of the model at `model`, a folder or a weight file, with the model's context length.
  /// Publishers' files without a vocabulary (Perception Encoder, dino.txt, OpenAI's .pt) and OpenCLIP folders
  /// without one take it from `tokenizer`, an argument of load(); the model still decides whose rules
  /// apply.
  static Tokenizer load_for_model(const std::filesystem::path& model,
                                  const std::filesystem::path& tokenizer = {},
                                  const TokenizerOptions& options = {});

  /// Ids with the special tokens that the library adds, neither padded nor truncated. Throws Error unless
  /// `text` is UTF-8.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// Ids padded and truncated to `context_length` as in the library. Throws Error unless `text` is UTF-8 and
  /// `context_length` has room for the special tokens.
  TokenRow encode(std::string_view text, std::size_t context_length) const;

  /// The token of an id as the vocabulary spells it ("cat</w>", U+2581 "cat"); empty if there is none.
  std::string_view token(std::int32_t id) const;
  /// The id of a token as the vocabulary spells it; -1 if there is none.
  std::int32_t find(std::string_view token) const;

  /// One more than the largest id.
  std::size_t vocabulary_size() const;
  /// Positions of the text tower according to the folder's configuration; 0 if there is none.
  std::size_t context_length() const;
  /// Id that fills padded rows.
  std::int32_t padding() const;
  /// Whether padding precedes the text instead of following it.
  bool pads_left() const;

  /// The library's class: "CLIPTokenizer", "SimpleTokenizer", "SiglipTokenizer", ...
  const std::string& name() const;
  /// The library whose rules are used; never automatic.
  TextLibrary library() const;
  /// The cleaning of a text before it is split: "open_clip canonicalize: ..." or "transformers: NFC, ...".
  const std::string& cleaning() const;

  struct Parts;

 private:
  VIT_HIDDEN static Tokenizer build(const internal::TokenizerFolder& folder);
  explicit Tokenizer(std::shared_ptr<const Parts> parts) : parts_(std::move(parts)) {}
  std::shared_ptr<const Parts> parts_;
};

}  // namespace vit
