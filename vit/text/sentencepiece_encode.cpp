// SentencePiece's normalization and unigram encoding.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/text/sentencepiece.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::unsupported};
constexpr std::string_view kSpaceMark = "\u2581";

}  // namespace

SentencePieceEncoder::SentencePieceEncoder(SentencePieceModel model) : model_(std::move(model)) {
  using Type = SentencePieceModel::Type;
  const std::string& name = model_.vocabulary.name();
  VIT_CHECK(model_.algorithm == SentencePieceModel::Algorithm::unigram, kWhere, name,
            ": is not a unigram model, which SiglipTokenizer requires");
  VIT_CHECK(!model_.space_as_suffix, kWhere, name, ": puts spaces after words");
  unigram_.unknown = model_.unknown;
  unigram_.sums = UnigramModel::Sums::float32;
  unigram_.scores.assign(model_.scores.begin(), model_.scores.end());
  for (std::size_t id = 0; id < model_.types.size(); ++id) {
    const Type type = model_.types[id];
    unigram_.kinds.push_back(type == Type::normal         ? PieceKind::normal
                             : type == Type::user_defined ? PieceKind::user_defined
                                                          : PieceKind::never);
    if (type == Type::user_defined)
      user_defined_.emplace_back(model_.vocabulary.token(static_cast<TokenId>(id)));
  }
  std::stable_sort(user_defined_.begin(), user_defined_.end(),
                   [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  unigram_.finish(model_.vocabulary, kWhere.with(ErrorKind::format));
  if (model_.byte_fallback) {
    bytes_ = byte_tokens(model_.vocabulary);
    VIT_CHECK(std::find(bytes_.begin(), bytes_.end(), kNoToken) == bytes_.end(),
              kWhere.with(ErrorKind::format), name,
              ": falls back to bytes, but lacks some of <0x00> to <0xFF>");
  }
}

std::string SentencePieceEncoder::normalize(std::string_view text) const {
  const std::string_view space = model_.escape_spaces ? kSpaceMark : " ";
  // The replacement of the start of `rest`, and its length.
  const auto prefix = [this](std::string_view rest) -> Charsmap::Prefix {
    for (const std::string& symbol : user_defined_) {
      if (rest.starts_with(symbol)) return {symbol.size(), rest.substr(0, symbol.size())};
    }
    const Charsmap::Prefix found = model_.charsmap.longest_prefix(rest);
    if (found.bytes > 0) return found;
    const std::size_t length = character_bytes(rest[0]);
    return {length, rest.substr(0, length)};
  };
  std::size_t at = 0;
  while (model_.remove_extra_spaces && at < text.size()) {
    const Charsmap::Prefix next = prefix(text.substr(at));
    if (next.replacement != " ") break;
    at += next.bytes;
  }
  if (at == text.size()) return {};
  std::string result;
  if (model_.add_dummy_prefix) result += space;
  bool after_space = model_.remove_extra_spaces;
  while (at < text.size()) {
    const Charsmap::Prefix next = prefix(text.substr(at));
    at += next.bytes;
    std::string_view piece = next.replacement;
    while (after_space && piece.starts_with(' ')) piece.remove_prefix(1);
    if (!piece.empty()) {
      result += replace_all(piece, " ", space);
      after_space = model_.remove_extra_spaces && piece.ends_with(' ');
    }
  }
  while (model_.remove_extra_spaces && result.ends_with(space)) result.resize(result.size() - space.size());
  return result;
}

std::vector<TokenId> SentencePieceEncoder::encode(std::string_view text) const {
  const std::string normalized = normalize(text);
  std::vector<TokenId> ids;
  for (const Piece& piece : best_path(unigram_, model_.vocabulary, normalized)) {
    if (piece.id != model_.unknown) {
      ids.push_back(piece.id);
    } else if (model_.byte_fallback) {
      for (const char byte : piece.text) ids.push_back(bytes_[static_cast<unsigned char>(byte)]);
    } else {
      ids.push_back(model_.unknown);
    }
  }
  return ids;
}

}  // namespace vit::internal
