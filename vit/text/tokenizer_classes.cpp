// One function per class. If transformers' classes build normalizer and splitter themselves, so do these;
// those parts of tokenizer.json are then not read.
#include "vit/text/tokenizer_folder.h"

#include <algorithm>
#include <set>

#include "vit/base/check.h"
#include "vit/text/clip_files.h"
#include "vit/text/tokenizer_json.h"
#include "vit/text/unicode.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::format};
using Step = NormalizerStep;
using Split = SplitterStep;

[[noreturn]] void missing(const TokenizerFolder& folder, const char* files, const char* published) {
  fail(kWhere.with(ErrorKind::io), folder.folder.string(), ": ", folder.name, " needs ", files,
       ", which is missing; published at huggingface.co/", published);
}

/// The largest published number is about 6,000 (Gemma's).
constexpr std::size_t kMaxAdded = 200'000;

/// Tokens that a class searches in texts: those of the files, and special tokens that are not among them.
/// Of two spellings of one token, plain strings come last and are used.
std::vector<AddedToken> tokens_to_add(const TokenizerFolder& folder, const std::vector<AddedToken>& of_file) {
  std::vector<AddedToken> tokens = folder.has_added ? folder.added : of_file;
  VIT_CHECK(tokens.size() + folder.special.size() <= kMaxAdded, kWhere.with(ErrorKind::unsupported),
            folder.folder.string(), ": ", tokens.size() + folder.special.size(),
            " added tokens, more than the ", kMaxAdded, " allowed");
  std::set<std::string_view> listed, special;  // texts
  std::vector<AddedToken> more;
  for (const AddedToken& token : tokens) listed.insert(token.text);
  for (const SpecialToken& candidate : folder.special) {
    const std::string& text = candidate.token.text;
    if (listed.contains(text) || (!candidate.plain && special.contains(text))) continue;
    special.insert(text);
    more.push_back(candidate.token);
  }
  tokens.insert(tokens.end(), more.begin(), more.end());
  return tokens;
}

void add_tokens(const TokenizerFolder& folder, const std::vector<AddedToken>& of_file,
                PipelineEncoding& encoding) {
  Vocabulary& vocabulary = encoding.model.vocabulary;
  for (AddedToken token : tokens_to_add(folder, of_file)) {
    if (token.text.empty()) continue;
    const auto id = vocabulary.find(token.text);
    token.id = id ? *id : static_cast<TokenId>(vocabulary.size());
    if (!id) vocabulary.add(token.text, token.id);
    // Tokens searched in normalized text are normalized themselves.
    if (token.normalized) token.text = normalize(token.text, encoding.normalizer);
    encoding.added.add(std::move(token));
  }
  encoding.added.finish();
}

std::optional<TokenId> special_id(const TokenizerFolder& folder, const Vocabulary& vocabulary,
                                  const char* role) {
  for (const SpecialToken& special : folder.special) {
    if (special.role == role) return vocabulary.at(special.token.text);
  }
  return std::nullopt;
}

TokenId needed_id(const TokenizerFolder& folder, const Vocabulary& vocabulary, const char* role) {
  const auto id = special_id(folder, vocabulary, role);
  VIT_CHECK(id.has_value(), kWhere, folder.folder.string(), ": ", folder.name, " needs a ", role);
  return *id;
}

TextFrame frame_with_padding(const TokenizerFolder& folder, const Vocabulary& vocabulary) {
  TextFrame frame;
  frame.pad = special_id(folder, vocabulary, "pad_token").value_or(0);
  frame.pad_left = folder.pad_left;
  if (folder.strip_separator) frame.zeroed = special_id(folder, vocabulary, "sep_token");
  return frame;
}

/// Applies add_bos_token and add_eos_token. If there is a tokenizer.json, only its post-processor
/// is used.
void apply_flags(const TokenizerFolder& folder, const Vocabulary& vocabulary, TextFrame& frame) {
  frame.front.clear();
  frame.back.clear();
  if (folder.add_start.value_or(false)) frame.front.push_back(needed_id(folder, vocabulary, "bos_token"));
  if (folder.add_end.value_or(false)) frame.back.push_back(needed_id(folder, vocabulary, "eos_token"));
}

