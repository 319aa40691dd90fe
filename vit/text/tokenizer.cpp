// The public interface: cleaning, encoding, special tokens, padding.
#include "vit/text/tokenizer.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/moved.h"
#include "vit/io/in_quotes.h"
#include "vit/text/tokenizer_folder.h"
#include "vit/text/unicode.h"
#include "vit/weights/checkpoint/checkpoint_files.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/checkpoint/open_weights.h"

namespace vit {
using namespace internal;

using internal::BuiltTokenizer;
using internal::Cleaning;
using internal::TextFrame;
using internal::TokenId;

struct Tokenizer::Parts {
  BuiltTokenizer built;
  Cleaning cleaning = Cleaning::none;
  std::string name, cleaning_words;
  TextLibrary library = TextLibrary::transformers;
  std::size_t context_length = 0;

  const internal::Vocabulary& vocabulary() const { return internal::vocabulary_of(built.encoding); }

  std::vector<TokenId> content(std::string_view text) const {
    internal::check_utf8(text);
    const std::string cleaned = internal::clean(text, cleaning);
    return std::visit([&](const auto& encoding) { return encoding.encode(cleaned); }, built.encoding);
  }
};

namespace {

/// Properties of a tokenizer inferred from the weights of a text tower, if there is no configuration.
struct TextWeights {
  std::size_t context_length = 0;   // rows of the position table; 0: there is none
  std::size_t vocabulary_size = 0;  // rows of the token table
  TextLibrary library = TextLibrary::open_clip;
};

constexpr std::string_view kTokens = "token_embedding.weight", kDinoText = "text_model.backbone.";

/// The prefix of the tables: "", "text.", one added by a training script, or that of OWL-ViT and OWLv2.
std::optional<std::string_view> stem_of(std::string_view name) {
  if (!name.ends_with(kTokens)) return std::nullopt;
  const std::string_view stem = name.substr(0, name.size() - kTokens.size());
  if (stem == "owlvit.text_model.embeddings." || stem == "owlv2.text_model.embeddings.") return stem;
  const bool own = stem.empty() || (stem.ends_with('.') && !stem.ends_with("embeddings."));  // transformers'
  return own ? std::optional(stem) : std::nullopt;
}

std::optional<TextWeights> text_weights(const TensorFile& file) {
  for (const TensorEntry& tokens : file.entries()) {
    const auto stem = stem_of(tokens.name);
    if (!stem || tokens.shape.size() != 2) continue;
    TextWeights found{.vocabulary_size = tokens.shape[0]};
    const auto member = [&](std::string_view name) { return file.find(std::string(*stem).append(name)); };
    const TensorEntry* const places = member("positional_embedding");
    if (places != nullptr && places->shape.size() == 2) found.context_length = places->shape[0];
    // Only OpenAI's files contain these integers; dino.txt uses OpenAI's tokenizer.
    const bool openai = member("context_length") != nullptr && member("vocab_size") != nullptr;
    if (openai || stem->ends_with(kDinoText)) found.library = TextLibrary::openai;
    return found;
  }
  return std::nullopt;
}

std::vector<std::filesystem::path> candidates(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return {path};
  std::vector<std::filesystem::path> files = list_weights(path);
  std::sort(files.begin(), files.end());
  return files;
}

std::optional<TextWeights> find_text_weights(const std::filesystem::path& path) {
  for (const std::filesystem::path& file : candidates(path)) {
    if (const auto found = text_weights(open_weights(file))) return found;
  }
  return std::nullopt;
}

constexpr Where kWhere{"tokenize"};

/// Content between its special tokens.
std::vector<std::int32_t> framed(const std::vector<TokenId>& content, const TextFrame& frame) {
  std::vector<std::int32_t> ids(frame.front.begin(), frame.front.end());
  ids.insert(ids.end(), content.begin(), content.end());
  const bool there =
      frame.back_once && !content.empty() && !frame.back.empty() && content.back() == frame.back[0];
  if (!there) ids.insert(ids.end(), frame.back.begin(), frame.back.end());
  return ids;
}

std::string words_of(const BuiltTokenizer& built, Cleaning cleaning, TextLibrary library) {
  constexpr std::string_view kRepairs = "repairs as in ftfy, HTML decoded twice, ";
  std::string words = std::string(to_string(library)) + ": ";
  switch (cleaning) {
    case Cleaning::none: return words + built.steps;
    case Cleaning::lower: words += std::string(kRepairs) + "white space to single spaces, lower case"; break;
    case Cleaning::whitespace: words += std::string(kRepairs) + "white space to single spaces"; break;
    case Cleaning::canonicalize:
      words += std::string(kRepairs) + "punctuation removed, lower case, white space to single spaces";
      break;
  }
  return built.steps.empty() ? words : words + "; then " + built.steps;
}

}  // namespace

const char* to_string(TextLibrary library) {
  switch (library) {
    case TextLibrary::automatic: return "auto";
    case TextLibrary::transformers: return "transformers";
    case TextLibrary::open_clip: return "open_clip";
    case TextLibrary::openai: return "openai";
  }
  return "unknown";
}

TextLibrary text_library(std::string_view name) {
  for (const TextLibrary library :
       {TextLibrary::automatic, TextLibrary::transformers, TextLibrary::open_clip, TextLibrary::openai}) {
    if (name == to_string(library)) return library;
  }
  fail("text_library", in_quotes(name),
       " is not a library; expected auto, transformers, open_clip or openai");
}

Tokenizer Tokenizer::load(const std::filesystem::path& path, const TokenizerOptions& options) {
  internal::TokenizerFolder folder = internal::read_tokenizer_folder(path, options.library);
  folder.vocabulary_size = options.vocabulary_size;
  return build(folder);
}

Tokenizer Tokenizer::build(const internal::TokenizerFolder& folder) {
  auto parts = std::make_shared<Parts>(Parts{internal::build_tokenizer(folder),
                                             folder.cleaning,
                                             folder.name,
                                             {},
                                             folder.library,
                                             folder.context_length});
  parts->cleaning_words = words_of(parts->built, parts->cleaning, parts->library);
  return Tokenizer(std::move(parts));
}

Tokenizer Tokenizer::load_for_model(const std::filesystem::path& model,
                                    const std::filesystem::path& tokenizer, const TokenizerOptions& options) {
  std::optional<internal::TokenizerFolder> of_model;
  if (internal::describes_tokenizer(model))
    of_model = internal::read_tokenizer_folder(model, options.library);
  const bool stated = of_model && of_model->states_library;
  std::optional<TextWeights> weights;
  if (!stated || of_model->context_length == 0) weights = find_text_weights(model);
  VIT_CHECK(of_model || weights, kWhere.with(ErrorKind::unsupported), model.string(),
            ": has no text tower: neither its configuration nor the tensor token_embedding.weight");
  VIT_CHECK(of_model || !tokenizer.empty(), kWhere.with(ErrorKind::io), model.string(),
            ": has no vocabulary; CLIP's is published as bpe_simple_vocab_16e6.txt.gz in the folder clip of "
            "github.com/openai/CLIP and with huggingface.co/openai/clip-vit-base-patch32: give either as the "
            "tokenizer");
  TextLibrary library = options.library;
  // a vocabulary next to a publisher's weights does not say whose code reads it; their names do
  if (library == TextLibrary::automatic) library = stated || !weights ? of_model->library : weights->library;
  if (of_model && library != of_model->library) of_model = internal::read_tokenizer_folder(model, library);
  internal::TokenizerFolder folder =
      tokenizer.empty() ? *of_model : internal::read_tokenizer_folder(tokenizer, library);
  if (of_model && library != TextLibrary::transformers) {
    folder.cleaning = of_model->cleaning;
    folder.strip_separator = of_model->strip_separator;
  }
  if (of_model) folder.context_length = of_model->context_length;
  if (weights && (!stated || folder.context_length == 0) && weights->context_length != 0)
    folder.context_length = weights->context_length;
  if (of_model && folder.context_length == 0 && of_model->has("config.json")) {
    // Where the text tower's part of config.json is, its family knows.
    const CheckpointFolder checkpoint(model);
    if (const auto& tower = checkpoint.parsed<TextConfig>())
      folder.context_length = tower->config.context_length;
  }
  folder.vocabulary_size = options.vocabulary_size;
  if (weights && folder.vocabulary_size == 0) folder.vocabulary_size = weights->vocabulary_size;
  return build(folder);
}

std::vector<std::int32_t> Tokenizer::encode(std::string_view text) const {
  return framed(parts_of(parts_, kWhere).content(text), parts_of(parts_, kWhere).built.frame);
}

TokenRow Tokenizer::encode(std::string_view text, std::size_t context_length) const {
  const TextFrame& frame = parts_of(parts_, kWhere).built.frame;
  const std::size_t around = frame.front.size() + frame.back.size();
  VIT_CHECK(context_length > around || (context_length == around && around > 0), kWhere,
            "a context length of ", context_length, " has no room for the ", around, " special tokens");
  std::vector<TokenId> content = parts_of(parts_, kWhere).content(text);
  TokenRow row;
  row.cut = content.size() > context_length - around;
  if (row.cut) content.resize(context_length - around);
  row.ids = framed(content, frame);
  row.count = row.ids.size();
  const auto pad = static_cast<std::int32_t>(frame.pad);
  const auto at = frame.pad_left ? row.ids.begin() : row.ids.end();
  row.ids.insert(at, context_length - row.count, pad);
  if (frame.zeroed) std::replace(row.ids.begin(), row.ids.end(), static_cast<std::int32_t>(*frame.zeroed), 0);
  return row;
}

std::string_view Tokenizer::token(std::int32_t id) const {
  return id < 0 ? std::string_view() : parts_of(parts_, kWhere).vocabulary().token(static_cast<TokenId>(id));
}

std::int32_t Tokenizer::find(std::string_view token) const {
  const auto id = parts_of(parts_, kWhere).vocabulary().find(token);
  return id ? static_cast<std::int32_t>(*id) : -1;
}

std::size_t Tokenizer::vocabulary_size() const {
  return parts_of(parts_, kWhere).vocabulary().size();
}

std::size_t Tokenizer::context_length() const {
  return parts_of(parts_, kWhere).context_length;
}

std::int32_t Tokenizer::padding() const {
  return static_cast<std::int32_t>(parts_of(parts_, kWhere).built.frame.pad);
}

bool Tokenizer::pads_left() const {
  return parts_of(parts_, kWhere).built.frame.pad_left;
}

const std::string& Tokenizer::name() const {
  return parts_of(parts_, kWhere).name;
}

TextLibrary Tokenizer::library() const {
  return parts_of(parts_, kWhere).library;
}

const std::string& Tokenizer::cleaning() const {
  return parts_of(parts_, kWhere).cleaning_words;
}

}  // namespace vit
