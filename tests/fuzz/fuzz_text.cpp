// Readers of tokenizer files, and what is done with what they read.
#include "tests/fuzz/fuzz_text.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>

#include "tests/support/files.h"
#include "vit/position/rope.h"
#include "vit/text/bert_words.h"
#include "vit/text/clean.h"
#include "vit/text/clip_files.h"
#include "vit/text/sentencepiece.h"
#include "vit/text/tokenizer_json.h"
#include "vit/text/unicode.h"
#include "vit/text/word_piece.h"

namespace vit::fuzz {
namespace {

constexpr std::string_view kText = "A photo of\u00A0a caf\u00E9, \u00BD\u0301 \U0001F600 \uFF26\n";

std::string golden(const char* name) {
  return test::read_text(std::filesystem::path(VIT_FUZZ_DATA_DIR) / "golden/tokenizers" / name);
}

}  // namespace

void run_tokenizer_json(std::string_view input) {
  const internal::TokenizerJson file = internal::parse_tokenizer_json(input, "input");
  std::vector<internal::TokenId> ids;
  file.model.encode(kText, ids);
  internal::frame_of(file);
  const std::string normalized = internal::normalize(std::string(kText), internal::normalizer_steps(file));
  for (const std::string& word : internal::split_words(normalized, internal::splitter_steps(file), true)) {
    file.model.encode(word, ids);
  }
}

std::vector<std::string> tokenizer_json_seeds() {
  return {golden("clip/tokenizer.json"), golden("gemma/tokenizer.json"), golden("t5/tokenizer.json"),
          golden("xlm-roberta/tokenizer.json"),
          R"({"model": {"type": "BPE", "merges": ["a b"], "vocab": {"a": 0, "b": 1, "ab": 2}}})"};
}

void run_sentencepiece(std::string_view input) {
  internal::SentencePieceModel model = internal::parse_sentencepiece(input, "input");
  model.charsmap.normalize_clusters(kText);
  if (model.algorithm == internal::SentencePieceModel::Algorithm::unigram) {
    internal::SentencePieceEncoder(std::move(model)).encode(kText);
  }
}

std::vector<std::string> sentencepiece_seeds() {
  return {golden("siglip/spiece.model"), golden("tipsv2/tokenizer.model")};
}

void run_merges(std::string_view input) {
  std::vector<internal::TokenId> ids;
  internal::parse_merges(input, "input").encode(kText, ids);
}

std::vector<std::string> merges_seeds() {
  return {golden("clip-merges/bpe_simple_vocab_16e6.txt.gz"), "version\na b\nab c</w>\n"};
}

void run_vocabulary(std::string_view input) {
  const std::size_t end = std::min(input.find('\0'), input.size());
  const internal::TextModel model = internal::parse_vocabulary_and_merges(
      input.substr(0, end), input.substr(std::min(end + 1, input.size())), "input");
  std::vector<internal::TokenId> ids;
  model.encode(kText, ids);
}

std::vector<std::string> vocabulary_seeds() {
  return {golden("clip-split/vocab.json") + '\0' + golden("clip-split/merges.txt")};
}

void run_token_list(std::string_view input) {
  const internal::Vocabulary vocabulary = internal::parse_token_list(input, "input");
  std::vector<internal::TokenId> ids;
  for (const std::string_view word : internal::bert_words(kText))
    internal::encode_pieces({}, vocabulary, word, ids);
  if (std::any_of(ids.begin(), ids.end(),
                  [&](internal::TokenId id) { return id != 0 && !vocabulary.has(id); }))
    throw std::logic_error("a piece is no token of the list");
}

std::vector<std::string> token_list_seeds() {
  return {golden("bert-list/vocab.txt"), "[UNK]\r\na\n\ncaf\n##\u00E9\nphoto"};
}

void run_clean(std::string_view input) {
  internal::check_utf8(input);
  for (const auto rule : {internal::Cleaning::lower, internal::Cleaning::canonicalize}) {
    internal::check_utf8(internal::clean(input, rule));
  }
}

std::vector<std::string> clean_seeds() {
  return {"caf\u00C3\u00A9 &amp;lt; \033[31m \uFB01 \u201Cx\u201D \uFF26 &#128;",
          "&EACUTE;&#1114112; \u00E2\u20AC\u2122\r\n",
          // every ligature and digraph, and the control characters of Latin-1
          "\u0132\u0133\u0149\u01F1\u01F2\u01F3\u01C4\u01C5\u01C6\u01C7\u01C8\u01C9\u01CA\u01CB\u01CC"
          "\uFB00\uFB01\uFB02\uFB03\uFB04\uFB05\uFB06\u3000\u0085\u0092\uFFFC\u200B\u2028"};
}

void run_rope_scaling(std::string_view input) {
  const RopeScaling scaling = position::parse_rope_scaling(input);
  if (position::parse_rope_scaling(position::to_string(scaling)) != scaling)
    throw std::logic_error("what is written is read as another rule");
}

std::vector<std::string> rope_scaling_seeds() {
  return {"none,temperature=log", "linear,axes=common,factor=0.5", "ntk,axes=each,factor=2",
          "yarn,factor=4,beta_fast=16,beta_slow=2,truncate=true,attention_factor=1.5,temperature=none"};
}

}  // namespace vit::fuzz
