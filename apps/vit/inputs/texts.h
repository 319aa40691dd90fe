// Texts that the caller gives: on the command line, one per line of a file, or as JSON lines.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "apps/vit/command_line.h"

namespace vit::app {

struct TextInputs {
  std::vector<std::string> texts;  // --text, repeatable
  std::filesystem::path file;      // --text-file

  bool are_given() const { return !texts.empty() || !file.empty(); }
};

/// --text and --text-file.
void add_text_options(std::vector<Option>& list, TextInputs& inputs);

/// The lines of a file, empty ones too. Throws Error if it cannot be read.
std::vector<std::string> read_lines(const std::filesystem::path& path);
/// The lines of a file, or the member "text" of each object of a .jsonl file.
std::vector<std::string> read_text_file(const std::filesystem::path& path);

/// The texts of the command line, then those of the file: `.txt` holds one per line, `.jsonl` objects with
/// the member "text", of which others are ignored. Throws UsageError where there is neither, or the file is
/// of another kind, and Error that names file and line for one that is not UTF-8 or JSON.
std::vector<std::string> read_texts(const TextInputs& inputs);

}  // namespace vit::app
