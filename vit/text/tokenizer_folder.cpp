// Reads config.json, open_clip_config.json, tokenizer_config.json and special_tokens_map.json.
#include "vit/text/tokenizer_folder.h"

#include <algorithm>
#include <array>
#include <utility>

#include "vit/base/check.h"
#include "vit/io/foreign_files.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"load_tokenizer", ErrorKind::unsupported};
constexpr std::array kRoles = {"bos_token", "eos_token", "unk_token", "sep_token",
                               "pad_token", "cls_token", "mask_token"};
constexpr std::array kSimpleFiles = {"bpe_simple_vocab_16e6.txt.gz", "bpe_simple_vocab_16e6.txt"};

/// Special tokens that a class has if no file names them.
std::vector<std::pair<const char*, const char*>> default_tokens(const std::string& name) {
  if (name == "CLIPTokenizer") {
    return {{"bos_token", "<|startoftext|>"},
            {"eos_token", "<|endoftext|>"},
            {"unk_token", "<|endoftext|>"},
            {"pad_token", "<|endoftext|>"}};
  }
  if (name == "GemmaTokenizer" || name == "Siglip2Tokenizer") {
    return {{"bos_token", "<bos>"},
            {"eos_token", "<eos>"},
            {"unk_token", "<unk>"},
            {"pad_token", "<pad>"},
            {"mask_token", "<mask>"}};
  }
  if (name == "XLMRobertaTokenizer") {
    return {{"bos_token", "<s>"},   {"eos_token", "</s>"}, {"unk_token", "<unk>"},  {"sep_token", "</s>"},
            {"pad_token", "<pad>"}, {"cls_token", "<s>"},  {"mask_token", "<mask>"}};
  }
  if (name == "BertTokenizer") {
    return {{"unk_token", "[UNK]"},
            {"sep_token", "[SEP]"},
            {"pad_token", "[PAD]"},
            {"cls_token", "[CLS]"},
            {"mask_token", "[MASK]"}};
  }
  if (name == "T5Tokenizer") return {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
  if (name == "SiglipTokenizer")
    return {{"eos_token", "</s>"}, {"unk_token", "<unk>"}, {"pad_token", "</s>"}};
  if (name == "Tipsv2Tokenizer") return {{"unk_token", "<unk>"}, {"pad_token", "<pad>"}};
  return {};
}

AddedToken added_token(const Json& value) {
  VIT_CHECK(!value.find_bool("single_word").value_or(false), kWhere, value.where(),
            ".single_word is not known");
  return {std::string(value.at("content").as_string()), kNoToken, value.find_bool("lstrip").value_or(false),
          value.find_bool("rstrip").value_or(false), value.find_bool("normalized").value_or(true)};
}

/// A token as a configuration writes it: only its text, or an object with its properties.
AddedToken written_token(const TokenizerFolder& folder, const Json& value) {
  if (!value.is_string()) return added_token(value);
  AddedToken token;
  token.text = value.as_string();
  // SiglipTokenizer converts plain strings to its own tokens.
  token.strip_left = token.strip_right = folder.name == "SiglipTokenizer";
  return token;
}

void set_special(TokenizerFolder& folder, const std::string& role, const Json& value) {
  std::erase_if(folder.special, [&](const SpecialToken& token) { return token.role == role; });
  if (!value.is_null()) folder.special.push_back({role, written_token(folder, value), value.is_string()});
}

/// The list of tokens without a role: under the name of release 5, or, if that has none, the former name.
std::optional<Json> extra_tokens(const Json& config) {
  const auto now = config.find("extra_special_tokens"), former = config.find("additional_special_tokens");
  const auto is_list = [](const std::optional<Json>& value) { return value && value->is_array(); };
  if (is_list(now) && (now->size() != 0 || !is_list(former))) return now;
  return is_list(former) ? former : std::nullopt;
}

bool has_member(const Json& config, std::string_view key) {
  return config.find(key).has_value() || config.has_null(key);
}

void set_special_tokens(TokenizerFolder& folder, const Json& config) {
  for (std::size_t i = 0; i < config.size(); ++i) {
    const std::string key(config[i].key());
    if (std::find(kRoles.begin(), kRoles.end(), key) != kRoles.end()) set_special(folder, key, config[i]);
  }
  const auto list = extra_tokens(config);
  if (!list) return;
  std::erase_if(folder.special, [&](const SpecialToken& token) { return token.role == "extra"; });
  for (std::size_t j = 0; j < list->size(); ++j) {
    const Json value = (*list)[j];
    folder.special.push_back({"extra", written_token(folder, value), value.is_string()});
  }
}

/// The files of older releases, which are read where tokenizer_config.json lists no added tokens. Where there
/// is a tokenizer.json, it holds the tokens of added_tokens.json as well.
void read_older_files(TokenizerFolder& folder) {
  if (folder.has("special_tokens_map.json")) {
    const Json map = load_json(folder.file("special_tokens_map.json"));
    set_special_tokens(folder, map);
    if (has_member(map, "extra_special_tokens")) folder.lists_extra = true;
  }
  if (!folder.has("added_tokens.json") || folder.has("tokenizer.json")) return;
  const Json ids = load_json(folder.file("added_tokens.json"));
  std::vector<std::pair<std::size_t, std::string>> tokens;
  for (std::size_t i = 0; i < ids.size(); ++i)
    tokens.emplace_back(ids[i].as_size({.max = 1u << 30}), ids[i].key());
  std::ranges::sort(tokens);
  folder.has_added = !tokens.empty();
  for (const auto& token : tokens) {
    const std::string& text = token.second;
    const bool special = std::ranges::any_of(
        folder.special, [&](const SpecialToken& known) { return known.token.text == text; });
    folder.added.push_back({text, kNoToken, false, false, !special});
  }
}

void read_tokenizer_config(TokenizerFolder& folder, const Json& config) {
  set_special_tokens(folder, config);
  folder.lists_extra =
      has_member(config, "extra_special_tokens") || has_member(config, "additional_special_tokens");
  if (const auto added = config.find("added_tokens_decoder")) {
    folder.has_added = true;
    for (std::size_t i = 0; i < added->size(); ++i) folder.added.push_back(added_token((*added)[i]));
  } else {
    read_older_files(folder);
  }
  VIT_CHECK(folder.name == "SimpleTokenizer" || !config.find_bool("split_special_tokens").value_or(false),
            kWhere, config.where(),
            ": split_special_tokens is not implemented: special tokens in texts stay whole");
  folder.prefix_space = config.find_bool("add_prefix_space").value_or(true);
  folder.add_start = config.find_bool("add_bos_token");
  folder.add_end = config.find_bool("add_eos_token");
  folder.extra_ids = config.find_size("extra_ids", {.max = 10'000});
  folder.lower = config.find_bool("do_lower_case").value_or(true);
  folder.strip_accents = config.find_bool("strip_accents");
  folder.ideographs = config.find_bool("tokenize_chinese_chars").value_or(true);
  if (const auto side = config.find_string("padding_side")) {
    VIT_CHECK(*side == "left" || *side == "right", kWhere, config.where(), ": padding_side ",
              in_quotes(*side));
    folder.pad_left = *side == "left";
  }
  const auto truncation = config.find_string("truncation_side").value_or("right");
  VIT_CHECK(truncation == "right", kWhere, config.where(), ": truncation_side ", in_quotes(truncation));
}

bool is_clip(const std::string& model_type) {
  return model_type == "clip" || model_type == "clip_text_model" || model_type == "clipseg" ||
         model_type == "clipseg_text_model";
}

/// Context length of transformers' text towers if config.json does not state it.
std::size_t default_context_length(const std::string& model_type) {
  if (model_type == "siglip" || model_type == "siglip2" || model_type == "tipsv2") return 64;
  if (model_type == "chinese_clip" || model_type == "altclip") return 512;
  return is_clip(model_type) || model_type == "metaclip_2" ? 77 : 0;
}

std::size_t context_length_of(const Json& config) {
  const std::string model_type = config.find_string("model_type").value_or("");
  const Json from = hf_tower_part(config, "text");
  const auto rows = from.find_size("max_position_embeddings", {.min = 1, .max = 1u << 20});
  if (!rows) return default_context_length(model_type);
  if (model_type != "altclip") return *rows;
  const std::size_t padding = from.find_size("pad_token_id", {.max = 1u << 16}).value_or(1) + 1;
  return *rows > padding ? *rows - padding : 0;  // the rows of padding come first
}

std::string without_fast(std::string name) {
  if (name.ends_with("Fast") && name != "PreTrainedTokenizerFast") name.resize(name.size() - 4);
  return name == "MT5Tokenizer" ? "T5Tokenizer" : name;
}

/// The class chosen by transformers' AutoTokenizer.
std::string transformers_class(const TokenizerFolder& folder, const std::optional<Json>& tokenizer_config,
                               const std::string& model_type) {
  std::string name =
      without_fast(tokenizer_config ? tokenizer_config->find_string("tokenizer_class").value_or("") : "");
  // The only family here whose folders name a class that transformers overrides.
  if (model_type == "siglip2") name = "Siglip2Tokenizer";
  if (name.empty() && is_clip(model_type)) name = "CLIPTokenizer";
  if (name.empty() && model_type == "siglip") name = "SiglipTokenizer";
  if (name.empty() && model_type == "chinese_clip") name = "BertTokenizer";
  if (name.empty() && (model_type == "metaclip_2" || model_type == "altclip")) name = "XLMRobertaTokenizer";
  if (name.empty() && model_type == "tipsv2") name = "Tipsv2Tokenizer";
  if (name.empty() && folder.has("vocab.json") && folder.has("merges.txt")) name = "CLIPTokenizer";
  if (name.empty() && folder.has("tokenizer.json")) name = "TokenizersBackend";
  if (name == "PreTrainedTokenizerFast") name = "TokenizersBackend";
  return name;
}

Cleaning cleaning_named(const std::string& name) {
  if (name == "lower") return Cleaning::lower;
  if (name == "whitespace") return Cleaning::whitespace;
  if (name == "canonicalize") return Cleaning::canonicalize;
  fail(kWhere, "the cleaning rule ", in_quotes(name),
       " is not known; expected lower, whitespace or canonicalize");
}

void read_open_clip_config(TokenizerFolder& folder, const Json& config) {
  const auto model = config.find("model_cfg");
  const auto text = (model ? *model : config).find("text_cfg");
  VIT_CHECK(text.has_value(), kWhere.with(ErrorKind::format), config.where(), " has no text_cfg");
  folder.context_length = text->find_size("context_length", {.min = 1, .max = 1u << 20}).value_or(77);
  std::optional<std::string> clean;
  if (const auto arguments = text->find("tokenizer_kwargs")) {
    for (std::size_t i = 0; i < arguments->size(); ++i) {
      const std::string key((*arguments)[i].key());
      VIT_CHECK(key == "clean" || key == "strip_sep_token", kWhere, (*arguments)[i].where(), " is not known");
    }
    clean = arguments->find_string("clean");
    folder.strip_separator = arguments->find_bool("strip_sep_token").value_or(false);
  }
  const bool own = text->find_string("hf_tokenizer_name").value_or("").empty();
  if (own) folder.name = "SimpleTokenizer";
  folder.cleaning = cleaning_named(clean.value_or(own ? "lower" : "whitespace"));
}

/// open_clip's rules for a folder without an open_clip configuration.
void assume_open_clip(TokenizerFolder& folder) {
  if (folder.name == "CLIPTokenizer") {
    folder.name = "SimpleTokenizer";
    folder.cleaning = Cleaning::lower;
    if (folder.context_length == 0) folder.context_length = 77;
  } else if (folder.name == "XLMRobertaTokenizer") {
    folder.cleaning = Cleaning::whitespace;
  } else if (folder.name == "T5Tokenizer" || folder.name == "GemmaTokenizer" ||
             folder.name == "Siglip2Tokenizer") {
    folder.cleaning = Cleaning::canonicalize;
  } else {
    fail(kWhere, folder.folder.string(), ": open_clip has no rule for ", plain_or_quoted(folder.name),
         "; tokenizer_config.json names the class of a tokenizer, models of open_clip come with "
         "open_clip_config.json, and the library \"transformers\" reads a tokenizer.json as it is");
  }
}

void add_default_tokens(TokenizerFolder& folder, const std::optional<Json>& tokenizer_config) {
  for (const auto& [role, content] : default_tokens(folder.name)) {
    const auto is_set = [&, role = role](const SpecialToken& token) { return token.role == role; };
    if (std::any_of(folder.special.begin(), folder.special.end(), is_set)) continue;
    if (tokenizer_config && tokenizer_config->has_null(role)) continue;
    const bool strips = folder.name == "SiglipTokenizer";
    folder.special.push_back({role, {content, kNoToken, strips, strips, false}, true});
  }
  // In the order used by transformers.
  const auto order = [](const SpecialToken& token) {
    return std::find(kRoles.begin(), kRoles.end(), token.role) - kRoles.begin();
  };
  std::stable_sort(folder.special.begin(), folder.special.end(),
                   [&](const SpecialToken& a, const SpecialToken& b) { return order(a) < order(b); });
}

TokenizerFolder merges_alone(const std::filesystem::path& file, TextLibrary library) {
  TokenizerFolder folder;
  folder.merges_file = file;
  folder.library = library == TextLibrary::automatic ? TextLibrary::openai : library;
  folder.name = library == TextLibrary::transformers ? "CLIPTokenizer" : "SimpleTokenizer";
  if (library != TextLibrary::transformers) folder.cleaning = Cleaning::lower;
  add_default_tokens(folder, std::nullopt);
  return folder;
}

bool is_known(const std::string& name) {
  return name == "SimpleTokenizer" || name == "TokenizersBackend" || !default_tokens(name).empty();
}

}  // namespace

bool describes_tokenizer(const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::path folder =
      std::filesystem::is_directory(path, ignored) ? path : path.parent_path();
  for (const char* name : {"open_clip_config.json", "tokenizer_config.json", "tokenizer.json", "vocab.json",
                           kSimpleFiles[0], kSimpleFiles[1]}) {
    if (std::filesystem::is_regular_file(folder / name, ignored)) return true;
  }
  // Image models have a config.json as well.
  const std::filesystem::path config = folder / "config.json";
  if (!std::filesystem::is_regular_file(config, ignored)) return false;
  return default_context_length(load_json(config).find_string("model_type").value_or("")) > 0;
}

TokenizerFolder read_tokenizer_folder(const std::filesystem::path& path, TextLibrary library) {
  std::error_code ignored;
  VIT_CHECK(std::filesystem::exists(path, ignored), kWhere.with(ErrorKind::io), path.string(),
            ": no such file or folder", missing_hint(path.string()));
  const bool is_file = !std::filesystem::is_directory(path, ignored);
  const std::string extension = path.extension().string();
  if (is_file && path.filename() != "merges.txt" && (extension == ".gz" || extension == ".txt")) {
    return merges_alone(path, library);
  }
  TokenizerFolder folder;
  folder.folder = is_file ? path.parent_path() : path;
  if (folder.folder.empty()) folder.folder = ".";
  const auto read = [&folder](const char* name) {
    return folder.has(name) ? std::optional(load_json(folder.file(name))) : std::nullopt;
  };
  const auto config = read("config.json");
  const auto tokenizer_config = read("tokenizer_config.json");
  const auto open_clip = read("open_clip_config.json");
  const std::string model_type = config ? config->find_string("model_type").value_or("") : "";
  if (!open_clip && !tokenizer_config && model_type.empty() && !folder.has("vocab.json") &&
      !folder.has("tokenizer.json")) {
    for (const char* name : kSimpleFiles) {
      if (folder.has(name)) return merges_alone(folder.file(name), library);
    }
  }
  // If both describe the folder, the weights chosen by the loader decide.
  const bool is_open_clip =
      open_clip && (model_type.empty() || CheckpointFolder(path).uses_open_clip_config());
  folder.library = library != TextLibrary::automatic ? library
                   : is_open_clip                    ? TextLibrary::open_clip
                                                     : TextLibrary::transformers;
  folder.states_library = open_clip.has_value() || !model_type.empty();
  const bool python = folder.library != TextLibrary::transformers;
  folder.name = transformers_class(folder, tokenizer_config, model_type);
  if (config && !model_type.empty()) folder.context_length = context_length_of(*config);
  folder.pad_left = folder.name == "GemmaTokenizer" || folder.name == "Siglip2Tokenizer";
  if (open_clip && python) {
    read_open_clip_config(folder, *open_clip);
  } else if (python) {
    assume_open_clip(folder);
  }
  if (folder.library == TextLibrary::openai) {
    folder.name = "SimpleTokenizer";
    folder.cleaning = Cleaning::lower;
  }
  VIT_CHECK(!folder.name.empty(), kWhere.with(ErrorKind::io), folder.folder.string(),
            ": the tokenizer is unknown: tokenizer_config.json, tokenizer.json, vocab.json with merges.txt "
            "or open_clip_config.json is missing; they are published with the weights");
  VIT_CHECK(is_known(folder.name), kWhere, folder.folder.string(), ": the tokenizer class ",
            plain_or_quoted(folder.name), " is not known");
  if (tokenizer_config) {
    read_tokenizer_config(folder, *tokenizer_config);
  } else {
    read_older_files(folder);
  }
  add_default_tokens(folder, tokenizer_config);
  return folder;
}

}  // namespace vit::internal