TextModel clip_vocabulary(const TokenizerFolder& folder, std::vector<AddedToken>& added) {
  MergesOptions options;
  options.vocabulary_size = folder.vocabulary_size;
  if (folder.library == TextLibrary::open_clip) {
    options.start = "<start_of_text>";
    options.end = "<end_of_text>";
  }
  if (!folder.merges_file.empty()) return load_merges(folder.merges_file, options);
  if (folder.has("tokenizer.json")) {
    TokenizerJson file = load_tokenizer_json(folder.file("tokenizer.json"));
    VIT_CHECK(file.model.is_byte_pair() && file.word_ends, kWhere.with(ErrorKind::mismatch),
              folder.file("tokenizer.json").string(),
              ": is not a byte pair encoding with </w>, as required by ", folder.name, " has it");
    added = std::move(file.added);
    return clip_model(std::move(file.model.vocabulary),
                      std::move(std::get<BytePairModel>(file.model.algorithm).merges));
  }
  if (folder.has("vocab.json") && folder.has("merges.txt")) {
    return load_vocabulary_and_merges(folder.file("vocab.json"), folder.file("merges.txt"));
  }
  for (const char* name : {"bpe_simple_vocab_16e6.txt.gz", "bpe_simple_vocab_16e6.txt"}) {
    if (folder.has(name)) return load_merges(folder.file(name), options);
  }
  missing(folder,
          "CLIP's vocabulary (tokenizer.json, or vocab.json and merges.txt, or bpe_simple_vocab_16e6.txt.gz)",
          "openai/clip-vit-base-patch32 and in the folder clip of github.com/openai/CLIP; give it as the "
          "tokenizer");
}

BuiltTokenizer build_clip(const TokenizerFolder& folder) {
  std::vector<AddedToken> added;
  PipelineEncoding encoding{clip_vocabulary(folder, added), {}, {}, {}};
  encoding.normalizer = {{.kind = Step::Kind::nfc},
                         {.kind = Step::Kind::replace_spaces, .content = " ", .least = 1},
                         {.kind = Step::Kind::lower_letters}};
  encoding.splitter = {{.kind = Split::Kind::clip_words, .special = true, .cut_special = true}};
  add_tokens(folder, added, encoding);
  const Vocabulary& vocabulary = encoding.model.vocabulary;
  TextFrame frame = frame_with_padding(folder, vocabulary);
  frame.front = {needed_id(folder, vocabulary, "bos_token")};
  frame.back = {needed_id(folder, vocabulary, "eos_token")};
  return {std::move(encoding), std::move(frame),
          "NFC, white space to single spaces, lower case letter by letter"};
}

BuiltTokenizer build_simple(const TokenizerFolder& folder) {
  std::vector<AddedToken> ignored;
  SimpleEncoding encoding{clip_vocabulary(folder, ignored), {}, 0, 0};
  encoding.pattern.ignore_case = true;
  const bool own_spelling = folder.library == TextLibrary::open_clip;
  encoding.pattern.start = own_spelling ? "<start_of_text>" : "<|startoftext|>";
  encoding.pattern.end = own_spelling ? "<end_of_text>" : "<|endoftext|>";
  // Hugging Face's copies of the vocabulary have OpenAI's spelling, whoever reads them.
  const Vocabulary& vocabulary = encoding.model.vocabulary;
  const auto id = [&vocabulary](std::string_view one, std::string_view other) {
    const auto found = vocabulary.find(one);
    return found ? *found : vocabulary.at(other);
  };
  encoding.start = id("<start_of_text>", "<|startoftext|>");
  encoding.end = id("<end_of_text>", "<|endoftext|>");
  TextFrame frame;
  frame.front = {encoding.start};
  frame.back = {encoding.end};
  return {std::move(encoding), std::move(frame), ""};
}

/// T5's sentinels, which the class adds unless the configuration lists tokens without a role.
void add_sentinels(const TokenizerFolder& folder, std::vector<AddedToken>& added) {
  const auto is_extra = [](const SpecialToken& token) {
    return token.role == "extra" && token.token.text.starts_with("<extra_id_");
  };
  if (folder.lists_extra || std::any_of(folder.special.begin(), folder.special.end(), is_extra)) return;
  const std::size_t count = folder.extra_ids.value_or(100);
  for (std::size_t i = 0; i < count; ++i) added.push_back({text("<extra_id_", i, ">"), kNoToken});
}

