// The large part of tokenizer.json: model and added tokens.
#include "vit/text/tokenizer_json.h"

#include <optional>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/io/json.h"
#include "vit/io/json_stream.h"
#include "vit/io/source_file.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::format};
constexpr Where kUnsupported = kWhere.with(ErrorKind::unsupported);
constexpr std::size_t kMaxBytes = std::size_t{1} << 28;

/// "model" while it is read: parts that depend on the vocabulary wait until it is read.
struct ModelReader {
  ModelReader(JsonStream& from, const std::string& file) : json(from), name(file), vocabulary(kWhere, file) {}

  JsonStream& json;
  const std::string& name;
  Vocabulary vocabulary;
  std::string type;
  std::vector<MergeTable::Pair> merges;
  bool has_vocabulary = false, has_scores = false, has_merges = false;
  std::optional<std::string_view> merges_text;  // if they precede the vocabulary
  std::vector<double> scores;
  std::optional<std::string> unknown;
  std::optional<TokenId> unknown_id;
  bool fuse_unknown = false, byte_fallback = false, word_ends = false;
  std::string continuation;
  std::size_t max_characters = 100;

  void read();
  void read_member(const std::string& key);
  void read_vocabulary();
  void read_scores();
  void read_merges(JsonStream& from);
  std::optional<std::string> optional_string();
  TextModel finish();
};

std::optional<std::string> ModelReader::optional_string() {
  if (json.peek() == 'n') {
    json.skip();
    return std::nullopt;
  }
  return std::string(json.string());
}

void ModelReader::read_vocabulary() {
  if (has_vocabulary) json.fail_here("a second vocabulary");
  has_vocabulary = true;
  if (json.peek() == '[') {
    read_scores();
  } else {
    std::string token;
    for (json.enter_object(); json.next_member(token);) vocabulary.add(token, json.index());
  }
  vocabulary.finish();
}

void ModelReader::read_scores() {
  has_scores = true;
  for (json.enter_array(); json.next_element();) {
    json.enter_array();
    if (!json.next_element()) json.fail_here("expected a token and its score");
    vocabulary.add(json.string(), static_cast<TokenId>(scores.size()));
    if (!json.next_element()) json.fail_here("expected a score");
    scores.push_back(json.number());
    if (json.next_element()) json.fail_here("expected a token and its score, nothing else");
  }
}

void ModelReader::read_merges(JsonStream& from) {
  std::string left;
  for (from.enter_array(); from.next_element();) {
    if (from.peek() == '"') {
      const std::string_view both = from.string();
      const std::size_t space = both.find(' ');
      if (space == std::string_view::npos || both.find(' ', space + 1) != std::string_view::npos) {
        from.fail_here("a merge is not two tokens separated by a space");
      }
      merges.push_back(merge_pair(vocabulary, both.substr(0, space), both.substr(space + 1), kWhere));
      continue;
    }
    from.enter_array();
    if (!from.next_element()) from.fail_here("a merge is not two tokens");
    left = from.string();
    if (!from.next_element()) from.fail_here("a merge is not two tokens");
    merges.push_back(merge_pair(vocabulary, left, from.string(), kWhere));
    if (from.next_element()) from.fail_here("a merge is not two tokens");
  }
}

void ModelReader::read_member(const std::string& key) {
  if (key == "type") {
    type = json.string();
  } else if (key == "vocab") {
    read_vocabulary();
  } else if (key == "merges") {
    if (has_merges) json.fail_here("a second list of merges");
    has_merges = true;
    if (has_vocabulary) {
      read_merges(json);
    } else {
      merges_text = json.skip();
    }
  } else if (key == "unk_token") {
    unknown = optional_string();
  } else if (key == "unk_id") {
    if (json.peek() == 'n') {
      json.skip();
    } else {
      unknown_id = json.index();
    }
  } else if (key == "fuse_unk") {
    fuse_unknown = json.boolean();
  } else if (key == "byte_fallback") {
    byte_fallback = json.boolean();
  } else if (key == "end_of_word_suffix") {
    const std::string suffix = optional_string().value_or("");
    VIT_CHECK(suffix.empty() || suffix == "</w>", kUnsupported, name, ": end_of_word_suffix ",
              in_quotes(suffix));
    word_ends = !suffix.empty();
  } else if (key == "continuing_subword_prefix") {
    continuation = optional_string().value_or("");
  } else if (key == "max_input_chars_per_word") {
    max_characters = json.index();
  } else if (key == "ignore_merges") {
    VIT_CHECK(!json.boolean(), kUnsupported, name, ": ignore_merges");
  } else if (key == "dropout") {
    const std::string_view value = json.skip();
    VIT_CHECK(value == "null" || value == "0.0" || value == "0", kUnsupported, name, ": dropout ",
              in_quotes(value));
  } else {
    fail(kUnsupported, name, ": model.", plain_or_quoted(key), " is not known");
  }
}

