// The description of a tokenizer: class, library, cleaning, context length and special tokens, from
// a folder's configuration files. build_tokenizer() builds the tokenizer from it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "vit/io/file_status.h"
#include "vit/io/json.h"
#include "vit/text/added_tokens.h"
#include "vit/text/clean.h"
#include "vit/text/text_encoding.h"
#include "vit/text/tokenizer.h"

namespace vit::internal {

/// A special token as a configuration writes it: a string, or an object with its properties.
struct SpecialToken {
  std::string role;   // "bos_token", ...
  AddedToken token;   // without id
  bool plain = true;  // written as a string
};

struct TokenizerFolder {
  std::filesystem::path folder;
  std::filesystem::path merges_file;  // if one file was given
  std::string name;                   // class
  TextLibrary library = TextLibrary::transformers;
  bool states_library = false;  // a configuration of a model says whose code reads the files
  Cleaning cleaning = Cleaning::none;
  bool strip_separator = false;
  std::size_t context_length = 0;
  std::size_t vocabulary_size = 0;  // of the model, if known to the caller
  bool pad_left = false;
  bool has_added = false;         // tokenizer_config.json lists added tokens
  std::vector<AddedToken> added;  // ids as listed
  std::vector<SpecialToken> special;
  std::optional<std::size_t> extra_ids;    // T5
  bool lists_extra = false;                // tokens without a role are listed, be it none
  std::optional<bool> add_start, add_end;  // add_bos_token, add_eos_token
  bool lower = true;                       // do_lower_case
  std::optional<bool> strip_accents;       // BERT; as `lower` if not stated
  bool ideographs = true;                  // tokenize_chinese_chars
  bool prefix_space = true;                // add_prefix_space: XLM-RoBERTa's mark before each word

  std::filesystem::path file(std::string_view file_name) const { return folder / file_name; }
  /// Throws Error (io) if the system fails.
  bool has(std::string_view file_name) const {
    return !folder.empty() &&
           std::filesystem::is_regular_file(load_status(file(file_name), "load_tokenizer"));
  }
};

/// Throws Error (unsupported) for a class that is not known, and (io) if the class cannot be determined.
TokenizerFolder read_tokenizer_folder(const std::filesystem::path& path, TextLibrary library);

/// Whether a folder, or the one of a file, describes a tokenizer.
bool describes_tokenizer(const std::filesystem::path& path);

/// A tokenizer that a library builds from the files of a folder.
struct BuiltTokenizer {
  TextEncoding encoding;
  TextFrame frame;
  std::string steps;  // description of the cleaning of a text before it is split
};

/// Throws Error (io) that names the missing file and a place where it is published.
BuiltTokenizer build_tokenizer(const TokenizerFolder& folder);

}  // namespace vit::internal