/// Vocabulary and scores of a .model file for T5Tokenizer and XLMRobertaTokenizer.
TextModel unigram_of(SentencePieceModel&& source, bool xlm_roberta) {
  const std::string name = source.vocabulary.name();
  VIT_CHECK(source.algorithm == SentencePieceModel::Algorithm::unigram, kWhere.with(ErrorKind::mismatch),
            name, ": is not a unigram model");
  Vocabulary vocabulary(kWhere, name);
  UnigramModel model;
  const auto append = [&](std::string_view token, double score) {
    vocabulary.add(token, static_cast<TokenId>(model.scores.size()));
    model.scores.push_back(score);
  };
  std::size_t first = 0;
  if (xlm_roberta) {
    for (const char* token : {"<s>", "<pad>", "</s>", "<unk>"}) append(token, 0.0);
    first = 3;
  }
  for (std::size_t id = first; id < source.scores.size(); ++id) {
    append(source.vocabulary.token(static_cast<TokenId>(id)), source.scores[id]);
  }
  if (xlm_roberta) append("<mask>", 0.0);
  model.unknown = xlm_roberta ? 3 : 2;
  vocabulary.finish();
  model.finish(vocabulary, kWhere);
  return {std::move(vocabulary), std::move(model)};
}

BuiltTokenizer build_unigram(const TokenizerFolder& folder) {
  const bool xlm_roberta = folder.name == "XLMRobertaTokenizer";
  const char* const model_file = xlm_roberta ? "sentencepiece.bpe.model" : "spiece.model";
  std::vector<AddedToken> added;
  std::optional<PipelineEncoding> encoding;
  Charsmap charsmap;
  if (folder.has("tokenizer.json")) {
    TokenizerJson file = load_tokenizer_json(folder.file("tokenizer.json"));
    VIT_CHECK(file.model.is_unigram(), kWhere.with(ErrorKind::mismatch),
              folder.file("tokenizer.json").string(), ": is not a Unigram model, as required by ",
              folder.name);
    charsmap = charsmap_of(file);
    added = std::move(file.added);
    encoding.emplace(PipelineEncoding{std::move(file.model), {}, {}, {}});
    auto& model = std::get<UnigramModel>(encoding->model.algorithm);
    model.unknown = xlm_roberta ? 3 : 2;
    model.bytes.reset();  // the classes rebuild the model without them
  } else if (folder.has(model_file)) {
    SentencePieceModel source = load_sentencepiece(folder.file(model_file));
    charsmap = std::move(source.charsmap);
    encoding.emplace(PipelineEncoding{unigram_of(std::move(source), xlm_roberta), {}, {}, {}});
  } else if (xlm_roberta) {
    missing(folder, "tokenizer.json or sentencepiece.bpe.model",
            "facebook/metaclip-2-worldwide-huge-quickgelu");
  } else {
    missing(folder, "tokenizer.json or spiece.model", "timm/ViT-B-16-SigLIP");
  }
  if (!charsmap.empty())
    encoding->normalizer = {{.kind = Step::Kind::charsmap, .charsmap = std::move(charsmap)}};
  encoding->splitter = {{.kind = Split::Kind::white_space}};
  if (!xlm_roberta || folder.prefix_space) encoding->splitter.push_back({.kind = Split::Kind::space_mark});
  if (!xlm_roberta) add_sentinels(folder, added);
  add_tokens(folder, added, *encoding);
  const Vocabulary& vocabulary = encoding->model.vocabulary;
  TextFrame frame = frame_with_padding(folder, vocabulary);
  if (xlm_roberta) frame.front = {needed_id(folder, vocabulary, "bos_token")};
  frame.back = {needed_id(folder, vocabulary, "eos_token")};
  return {std::move(*encoding), std::move(frame),
          "map of characters per grapheme cluster, split at white space"};
}