void ModelReader::read() {
  std::string key;
  for (json.enter_object(); json.next_member(key);) read_member(key);
}

TextModel ModelReader::finish() {
  VIT_CHECK(has_vocabulary, kWhere, name, ": model.vocab is missing");
  if (type.empty()) type = has_scores ? "Unigram" : "BPE";
  VIT_CHECK(type == "BPE" || type == "Unigram" || type == "WordPiece", kUnsupported, name,
            ": models of type ", plain_or_quoted(type), "; BPE, Unigram and WordPiece are supported");
  VIT_CHECK(has_scores == (type == "Unigram"), kWhere, name, ": model.vocab does not match the type ",
            plain_or_quoted(type));
  if (type == "Unigram") {
    VIT_CHECK(unknown_id.has_value(), kUnsupported, name, ": a Unigram model without unk_id");
    UnigramModel model;
    model.scores = std::move(scores);
    model.unknown = *unknown_id;
    model.finish(vocabulary, kWhere);
    if (byte_fallback) model.bytes = byte_tokens(vocabulary);
    return {std::move(vocabulary), std::move(model)};
  }
  if (type == "WordPiece") {
    VIT_CHECK(unknown.has_value(), kWhere, name, ": a WordPiece model without unk_token");
    const TokenId id = vocabulary.at(*unknown);
    return {std::move(vocabulary), WordPieceModel{id, std::move(continuation), max_characters}};
  }
  VIT_CHECK(continuation.empty(), kUnsupported, name, ": continuing_subword_prefix ",
            in_quotes(continuation));
  VIT_CHECK(has_merges, kWhere, name, ": model.merges is missing");
  if (merges_text) {
    JsonStream later(*merges_text, name + ": model.merges", kWhere);
    read_merges(later);
  }
  BytePairModel model;
  model.merges = MergeTable(merges, kWhere, name);
  model.byte_fallback = byte_fallback;
  if (byte_fallback) model.bytes = byte_tokens(vocabulary);
  model.fuse_unknown = fuse_unknown;
  if (unknown) model.unknown = vocabulary.at(*unknown);
  return {std::move(vocabulary), std::move(model)};
}

std::vector<AddedToken> read_added(std::string_view text, const std::string& name) {
  std::vector<AddedToken> added;
  const Json list = parse_json(text, name + ": added_tokens");
  VIT_CHECK(list.is_array(), kWhere, name, ": added_tokens is not a list");
  for (std::size_t i = 0; i < list.size(); ++i) {
    const Json token = list[i];
    VIT_CHECK(!token.find_bool("single_word").value_or(false), kUnsupported, token.where(), ".single_word");
    added.push_back({std::string(token.at("content").as_string()),
                     static_cast<TokenId>(token.at("id").as_size({.max = 2 * kMaxVocabulary})),
                     token.find_bool("lstrip").value_or(false), token.find_bool("rstrip").value_or(false),
                     token.find_bool("normalized").value_or(true)});
  }
  return added;
}

}  // namespace

TokenizerJson parse_tokenizer_json(std::string_view text, std::string name) {
  VIT_CHECK(text.size() <= kMaxBytes, kUnsupported, name, ": ", text.size(), " bytes, more than the ",
            kMaxBytes, " allowed");
  JsonStream json(text, name, kWhere);
  std::optional<TextModel> model;
  TokenizerJson parts{name, {Vocabulary(kWhere, name), {}}, {}, false, "null", "null", "null"};
  std::string key;
  for (json.enter_object(); json.next_member(key);) {
    if (key == "model") {
      VIT_CHECK(!model, kWhere, name, ": a second model");
      ModelReader reader(json, name);
      reader.read();
      parts.word_ends = reader.word_ends;
      model = reader.finish();
    } else if (key == "added_tokens") {
      parts.added = read_added(json.skip(), name);
    } else if (key == "normalizer") {
      parts.normalizer = json.skip();
    } else if (key == "pre_tokenizer") {
      parts.pre_tokenizer = json.skip();
    } else if (key == "post_processor") {
      parts.post_processor = json.skip();
    } else if (key == "version" || key == "truncation" || key == "padding" || key == "decoder") {
      json.skip();  // does not affect ids: length and padding are the model's
    } else {
      fail(kUnsupported, name, ": ", plain_or_quoted(key), " is not known");
    }
  }
  json.finish();
  VIT_CHECK(model.has_value(), kWhere, name, ": the model is missing; not a file of the library tokenizers?");
  parts.model = std::move(*model);
  return parts;
}

TokenizerJson load_tokenizer_json(const std::filesystem::path& path) {
  const SourceFile file(path, kWhere);
  refuse_download_leftovers(file, path.string(), kWhere);
  return parse_tokenizer_json(file.text(0, kMaxBytes + 1), path.filename().string());
}

}  // namespace vit::internal
