// From a word to the symbols it starts as, and to ids.
#include "vit/text/text_model.h"

#include <algorithm>

#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

void start_as_bytes(const ByteSymbols& symbols, std::string_view word, std::vector<TokenId>& ids) {
  ids.reserve(word.size());
  for (const char byte : word) ids.push_back(symbols.inner[static_cast<unsigned char>(byte)]);
  if (!word.empty()) ids.back() = symbols.last[static_cast<unsigned char>(word.back())];
}

/// Whether all bytes of `text` have a token; if so their ids are appended.
bool append_bytes(const ByteTokens& bytes, std::string_view text, std::vector<TokenId>& ids) {
  const auto id_of = [&bytes](char byte) { return bytes[static_cast<unsigned char>(byte)]; };
  if (std::ranges::any_of(text, [&](char byte) { return id_of(byte) == kNoToken; })) return false;
  for (const char byte : text) ids.push_back(id_of(byte));
  return true;
}

void start_as_characters(const BytePairModel& model, const Vocabulary& vocabulary, std::string_view word,
                         std::vector<TokenId>& ids) {
  bool after_unknown = false;
  for (std::size_t at = 0; at < word.size();) {
    const std::string_view character = word.substr(at, character_bytes(word[at]));
    at += character.size();
    bool found = false;
    if (const auto id = vocabulary.find(character)) {
      ids.push_back(*id);
      found = true;
    } else if (model.byte_fallback) {
      found = append_bytes(model.bytes, character, ids);
    }
    if (!found && model.unknown && !(after_unknown && model.fuse_unknown)) ids.push_back(*model.unknown);
    after_unknown = !found;
  }
}

void encode_pairs(const BytePairModel& model, const Vocabulary& vocabulary, std::string_view word,
                  std::vector<TokenId>& ids) {
  std::vector<TokenId> symbols;
  if (model.symbols) {
    start_as_bytes(*model.symbols, word, symbols);
  } else {
    start_as_characters(model, vocabulary, word, symbols);
  }
  model.merges.merge(symbols);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

}  // namespace

void TextModel::encode(std::string_view word, std::vector<TokenId>& ids) const {
  if (const auto* pairs = std::get_if<BytePairModel>(&algorithm)) {
    encode_pairs(*pairs, vocabulary, word, ids);
    return;
  }
  if (const auto* pieces = std::get_if<WordPieceModel>(&algorithm)) {
    encode_pieces(*pieces, vocabulary, word, ids);
    return;
  }
  const auto& unigram = std::get<UnigramModel>(algorithm);
  for (const Piece& piece : best_path(unigram, vocabulary, word)) {
    if (piece.id != unigram.unknown) {
      ids.push_back(piece.id);
    } else if (const auto joined = vocabulary.find(piece.text)) {
      // Joined unknown characters are looked up once more, as the library does.
      ids.push_back(*joined);
    } else if (!unigram.bytes || !append_bytes(*unigram.bytes, piece.text, ids)) {
      ids.push_back(unigram.unknown);
    }
  }
}

TextModel clip_model(Vocabulary vocabulary, MergeTable merges) {
  BytePairModel model;
  model.symbols = find_byte_symbols(vocabulary);
  model.merges = std::move(merges);
  return {std::move(vocabulary), std::move(model)};
}

}  // namespace vit::internal