BuiltTokenizer build_gemma(const TokenizerFolder& folder) {
  if (!folder.has("tokenizer.json")) missing(folder, "tokenizer.json", "google/siglip2-base-patch16-224");
  TokenizerJson file = load_tokenizer_json(folder.file("tokenizer.json"));
  VIT_CHECK(file.model.is_byte_pair(), kWhere.with(ErrorKind::mismatch),
            folder.file("tokenizer.json").string(), ": is not a byte pair encoding, as required by ",
            folder.name);
  Frame around = frame_of(file);
  PipelineEncoding encoding{std::move(file.model), {}, {}, {}};
  auto& model = std::get<BytePairModel>(encoding.model.algorithm);
  model.byte_fallback = model.fuse_unknown = true;
  model.bytes = byte_tokens(encoding.model.vocabulary);
  model.unknown = special_id(folder, encoding.model.vocabulary, "unk_token");
  const bool lower = folder.name == "Siglip2Tokenizer";
  if (lower) encoding.normalizer.push_back({.kind = Step::Kind::lower_letters});
  encoding.normalizer.push_back({.kind = Step::Kind::replace, .pattern = " ", .content = "\u2581"});
  add_tokens(folder, file.added, encoding);
  const Vocabulary& vocabulary = encoding.model.vocabulary;
  TextFrame frame = frame_with_padding(folder, vocabulary);
  frame.front = std::move(around.front);
  frame.back = std::move(around.back);
  return {std::move(encoding), std::move(frame),
          lower ? "lower case letter by letter" : "none, capitals are kept"};
}

/// Every way to make a piece of two pieces, in the order of the pieces, shorter first parts first.
MergeTable merges_of_pieces(const Vocabulary& vocabulary) {
  std::vector<MergeTable::Pair> merges;
  for (std::size_t id = 0; id < vocabulary.size(); ++id) {
    const std::string_view piece = vocabulary.token(static_cast<TokenId>(id));
    for (std::size_t at = 0; at < piece.size();) {
      at += character_bytes(piece[at]);
      if (at >= piece.size()) break;
      const auto left = vocabulary.find(piece.substr(0, at));
      const auto right = vocabulary.find(piece.substr(at));
      if (left && right) merges.push_back({*left, *right, static_cast<TokenId>(id)});
    }
  }
  return MergeTable(merges, kWhere, vocabulary.name());
}

BuiltTokenizer build_tipsv2(const TokenizerFolder& folder) {
  if (!folder.has("tokenizer.model")) missing(folder, "tokenizer.model", "google/tipsv2-b14");
  SentencePieceModel source = load_sentencepiece(folder.file("tokenizer.model"));
  VIT_CHECK(source.algorithm == SentencePieceModel::Algorithm::bpe, kWhere.with(ErrorKind::mismatch),
            folder.file("tokenizer.model").string(), ": is not a BPE model, as required by ", folder.name);
  BytePairModel model;
  model.merges = merges_of_pieces(source.vocabulary);
  model.byte_fallback = model.fuse_unknown = true;
  model.bytes = byte_tokens(source.vocabulary);
  PipelineEncoding encoding{{std::move(source.vocabulary), std::move(model)}, {}, {}, {}};
  if (folder.lower) encoding.normalizer.push_back({.kind = Step::Kind::lower_letters});
  if (!source.charsmap.empty()) {
    encoding.normalizer.push_back({.kind = Step::Kind::charsmap, .charsmap = std::move(source.charsmap)});
  }
  encoding.splitter = {{.kind = Split::Kind::white_space}, {.kind = Split::Kind::space_mark}};
  add_tokens(folder, {}, encoding);
  const Vocabulary& vocabulary = encoding.model.vocabulary;
  TextFrame frame = frame_with_padding(folder, vocabulary);
  apply_flags(folder, vocabulary, frame);
  return {std::move(encoding), std::move(frame),
          "lower case letter by letter, map of characters per grapheme cluster, split at white space"};
}

BuiltTokenizer build_siglip(const TokenizerFolder& folder) {
  if (!folder.has("spiece.model")) missing(folder, "spiece.model", "google/siglip-base-patch16-224");
  SiglipEncoding encoding{
      SentencePieceEncoder(load_sentencepiece(folder.file("spiece.model"))), {}, folder.lower};
  const Vocabulary& vocabulary = encoding.model.vocabulary();
  for (AddedToken token : tokens_to_add(folder, {})) {
    token.id = vocabulary.at(token.text);
    if (token.normalized) token.normalized = false;  // nothing is normalized before the search
    encoding.added.add(std::move(token));
  }
  encoding.added.finish();
  for (const SpecialToken& special : folder.special) {
    if (special.role == "unk_token") encoding.unknown = special.token.text;
  }
  TextFrame frame = frame_with_padding(folder, vocabulary);
  frame.back = {needed_id(folder, vocabulary, "eos_token")};
  frame.back_once = true;
  return {std::move(encoding), std::move(frame),
          "lower case, punctuation removed, white space to single spaces, SentencePiece's map of characters"};
}

