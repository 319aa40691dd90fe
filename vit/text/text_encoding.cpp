// The three encodings.
#include "vit/text/text_encoding.h"

#include <algorithm>

#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

}  // namespace

bool PipelineEncoding::marks_first() const {
  return std::ranges::any_of(
      splitter, [](const SplitterStep& step) { return step.prepend == SplitterStep::Prepend::first; });
}

std::vector<TokenId> PipelineEncoding::encode(std::string_view text) const {
  std::vector<TokenId> ids;
  bool first = true;
  for (const Stretch& raw : added.split(text, false)) {
    if (raw.id != kNoToken) {
      ids.push_back(raw.id);
      first = false;
      continue;
    }
    if (first && marks_first() && removes_start(std::string(raw.text), normalizer)) first = false;
    const std::string normalized = normalize(std::string(raw.text), normalizer);
    for (const Stretch& stretch : added.split(normalized, true)) {
      if (stretch.id != kNoToken) {
        ids.push_back(stretch.id);
      } else {
        for (const std::string& word : split_words(std::string(stretch.text), splitter, first)) {
          model.encode(word, ids);
        }
      }
      first = false;
    }
  }
  return ids;
}

std::vector<TokenId> SimpleEncoding::encode(std::string_view text) const {
  std::vector<TokenId> ids;
  for (const std::string_view word : clip_words(text, pattern)) {
    // With another spelling, for example in capitals, it is an ordinary word.
    if (word == pattern.start) {
      ids.push_back(start);
    } else if (word == pattern.end) {
      ids.push_back(end);
    } else {
      model.encode(word, ids);
    }
  }
  return ids;
}

void SiglipEncoding::encode_piece(std::string_view piece, std::vector<TokenId>& ids) const {
  std::string text = remove_punctuation(lower ? lower_text(piece) : std::string(piece));
  // Runs of white space become one space: join_words() for a text without any at its ends.
  text = join_words(text);
  // After another token SentencePiece prepends no mark; the ids of that token are dropped
  // afterwards.
  const std::size_t extra = model.encode(unknown).size();
  const std::vector<TokenId> encoded = model.encode(unknown + text);
  const std::size_t skip = encoded.size() >= extra ? extra : 0;
  ids.insert(ids.end(), encoded.begin() + static_cast<std::ptrdiff_t>(skip), encoded.end());
}

std::vector<TokenId> SiglipEncoding::encode(std::string_view text) const {
  const std::string marked = std::string(kSpaceMark) + replace_all(text, kSpaceMark, " ");
  std::vector<TokenId> ids;
  std::size_t pieces = 0;
  bool second_is_added = false;
  for (const Stretch& stretch : added.split(marked, false)) {
    const std::size_t before = ids.size();
    if (stretch.id != kNoToken) {
      second_is_added = second_is_added || before == 1;
      ids.push_back(stretch.id);
    } else {
      encode_piece(stretch.text, ids);
    }
    ++pieces;
  }
  // A single mark before an added token is dropped.
  if (pieces > 1 && second_is_added && ids[0] == model.vocabulary().find(kSpaceMark)) ids.erase(ids.begin());
  return ids;
}

const Vocabulary& vocabulary_of(const TextEncoding& encoding) {
  if (const auto* pipeline = std::get_if<PipelineEncoding>(&encoding)) return pipeline->model.vocabulary;
  if (const auto* simple = std::get_if<SimpleEncoding>(&encoding)) return simple->model.vocabulary;
  return std::get<SiglipEncoding>(encoding).model.vocabulary();
}

}  // namespace vit::internal
