// WordPiece: a word as the longest token that it starts with, then the longest of the rest, and so on. The
// caller splits text into words.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "vit/text/vocabulary.h"

namespace vit::internal {

struct WordPieceModel {
  TokenId unknown = 0;               // of words that are not tokens throughout
  std::string continuation = "##";   // in front of tokens inside of a word
  std::size_t max_characters = 100;  // longer words are unknown
};

/// The tokens of vocab.txt, one a line, whose number is the id; of equal lines the last counts.
Vocabulary load_token_list(const std::filesystem::path& path);
/// `name`: of the file, for errors.
Vocabulary parse_token_list(std::string_view text, const std::string& name);

/// Appends the tokens of one word.
void encode_pieces(const WordPieceModel& model, const Vocabulary& vocabulary, std::string_view word,
                   std::vector<TokenId>& ids);

}  // namespace vit::internal