TextModel bert_vocabulary(const TokenizerFolder& folder, std::vector<AddedToken>& added) {
  if (folder.has("tokenizer.json")) {
    TokenizerJson file = load_tokenizer_json(folder.file("tokenizer.json"));
    VIT_CHECK(file.model.is_word_piece(), kWhere.with(ErrorKind::mismatch),
              folder.file("tokenizer.json").string(), ": is not a WordPiece model, as required by ",
              folder.name);
    added = std::move(file.added);
    return {std::move(file.model.vocabulary), WordPieceModel{}};
  }
  if (!folder.has("vocab.txt"))
    missing(folder, "tokenizer.json or vocab.txt", "OFA-Sys/chinese-clip-vit-base-patch16");
  return {load_token_list(folder.file("vocab.txt")), WordPieceModel{}};
}

BuiltTokenizer build_bert(const TokenizerFolder& folder) {
  std::vector<AddedToken> added;
  PipelineEncoding encoding{bert_vocabulary(folder, added), {}, {}, {}};
  append_bert_steps({.ideographs = folder.ideographs,
                     .accents = folder.strip_accents.value_or(folder.lower),
                     .lower = folder.lower},
                    encoding.normalizer);
  encoding.splitter = {{.kind = Split::Kind::bert_words}};
  add_tokens(folder, added, encoding);
  const Vocabulary& vocabulary = encoding.model.vocabulary;
  std::get<WordPieceModel>(encoding.model.algorithm).unknown = needed_id(folder, vocabulary, "unk_token");
  TextFrame frame = frame_with_padding(folder, vocabulary);
  frame.front = {needed_id(folder, vocabulary, "cls_token")};
  frame.back = {needed_id(folder, vocabulary, "sep_token")};
  return {std::move(encoding), std::move(frame),
          "control characters removed, ideographs and punctuation as words, accents and capitals as the "
          "folder says"};
}

/// A file of an unknown class, read as written.
BuiltTokenizer build_as_written(const TokenizerFolder& folder) {
  if (!folder.has("tokenizer.json")) missing(folder, "tokenizer.json", "the model's own page");
  TokenizerJson file = load_tokenizer_json(folder.file("tokenizer.json"));
  PipelineEncoding encoding{std::move(file.model), {}, normalizer_steps(file), splitter_steps(file)};
  const auto has = [&](Split::Kind kind) {
    return std::ranges::any_of(encoding.splitter, [&](const Split& step) { return step.kind == kind; });
  };
  const bool has_ends = has(Split::Kind::clip_words);
  VIT_CHECK(has_ends == file.word_ends, kWhere.with(ErrorKind::unsupported), file.name,
            ": </w> without CLIP's pre-tokenizer, or vice versa");
  auto* const model = std::get_if<BytePairModel>(&encoding.model.algorithm);
  if (model != nullptr && (has_ends || has(Split::Kind::gpt2_words))) {
    model->symbols =
        find_byte_symbols(encoding.model.vocabulary, has_ends ? WordEnds::suffix : WordEnds::none);
  }
  Frame found = frame_of(file);
  add_tokens(folder, file.added, encoding);
  const Vocabulary& vocabulary = encoding.model.vocabulary;
  TextFrame frame = frame_with_padding(folder, vocabulary);
  frame.front = std::move(found.front);
  frame.back = std::move(found.back);
  return {std::move(encoding), std::move(frame), "as in tokenizer.json"};
}

}  // namespace

BuiltTokenizer build_tokenizer(const TokenizerFolder& folder) {
  if (folder.name == "SimpleTokenizer") return build_simple(folder);
  if (folder.name == "CLIPTokenizer") return build_clip(folder);
  if (folder.name == "T5Tokenizer" || folder.name == "XLMRobertaTokenizer") return build_unigram(folder);
  if (folder.name == "GemmaTokenizer" || folder.name == "Siglip2Tokenizer") return build_gemma(folder);
  if (folder.name == "Tipsv2Tokenizer") return build_tipsv2(folder);
  if (folder.name == "BertTokenizer") return build_bert(folder);
  if (folder.name == "SiglipTokenizer") return build_siglip(folder);
  return build_as_written(folder);
}

}  // namespace vit::internal
