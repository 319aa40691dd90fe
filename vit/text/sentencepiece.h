// SentencePiece model files: the reader of their pieces, scores and normalization, and the library's own way
// of encoding with a unigram model. Models as other libraries rebuild them from these files are made in
// tokenizer_files.cpp.
//
// A custom reader instead of libsentencepiece: of the four messages of the format it reads eight fields,
// tokenizers that rebuild models need the pieces rather than the encoder, and damaged files cause an Error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vit/text/charsmap.h"
#include "vit/text/unigram.h"
#include "vit/text/vocabulary.h"

namespace vit::internal {

struct SentencePieceModel {
  enum class Type : std::uint8_t {
    normal = 1,
    unknown = 2,
    control = 3,
    user_defined = 4,
    unused = 5,
    byte = 6
  };
  enum class Algorithm : std::uint8_t { unigram = 1, bpe = 2, word = 3, character = 4 };

  explicit SentencePieceModel(Vocabulary empty) : vocabulary(std::move(empty)) {}

  Vocabulary vocabulary;
  std::vector<float> scores;  // by id
  std::vector<Type> types;    // by id
  Algorithm algorithm = Algorithm::unigram;
  bool byte_fallback = false;
  bool space_as_suffix = false;
  bool add_dummy_prefix = true;
  bool remove_extra_spaces = true;
  bool escape_spaces = true;
  Charsmap charsmap;
  TokenId unknown = 0;
};

/// Throws Error for anything except a complete, consistent model. `name` is used for the bytes in messages.
SentencePieceModel parse_sentencepiece(std::string_view bytes, std::string name);
SentencePieceModel load_sentencepiece(const std::filesystem::path& path);

/// Encodes with a unigram model as the library SentencePiece does.
class SentencePieceEncoder {
 public:
  /// Throws Error unless the model is a unigram one whose spaces precede words.
  explicit SentencePieceEncoder(SentencePieceModel model);

  const Vocabulary& vocabulary() const { return model_.vocabulary; }
  TokenId unknown() const { return model_.unknown; }
  /// `text` must be valid UTF-8.
  std::vector<TokenId> encode(std::string_view text) const;

 private:
  std::string normalize(std::string_view text) const;

  SentencePieceModel model_;
  UnigramModel unigram_;
  std::vector<std::string> user_defined_;  // longest first: kept unchanged
  ByteTokens bytes_{};                     // if the model falls back to them
};

}  // namespace vit::internal
