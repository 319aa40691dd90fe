// Normalization of a text before it is split, as a list of steps; and how it is split into words, as another.
// Both follow the library tokenizers. The steps of a tokenizer are chosen in tokenizer_json.h and the classes
// of transformers in tokenizer_classes.cpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vit/text/charsmap.h"

namespace vit::internal {

struct NormalizerStep {
  enum class Kind {
    nfc,
    nfkc,
    lower_letters,
    replace,         // every `pattern` becomes `content`
    replace_spaces,  // runs of `least` or more White_Space (least 1) or spaces (least 2) become `content`
    strip_left,
    strip_right,
    charsmap,
    bert_clean,  // bert_words.h
    ideographs,
    accents,
    prepend,  // `content` is prepended to a non-empty text
  };
  Kind kind = Kind::nfc;
  std::string pattern = {};
  std::string content = {};
  int least = 1;
  Charsmap charsmap = {};
};

/// What BERT's normalizer does, in this order.
struct BertNormalizer {
  bool clean = true, ideographs = true, accents = true, lower = true;
};
void append_bert_steps(const BertNormalizer& bert, std::vector<NormalizerStep>& steps);

std::string normalize(std::string text, const std::vector<NormalizerStep>& steps);

struct SplitterStep {
  enum class Kind {
    clip_words,           // and bytes become symbols
    gpt2_words,           // the same
    bert_words,           // words and punctuation
    white_space,          // split at White_Space, which is dropped
    space_mark,           // spaces become U+2581, one is prepended, splits before each
    space_with_previous,  // split after each space
  };
  /// When space_mark prepends the mark.
  enum class Prepend { always, first, never };
  Kind kind = Kind::white_space;
  Prepend prepend = Prepend::always;
  bool cut = true;           // at the marks
  bool special = false;      // clip_words: CLIP's special tokens, as they are spelled, are words
  bool cut_special = false;  // which GPT-2's expression cuts again
};

/// Whether the first character of `text` is removed, so that what remains does not start where the text does.
bool removes_start(std::string text, const std::vector<NormalizerStep>& steps);

/// The words of one stretch of text. `first`: it starts where the whole text does.
std::vector<std::string> split_words(std::string text, const std::vector<SplitterStep>& steps, bool first);

}  // namespace vit::internal
