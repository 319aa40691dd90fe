// Texts given by the user: on the command line, one per line of a file, or as JSON lines; names of
// classes, and the templates they are inserted into.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/ground/command_line.h"

namespace vit::app {

struct TextInputs {
  std::vector<std::string> texts;  // --text, repeatable
  std::filesystem::path file;      // --text-file

  bool are_given() const { return !texts.empty() || !file.empty(); }
};
void add_text_options(std::vector<Option>& list, TextInputs& inputs);
/// The texts of the command line, then those of the file: `.txt` has one per line, `.jsonl` objects with
/// the member "text"; other members are ignored. Throws UsageError if there is neither, or the file is
/// of another kind, and Error that names file and line for one that is not JSON.
std::vector<std::string> read_texts(const TextInputs& inputs);

/// Whether it has nothing but spaces and tabs.
bool is_blank(std::string_view text);

struct TemplateOptions {
  std::vector<std::string> templates;  // --template, repeatable
  std::filesystem::path file;          // --template-file

  bool are_given() const { return !templates.empty() || !file.empty(); }
};
void add_template_options(std::vector<Option>& list, TemplateOptions& options);
/// Those of the command line, then those of the file, one per line; none if none is given. Throws
/// UsageError, or Error for those of the file, if a template has no {}.
std::vector<std::string> read_templates(const TemplateOptions& options);

struct ClassNames {
  std::string list;            // --classes, with commas
  std::filesystem::path file;  // --classes-file

  bool are_given() const { return !list.empty() || !file.empty(); }
};
/// The names: at least one, without duplicates. Blank lines of a file are left out, which one line on stderr
/// says. Throws UsageError for an empty name, or Error for one of a file of JSON or a table.
std::vector<std::string> read_class_names(const ClassNames& names);

}  // namespace vit::app
