// Files of texts, read whole.
#include "apps/vit/inputs/texts.h"

#include <algorithm>
#include <string_view>

#include "apps/vit/options/option_values.h"
#include "apps/vit/options/usage_error.h"
#include "apps/vit/outputs/text_format.h"
#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{1} << 30;

std::string text_of_json(std::string_view line, const std::string& name) {
  const Json object = parse_json(line, name);
  return std::string(object.at("text").as_string());
}

std::vector<std::string> read_file(const std::filesystem::path& path, bool json) {
  const SourceFile file(path, "texts");
  VIT_CHECK(file.size() <= kMaxFileBytes, "texts", path.string(), ": ", file.size(), " bytes, more than the ",
            kMaxFileBytes, " that are read");
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
    } else if (line.find_first_not_of(" \t") != std::string_view::npos) {
      texts.push_back(text_of_json(line, text(path.string(), ", line ", number)));
    }
  }
  return texts;
}

}  // namespace

std::vector<std::string> read_lines(const std::filesystem::path& path) {
  return read_file(path, /*json=*/false);
}

std::vector<std::string> read_text_file(const std::filesystem::path& path) {
  return read_file(path, path.extension() == ".jsonl");
}

void add_text_options(std::vector<Option>& list, TextInputs& inputs) {
  list.push_back({.name = "--text",
                  .type_name = "TEXT",
                  .help = "A text; may be given several times",
                  .target = list_target(inputs.texts, [](const std::string& value) { return value; }),
                  .occurs = Occurs::repeated});
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

}  // namespace vit::app
