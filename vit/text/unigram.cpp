// Viterbi over the prefixes in the vocabulary at each character.
#include "vit/text/unigram.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "vit/base/check.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

/// An unknown character costs this much more than the least likely token.
constexpr double kUnknownPenalty = 10.0;

struct Node {
  static constexpr std::size_t kUnreached = ~std::size_t{0};
  double score = 0.0;
  std::size_t start = kUnreached;
  TokenId id = 0;
};

}  // namespace

void UnigramModel::finish(const Vocabulary& vocabulary, const Where& where) {
  VIT_CHECK(scores.size() == vocabulary.size() && vocabulary.size() == vocabulary.count(), where,
            vocabulary.name(), ": ", scores.size(), " scores for ", vocabulary.count(), " tokens");
  VIT_CHECK(unknown < scores.size(), where, vocabulary.name(), ": the unknown token has the id ", unknown,
            " of ", scores.size());
  lowest = std::numeric_limits<double>::infinity();
  highest = -lowest;
  for (std::size_t id = 0; id < scores.size(); ++id) {
    VIT_CHECK(std::isfinite(scores[id]), where, vocabulary.name(), ": the score of token ", id,
              " is not finite");
    if (!kinds.empty() && kinds[id] != PieceKind::normal) continue;
    lowest = std::min(lowest, scores[id]);
    highest = std::max(highest, scores[id]);
  }
  VIT_CHECK(std::isfinite(lowest), where, vocabulary.name(), ": the vocabulary has no ordinary token");
}

std::vector<Piece> best_path(const UnigramModel& model, const Vocabulary& vocabulary, std::string_view text) {
  const bool narrow = model.sums == UnigramModel::Sums::float32;
  const auto rounded = [narrow](double sum) { return narrow ? double{static_cast<float>(sum)} : sum; };
  const double unknown_score = rounded(model.lowest - kUnknownPenalty);
  std::vector<Node> nodes(text.size() + 1);  // best path ending at each byte
  for (std::size_t start = 0; start < text.size();) {
    const double until_here = nodes[start].score;
    const std::size_t character = character_bytes(text[start]);
    bool covered = false;
    const auto offer = [&](std::size_t length, double score, TokenId id) {
      Node& end = nodes[start + length];
      const double sum = rounded(rounded(score) + until_here);
      if (end.start == Node::kUnreached || sum > end.score) end = {sum, start, id};
    };
    PrefixHash hash;
    const std::size_t longest = std::min(vocabulary.longest_bytes(), text.size() - start);
    for (std::size_t length = 1; length <= longest; ++length) {
      hash.add(text[start + length - 1]);
      // A token ends where a character ends.
      const std::size_t next = start + length;
      if (next < text.size() && (static_cast<unsigned char>(text[next]) & 0xC0u) == 0x80) continue;
      const auto id = vocabulary.find(text.data() + start, length, hash.value());
      if (!id) continue;
      const PieceKind kind = model.kinds.empty() ? PieceKind::normal : model.kinds[*id];
      if (kind == PieceKind::never) continue;
      const double score = kind == PieceKind::user_defined ? static_cast<double>(length) * model.highest - 0.1
                                                           : model.scores[*id];
      offer(length, score, *id);
      covered = covered || length == character;
    }
    if (!covered) offer(character, unknown_score, model.unknown);
    start += character;
  }
  std::vector<Piece> pieces;
  for (std::size_t end = text.size(); end > 0;) {
    const Node& node = nodes[end];
    const std::string_view piece = text.substr(node.start, end - node.start);
    if (node.id == model.unknown && !pieces.empty() && pieces.back().id == model.unknown) {
      pieces.back().text = {piece.data(), piece.size() + pieces.back().text.size()};
    } else {
      pieces.push_back({node.id, piece});
    }
    end = node.start;
  }
  std::reverse(pieces.begin(), pieces.end());
  return pieces;
}

}  // namespace vit::internal
