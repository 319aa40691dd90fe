// The unigram model: of all ways to split a text into tokens, the one with the largest sum of scores
// (Viterbi). The caller does the normalization before it and adds ids around it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "vit/base/check.h"
#include "vit/text/vocabulary.h"

namespace vit::internal {

/// How a token may be used in a text.
enum class PieceKind : std::uint8_t { normal, user_defined, never };

struct UnigramModel {
  std::vector<double> scores;    // by id
  std::vector<PieceKind> kinds;  // by id; empty: all are normal
  TokenId unknown = 0;
  std::optional<ByteTokens> bytes;  // of characters without a token, where all of theirs exist
  /// Sums are float32, rounded before they are compared, as in SentencePiece; float64 otherwise, as in
  /// tokenizers.
  enum class Sums { float64, float32 } sums = Sums::float64;

  /// Smallest and largest score of normal tokens; set by finish().
  double lowest = 0.0, highest = 0.0;
  /// Throws Error if scores are missing or not finite.
  void finish(const Vocabulary& vocabulary, const Where& where);
};

/// A token of the best path, or characters without a token.
struct Piece {
  TokenId id = 0;
  std::string_view text;
};

/// Adjacent unknown characters are joined to one piece, whose id is `unknown`.
std::vector<Piece> best_path(const UnigramModel& model, const Vocabulary& vocabulary, std::string_view text);

}  // namespace vit::internal
