#include "apps/vit/classes/class_texts.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>

#include "apps/vit/inputs/texts.h"
#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/text_format.h"
#include "apps/vit/run/interrupt.h"
#include "vit/base/check.h"
#include "vit/text/unicode.h"
#include "vit/weights/checkpoint/checkpoint_folder.h"

namespace vit::app {
namespace {

/// Wrong usage where the option says it, an Error where a file does.
struct Source {
  std::string name;
  bool is_file = false;

  template <typename... Parts>
  [[noreturn]] void refuse(const Parts&... parts) const {
    if (is_file) fail("classes", name, ": ", parts...);
    fail_usage(name, ": ", parts...);
  }
};

void check_utf8(const std::string& text, const Source& source) {
  try {
    internal::check_utf8(text);
  } catch (const Error& error) {
    source.refuse("'", printable(text), "': ", error.message());
  }
}

void check_template(const std::string& pattern, const Source& source) {
  check_utf8(pattern, source);
  if (pattern.find("{}") == std::string::npos)
    source.refuse("'", printable(pattern), "' has no {} for the name of the class");
}

void check_names(const std::vector<std::string>& names, const Source& source) {
  if (names.empty()) source.refuse("no classes");
  std::set<std::string_view> seen;
  for (const std::string& name : names) {
    check_utf8(name, source);
    if (!seen.insert(name).second) source.refuse("the class '", printable(name), "' is there twice");
  }
}

/// The lines or texts that say something.
std::vector<std::string> without_blanks(std::vector<std::string> lines) {
  std::erase_if(lines,
                [](const std::string& line) { return line.find_first_not_of(" \t") == std::string::npos; });
  return lines;
}

std::string trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(" \t") + 1 - first));
}

std::vector<std::string> split_at_commas(std::string_view list) {
  std::vector<std::string> names;
  while (true) {
    const std::size_t comma = std::min(list.find(','), list.size());
    names.push_back(trimmed(list.substr(0, comma)));
    if (comma == list.size()) return names;
    list.remove_prefix(comma + 1);
  }
}

TextScore score_of(const TextConfig& config, const std::string& path) {
  VIT_CHECK(config.score, "classes", path, ": a text tower alone; no image can be compared with texts");
  return *config.score;
}

}  // namespace

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
  const Source source{.name = options.file.string(), .is_file = true};
  const std::vector<std::string> lines = without_blanks(read_lines(options.file));
  if (lines.empty()) source.refuse("no templates");
  for (const std::string& pattern : lines) check_template(pattern, source);
  out.insert(out.end(), lines.begin(), lines.end());
  return out;
}

void add_class_text_options(std::vector<Option>& list, ClassTextOptions& options) {
  list.push_back({.name = "--classes",
                  .type_name = "LIST",
                  .help = "Classes in your own words, separated by commas, for models with a text tower",
                  .target = text_target(options.names)});
  list.push_back(
      {.name = "--classes-file",
       .type_name = "FILE",
       .help = "Classes, one per line, or .safetensors: vectors that vit embed --text-file --template wrote",
       .target = text_target(options.file)});
  add_template_options(list, options.templates);
  add_tokenizer_options(list, options.tower);
}

void check_class_texts(const ClassTextOptions& options) {
  if (!options.are_given()) {
    if (options.templates.are_given()) fail_usage("--template goes with --classes or --classes-file");
    if (options.tower.are_given())
      fail_usage("--tokenizer and --library go with --classes or --classes-file");
    return;
  }
  if (!options.names.empty() && !options.file.empty())
    fail_usage("--classes and --classes-file: give one of them");
  if (options.are_vectors() && options.templates.are_given())
    fail_usage("--template: the vectors of ", options.file.string(), " are ready, templates came before");
}

std::vector<std::string> read_class_names(const ClassTextOptions& options) {
  const bool is_file = !options.file.empty();
  const std::vector<std::string> names =
      without_blanks(is_file ? read_text_file(options.file) : split_at_commas(options.names));
  check_names(names, {.name = is_file ? options.file.string() : "--classes", .is_file = is_file});
  return names;
}

ZeroShotModel load_zero_shot(const CommonOptions& common, const ClassTextOptions& options) {
  check_class_texts(options);
  const std::filesystem::path path = model_path(common);
  if (options.are_vectors()) {
    ClassVectors classes = load_class_vectors(options.file);
    const internal::CheckpointFolder folder(path, common.model_options);
    const TextScore score = score_of(folder.load<TextConfig>().config, path.string());
    return {.model = load_model(common), .classifier = ZeroShotClassifier(std::move(classes), score)};
  }
  const std::vector<std::string> names = read_class_names(options);
  std::vector<std::string> templates = read_templates(options.templates);
  if (templates.empty()) templates.emplace_back(kDefaultTemplate);
  ImageAndText towers = ImageAndText::load(path, common.model_options, text_options(common, options.tower));
  const TextScore score = score_of(towers.text->config(), path.string());
  TextEncoder encoder(std::move(towers.text), {.threads = common.session.threads});
  hold_interrupts();  // which end the encoding of many classes soon
  Progress progress("classes", names.size(), common.progress_mode(), "classes");
  ClassVectors classes = encode_classes(encoder, names, templates, progress);
  ZeroShotModel out{.model = std::move(towers.image), .classifier = std::nullopt};
  if (classes.names.size() == names.size()) out.classifier.emplace(std::move(classes), score);
  return out;
}

}  // namespace vit::app
