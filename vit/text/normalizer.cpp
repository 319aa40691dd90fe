// The steps, one function each.
#include "vit/text/normalizer.h"

#include "vit/text/bert_words.h"
#include "vit/text/clip_words.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr std::string_view kSpaceMark = "\u2581";

std::string replace_spaces(std::string_view text, int least, std::string_view content) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t start = at;
    int count = 0;
    for (std::size_t next = at; next < text.size(); ++count) {
      const char32_t c = next_code_point(text, next);
      if (least > 1 ? c != U' ' : !is_white_space(c)) break;
      at = next;
    }
    if (count >= least) {
      result += content;
    } else {
      if (count == 0) at += character_bytes(text[at]);
      result += text.substr(start, at - start);
    }
  }
  return result;
}

using Words = std::vector<std::string>;

Words cut_at_white_space(std::string_view text) {
  Words words;
  std::size_t start = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t here = at;
    if (!is_white_space(next_code_point(text, at))) continue;
    if (here > start) words.emplace_back(text.substr(start, here - start));
    start = at;
  }
  if (start < text.size()) words.emplace_back(text.substr(start));
  return words;
}

Words mark_spaces(std::string_view text, const SplitterStep& step, bool first) {
  std::string marked = replace_all(text, " ", kSpaceMark);
  const bool prepend = step.prepend == SplitterStep::Prepend::always ||
                       (step.prepend == SplitterStep::Prepend::first && first);
  if (prepend && !marked.starts_with(kSpaceMark)) marked.insert(0, kSpaceMark);
  if (!step.cut) return {marked};
  Words words;
  std::size_t start = 0;
  for (std::size_t at = marked.find(kSpaceMark, 1); at != std::string::npos;
       at = marked.find(kSpaceMark, at + 1)) {
    words.push_back(marked.substr(start, at - start));
    start = at;
  }
  words.push_back(marked.substr(start));
  return words;
}

Words cut_behind_spaces(std::string_view text) {
  Words words;
  std::size_t start = 0;
  for (std::size_t at = text.find(' '); at != std::string_view::npos; at = text.find(' ', start)) {
    words.emplace_back(text.substr(start, at + 1 - start));
    start = at + 1;
  }
  if (start < text.size()) words.emplace_back(text.substr(start));
  return words;
}

Words cut_as_clip(std::string_view text, const SplitterStep& step) {
  ClipPattern pattern;
  if (step.special) pattern = {.start = "<|startoftext|>", .end = "<|endoftext|>"};
  Words words;
  for (const std::string_view word : clip_words(text, pattern)) {
    if (step.cut_special && (word == pattern.start || word == pattern.end)) {
      for (const std::string_view part : gpt2_words(word)) words.emplace_back(part);
    } else {
      words.emplace_back(word);
    }
  }
  return words;
}

Words split_one(std::string text, const SplitterStep& step, bool first) {
  switch (step.kind) {
    case SplitterStep::Kind::clip_words: return cut_as_clip(text, step);
    case SplitterStep::Kind::gpt2_words: {
      const auto words = gpt2_words(text);
      return Words(words.begin(), words.end());
    }
    case SplitterStep::Kind::bert_words: {
      const auto words = bert_words(text);
      return Words(words.begin(), words.end());
    }
    case SplitterStep::Kind::white_space: return cut_at_white_space(text);
    case SplitterStep::Kind::space_mark: return mark_spaces(text, step, first);
    case SplitterStep::Kind::space_with_previous: return cut_behind_spaces(text);
  }
  return {std::move(text)};
}

std::string normalize_one(std::string text, const NormalizerStep& step) {
  using Kind = NormalizerStep::Kind;
  switch (step.kind) {
    case Kind::nfc: return normalize_nfc(text);
    case Kind::nfkc: return normalize_nfkc(text);
    case Kind::lower_letters: return lower_letters(text);
    case Kind::replace: return replace_all(text, step.pattern, step.content);
    case Kind::replace_spaces: return replace_spaces(text, step.least, step.content);
    case Kind::strip_left: return std::string(strip_left(text));
    case Kind::strip_right: return std::string(strip_right(text));
    case Kind::charsmap: return step.charsmap.normalize_clusters(text);
    case Kind::bert_clean: return clean_bert(text);
    case Kind::ideographs: return space_ideographs(text);
    case Kind::accents: return strip_accents(text);
    case Kind::prepend: return text.empty() ? text : step.content + text;
  }
  return text;
}

}  // namespace

void append_bert_steps(const BertNormalizer& bert, std::vector<NormalizerStep>& steps) {
  using Kind = NormalizerStep::Kind;
  if (bert.clean) steps.push_back({.kind = Kind::bert_clean});
  if (bert.ideographs) steps.push_back({.kind = Kind::ideographs});
  if (bert.accents) steps.push_back({.kind = Kind::accents});
  if (bert.lower) steps.push_back({.kind = Kind::lower_letters});
}

std::string normalize(std::string text, const std::vector<NormalizerStep>& steps) {
  for (const NormalizerStep& step : steps) text = normalize_one(std::move(text), step);
  return text;
}

bool removes_start(std::string text, const std::vector<NormalizerStep>& steps) {
  for (const NormalizerStep& step : steps) {
    if (text.empty()) return false;
    const bool is_pattern =
        step.kind == NormalizerStep::Kind::replace && step.content.empty() && text.starts_with(step.pattern);
    if (is_pattern || normalize_one(text.substr(0, character_bytes(text[0])), step).empty()) return true;
    text = normalize_one(std::move(text), step);
  }
  return false;
}

std::vector<std::string> split_words(std::string text, const std::vector<SplitterStep>& steps, bool first) {
  if (text.empty()) return {};
  Words words{std::move(text)};
  for (const SplitterStep& step : steps) {
    Words next;
    bool at_start = first;
    for (std::string& word : words) {
      const std::string start = word.substr(0, character_bytes(word[0]));
      for (std::string& part : split_one(std::move(word), step, at_start)) next.push_back(std::move(part));
      // Words are at the start as long as nothing in front of them is dropped.
      if (at_start && step.kind != SplitterStep::Kind::space_mark)
        first = !next.empty() && next[0].starts_with(start);
      at_start = false;
    }
    words = std::move(next);
  }
  return words;
}

}  // namespace vit::internal
