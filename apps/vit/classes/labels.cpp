#include "apps/vit/classes/labels.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "apps/vit/ground/data_dir.h"
#include "apps/vit/ground/text_format.h"
#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/io/class_names.h"
#include "vit/text/unicode.h"

namespace vit::app {
using namespace internal;
namespace {

constexpr std::size_t kImageNetClasses = 1000;

std::optional<std::size_t> parse_index(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

/// Lower case, blanks as underscores, letters composed: macOS names files in a decomposed form (NFD).
std::string folded(std::string_view name) {
  std::string out;
  for (const char c : internal::is_utf8(name) ? internal::normalize_nfc(name) : std::string(name))
    out += c == ' ' ? '_' : internal::lower_ascii(c);
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

/// Indices of the names that satisfy the predicate.
template <class Predicate>
std::vector<std::size_t> matches(const std::vector<std::string>& names, const Predicate& takes) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (takes(names[i])) out.push_back(i);
  }
  return out;
}

}  // namespace

Labels::Labels(const ModelConfig& config, const std::filesystem::path& file)
    : num_classes_(config.head.num_classes) {
  const std::filesystem::path imagenet = data_dir() / "labels" / "imagenet1k.txt";
  const bool has_imagenet = num_classes_ == kImageNetClasses && std::filesystem::exists(imagenet);
  if (!file.empty()) {
    read_file(file);
  } else if (!config.head.labels.empty()) {
    names_ = config.head.labels;
    categories_ = config.head.label_categories;
  } else if (has_imagenet) {
    read_file(imagenet);
  }
  if (ids_.empty() && has_imagenet) {  // folders named by synset, regardless of the names' source
    ids_ = read_class_list(imagenet).ids;
  }
}

void Labels::read_file(const std::filesystem::path& file) {
  ClassList classes = read_class_list(file);
  VIT_CHECK(classes.names.size() == num_classes_, "labels", file.string(), ": ", classes.names.size(),
            classes.names.size() == 1 ? " name for " : " names for ", num_classes_, " classes");
  names_ = std::move(classes.names);
  ids_ = std::move(classes.ids);
  categories_ = std::move(classes.categories);
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
