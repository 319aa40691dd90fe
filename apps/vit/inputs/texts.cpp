#include "apps/vit/inputs/texts.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "apps/vit/ground/option_values.h"
#include "apps/vit/ground/progress.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/ground/usage_error.h"
#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/class_names.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"
#include "vit/text/unicode.h"
#include "vit/zero_shot.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

std::string text_of_json(std::string_view line, const std::string& name) {
  const Json object = parse_json(line, name);
  return std::string(object.at("text").as_string());
}

/// The lines of a file, including empty ones, or the member "text" of each object of JSON lines.
std::vector<std::string> read_file(const std::filesystem::path& path, bool json) {
  const SourceFile file(path, "texts");
  VIT_CHECK(file.size() <= kMaxFileBytes, "texts", path.string(), ": ", file.size(), " bytes, more than the ",
            kMaxFileBytes, " allowed");
  const std::string content = file.text();
  std::string_view rest = without_byte_order_mark(content);
  std::vector<std::string> texts;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!json) {
      texts.emplace_back(line);
    } else if (!is_blank(line)) {
      texts.push_back(text_of_json(line, text(path.string(), ", line ", number)));
    }
  }
  return texts;
}

/// Reports a defect as wrong usage if it is in an option, as an Error if it is in a file.
struct TextSource {
  std::string name;
  bool is_file = false;

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    if (is_file) fail("classes", name, ": ", parts...);
    fail_usage(name, ": ", parts...);
  }
};

void check_utf8(const std::string& text, const TextSource& source) {
  try {
    internal::check_utf8(text);
  } catch (const Error& error) {
    source.refuse("'", printable(text), "': ", error.message());
  }
}

void check_template(const std::string& pattern, const TextSource& source) {
  check_utf8(pattern, source);
  if (pattern.find("{}") == std::string::npos)
    source.refuse("'", printable(pattern), "' has no {} for the name of the class");
}

void check_names(const std::vector<std::string>& names, const TextSource& source) {
  if (names.empty()) source.refuse("no classes");
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    check_utf8(name, source);
    if (!seen.insert(name).second) source.refuse("the class '", printable(name), "' appears twice");
  }
}

/// The non-blank lines or texts.
std::vector<std::string> without_blanks(std::vector<std::string> lines) {
  std::erase_if(lines, [](const std::string& line) { return is_blank(line); });
  return lines;
}

std::vector<std::string> read_names_file(const std::filesystem::path& file) {
  return file.extension() == ".jsonl" ? read_file(file, /*json=*/true) : read_class_list(file).names;
}

/// Whether a name is a line, which may be blank: not a member of JSON or a column of a table.
bool has_lines(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  return extension != ".json" && extension != ".jsonl" && extension != ".csv" && extension != ".tsv";
}

}  // namespace

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t") == std::string_view::npos;
}

void add_text_options(std::vector<Option>& list, TextInputs& inputs) {
  list.push_back({.name = "--text",
                  .type_name = "TEXT",
                  .help = "A text; may be given several times",
                  .target = list_target(inputs.texts, [](const std::string& value) { return value; }),
                  .occurs = Occurs::repeated,
                  .takes_empty = true});
  list.push_back({.name = "--text-file",
                  .type_name = "FILE",
                  .help = "Texts: .txt, one per line, or .jsonl, objects with the member \"text\"",
                  .target = text_target(inputs.file)});
}

std::vector<std::string> read_texts(const TextInputs& inputs) {
  if (!inputs.are_given()) fail_usage("--text or --text-file is required");
  std::vector<std::string> texts = inputs.texts;
  if (inputs.file.empty()) return texts;
  const std::string extension = inputs.file.extension().string();
  if (extension != ".txt" && extension != ".jsonl") {
    fail_usage("--text-file: expected .txt or .jsonl, found '", inputs.file.string(), "'");
  }
  for (std::string& text : read_file(inputs.file, extension == ".jsonl")) texts.push_back(std::move(text));
  return texts;
}

void add_template_options(std::vector<Option>& list, TemplateOptions& options) {
  list.push_back(
      {.name = "--template",
       .type_name = "TEXT",
       .help = vit::text("Text with {} for the name of a class; the vectors of several are averaged. "
                         "Default: \"",
                         kDefaultTemplate, "\""),
       .target = list_target(options.templates, [](const std::string& value) { return value; }),
       .occurs = Occurs::repeated});
  list.push_back({.name = "--template-file",
                  .type_name = "FILE",
                  .help = "Templates, one per line",
                  .target = text_target(options.file)});
}

std::vector<std::string> read_templates(const TemplateOptions& options) {
  std::vector<std::string> out = options.templates;
  for (const std::string& pattern : out) check_template(pattern, {.name = "--template"});
  if (options.file.empty()) return out;
  const TextSource source{.name = options.file.string(), .is_file = true};
  const std::vector<std::string> lines = without_blanks(read_file(options.file, /*json=*/false));
  if (lines.empty()) source.refuse("no templates");
  for (const std::string& pattern : lines) check_template(pattern, source);
  out.insert(out.end(), lines.begin(), lines.end());
  return out;
}

std::vector<std::string> read_class_names(const ClassNames& names) {
  const bool is_file = !names.file.empty();
  const TextSource source{.name = is_file ? names.file.string() : "--classes", .is_file = is_file};
  std::vector<std::string> found = is_file ? read_names_file(names.file) : split_at_commas(names.list);
  const auto blank = std::ranges::find_if(found, is_blank);
  const bool has_names = !std::ranges::all_of(found, is_blank);
  if (blank != found.end() && has_names) {
    // without it the classes after it would have other indices
    if (!is_file || !has_lines(names.file)) source.refuse("class ", blank - found.begin(), " has no name");
    const std::size_t count = found.size();
    found = without_blanks(std::move(found));
    print_failure(source.name, text("blank lines are no classes: ", count - found.size(),
                                    " left out, and classes count from 0 without them"));
  }
  found = without_blanks(std::move(found));
  check_names(found, source);
  return found;
}

}  // namespace vit::app
