// BERT's rules around its words: cleaning, ideographs as words, accents, punctuation. As the library
// tokenizers has them, with its classes of characters.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace vit::internal {

/// Without control characters and U+FFFD; white space becomes spaces.
std::string clean_bert(std::string_view text);
/// With spaces around each ideograph.
std::string space_ideographs(std::string_view text);
/// In NFD, without nonspacing marks.
std::string strip_accents(std::string_view text);
/// Split at White_Space, which is dropped, and around each punctuation character, which is a word.
std::vector<std::string_view> bert_words(std::string_view text);

}  // namespace vit::internal
