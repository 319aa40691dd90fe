#include "apps/vit/classes/labels.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "apps/vit/options/data_dir.h"
#include "apps/vit/outputs/text_format.h"
#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/json.h"
#include "vit/io/label_table.h"
#include "vit/io/source_file.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr std::size_t kImageNetClasses = 1000;
constexpr std::size_t kMaxFileBytes = JsonLimits().max_bytes;

std::optional<std::size_t> parse_index(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Lower case, blanks as underscores.
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : name)
    out += c == ' ' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return out;
}

/// Whether one of the names in a list with commas is `wanted`, which is folded.
bool has_synonym(std::string_view names, std::string_view wanted) {
  while (!names.empty()) {
    const std::size_t comma = std::min(names.find(','), names.size());
    if (folded(names.substr(0, comma)) == wanted) return true;
    names.remove_prefix(std::min(comma + 1, names.size()));
    names.remove_prefix(std::min(names.find_first_not_of(' '), names.size()));
  }
  return false;
}

/// Indices of the names that the predicate takes.
template <class Predicate>
std::vector<std::size_t> matches(const std::vector<std::string>& names, const Predicate& takes) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (takes(names[i])) out.push_back(i);
  }
  return out;
}

std::vector<std::string> read_json(const std::filesystem::path& file, std::size_t num_classes) {
  Json root = load_json(file);
  if (root.is_object() && root.find("id2label")) root = root.at("id2label");
  VIT_CHECK(root.is_array() || root.is_object(), "labels", file.string(),
            ": expected a list or an object of names");
  VIT_CHECK(root.size() == num_classes, "labels", file.string(), ": ", root.size(), " names for ",
            num_classes, " classes");
  std::vector<std::string> names(num_classes);
  std::vector<bool> is_named(num_classes, false);
  for (std::size_t i = 0; i < root.size(); ++i) {
    const Json name = root[i];
    const std::optional<std::size_t> index = root.is_array() ? i : parse_index(name.key());
    VIT_CHECK(index && *index < num_classes, "labels", name.where(), ": the key must be a class, 0 to ",
              num_classes - 1);
    VIT_CHECK(!is_named[*index], "labels", name.where(), ": class ", *index, " has a name already");
    is_named[*index] = true;
    names[*index] = name.as_string();
  }
  return names;
}

}  // namespace

Labels::Labels(const ModelConfig& config, const std::filesystem::path& file)
    : num_classes_(config.num_classes) {
  const std::filesystem::path imagenet = data_dir() / "labels" / "imagenet1k.txt";
  const bool has_imagenet = num_classes_ == kImageNetClasses && std::filesystem::exists(imagenet);
  if (!file.empty()) {
    read_file(file);
  } else if (!config.labels.empty()) {
    names_ = config.labels;
    categories_ = config.label_categories;
  } else if (has_imagenet) {
    read_file(imagenet);
  }
  if (ids_.empty() && has_imagenet) {  // folders named by synset, whatever the names come from
    const std::vector<std::string> names = names_;
    read_file(imagenet);
    names_ = names;
  }
}

void Labels::read_file(const std::filesystem::path& file) {
  names_.clear();
  ids_.clear();
  if (folded(file.extension().string()) == ".json") {
    names_ = read_json(file, num_classes_);
    return;
  }
  if (folded(file.extension().string()) == ".csv" && read_table(file)) return;
  const SourceFile source(file, "labels");
  VIT_CHECK(source.size() <= kMaxFileBytes, "labels", file.string(), ": ", source.size(),
            " bytes are no names of classes, expected ", kMaxFileBytes, " at most");
  const std::string whole = source.text();
  std::string_view content = without_byte_order_mark(whole);
  std::size_t num_lines = 0, num_names = 0;  // names: up to the last line that is not empty
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t tab = line.find('\t');
    const std::string_view name = tab == std::string_view::npos ? line : line.substr(tab + 1);
    ++num_lines;
    if (!name.empty()) num_names = num_lines;
    if (num_lines > num_classes_) continue;  // counted for the message
    if (tab != std::string_view::npos) ids_.emplace_back(line.substr(0, tab));
    names_.emplace_back(name);
  }
  VIT_CHECK(num_names == num_classes_, "labels", file.string(), ": ", num_names, " names for ", num_classes_,
            " classes; one a line is expected");
  VIT_CHECK(ids_.empty() || ids_.size() == names_.size(), "labels", file.string(),
            ": only some lines have an id before a tab");
}

/// Whether the file has a column of names; one without is a list of names for all its extension.
bool Labels::read_table(const std::filesystem::path& file) {
  std::optional<LabelTable> table = read_label_table(file);
  if (!table) return false;
  VIT_CHECK(table->names.size() == num_classes_, "labels", file.string(), ": ", table->names.size(),
            " rows for ", num_classes_, " classes");
  names_ = std::move(table->names);
  categories_ = std::move(table->categories);
  return true;
}

std::string Labels::name(std::size_t index) const {
  return index < names_.size() ? names_[index] : std::to_string(index);
}

std::vector<std::size_t> Labels::find(std::string_view folder) const {
  const std::string wanted = folded(folder);
  const auto is_folded = [&](const std::string& name) { return folded(name) == wanted; };
  std::vector<std::size_t> found = matches(names_, [&](const std::string& name) { return name == folder; });
  if (found.empty()) found = matches(names_, is_folded);
  if (found.empty()) found = matches(ids_, is_folded);
  if (found.empty())
    found = matches(names_, [&](const std::string& name) { return has_synonym(name, wanted); });
  if (!found.empty()) return found;
  const std::optional<std::size_t> index = parse_index(folder);
  if (index && *index < num_classes_) found.push_back(*index);
  return found;
}

}  // namespace vit::app
