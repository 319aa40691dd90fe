#include "vit/io/class_names.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <set>
#include <utility>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/in_quotes.h"
#include "vit/io/indexed_lines.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"labels", ErrorKind::format};
constexpr std::size_t kMaxFileBytes = JsonLimits().max_bytes;
constexpr std::size_t kMaxClasses = std::size_t{1} << 22;  // as in ModelConfig
constexpr const char* kForms =
    "one name per line, index and name per line, a JSON list, a JSON object by index or by name, or CSV with "
    "a header";

// ------------------------------------------------------------------------------------------------------ JSON

/// Members that contain the names in a larger file, and how their own members are read.
struct Container {
  std::string_view key;
  bool by_name;  // {NAME: 0, ...}
};
constexpr Container kContainers[] = {{"id2label", false},    {"label2id", true}, {"class_to_idx", true},
                                     {"label_names", false}, {"classes", false}, {"names", false}};

/// A name, and the id before it if it is a pair.
struct Named {
  std::string id, name;
};

Named named(const Json& value) {
  if (value.is_array() && value.size() == 2 && value[0].is_string() && value[1].is_string())
    return {std::string(value[0].as_string()), std::string(value[1].as_string())};
  if (value.is_number()) return {"", std::to_string(value.as_integer())};
  return {"", std::string(value.as_string())};  // throws for other kinds
}

/// Classes by index, each once.
class IndexedNames {
 public:
  explicit IndexedNames(std::size_t count) : names_(count), is_named_(count, false) {}

  void set(const Json& at, std::size_t index, Named named) {
    VIT_CHECK(index < names_.size(), kWhere, at.where(), ": the class must be 0 to ", names_.size() - 1,
              ", as there are ", names_.size(), " names; found ", index);
    VIT_CHECK(!is_named_[index], kWhere, at.where(), ": class ", index, " already has a name");
    is_named_[index] = true;
    names_[index] = std::move(named);
  }
  ClassList take() {
    ClassList out;
    const bool has_ids = std::ranges::any_of(names_, [](const Named& n) { return !n.id.empty(); });
    for (Named& named : names_) {
      if (has_ids) out.ids.push_back(std::move(named.id));
      out.names.push_back(std::move(named.name));
    }
    return out;
  }

 private:
  std::vector<Named> names_;
  std::vector<bool> is_named_;
};

/// Whether an object has names as keys; nothing if both interpretations are possible.
std::optional<bool> is_by_name(const Json& object) {
  std::set<std::size_t> keys, values;
  bool have_integers = true, is_identity = true;
  for (std::size_t i = 0; i < object.size(); ++i) {
    const auto key = integer_of(object[i].key());
    if (key && *key < object.size()) keys.insert(*key);
    if (!object[i].is_number()) {
      have_integers = is_identity = false;
      continue;
    }
    const std::size_t value = object[i].as_size();
    if (value < object.size()) values.insert(value);
    is_identity = is_identity && key == value;
  }
  if (!have_integers || is_identity) return false;
  if (keys.size() != object.size()) return true;     // not all keys are classes
  if (values.size() != object.size()) return false;  // not all values are
  return std::nullopt;
}

ClassList names_of(const Json& root, std::optional<bool> by_name) {
  VIT_CHECK(root.is_array() || root.is_object(), kWhere, root.where(),
            ": expected a list or an object of names");
  VIT_CHECK(root.size() <= kMaxClasses, kWhere.with(ErrorKind::unsupported), root.where(), ": ", root.size(),
            " names, at most ", kMaxClasses, " are allowed");
  if (root.is_object() && !by_name) {
    by_name = is_by_name(root);
    VIT_CHECK(by_name, kWhere, root.where(),
              ": keys and values are both class indices, so either could be the names; put them under "
              "\"id2label\" or \"class_to_idx\"");
  }
  IndexedNames names(root.size());
  for (std::size_t i = 0; i < root.size(); ++i) {
    const Json value = root[i];
    if (root.is_array()) {
      names.set(value, i, named(value));
    } else if (*by_name) {
      names.set(value, value.as_size(), {"", std::string(value.key())});
    } else {
      const auto index = integer_of(value.key());
      VIT_CHECK(index, kWhere, value.where(), ": the key must be a class index, or all values must be");
      names.set(value, *index, named(value));
    }
  }
  return names.take();
}

/// Throws Error, with the line, for bytes of another encoding: a name would look different everywhere.
void check_encoding(std::string_view content, const std::filesystem::path& file) {
  const bool is_utf16 = content.starts_with("\xFF\xFE") || content.starts_with("\xFE\xFF");
  VIT_CHECK(!is_utf16, kWhere, file.string(), ": is UTF-16; save the names of classes as UTF-8");
  const std::size_t valid = valid_utf8_bytes(content);
  if (valid == content.size()) return;
  const auto line = 1 + std::ranges::count(content.substr(0, valid), '\n');
  fail(kWhere, file.string(), ", line ", line,
       ": is not UTF-8 (Latin-1 or another code page?); save the names of classes as UTF-8: iconv -f LATIN1 "
       "-t UTF-8 ",
       file.filename().string());
}

/// Whether a file of another extension is nevertheless a JSON list or object.
bool holds_json(std::string_view content) {
  const std::size_t first = content.find_first_not_of(" \t\r\n"), last = content.find_last_not_of(" \t\r\n");
  if (first == content.npos) return false;
  const bool has_brackets =
      (content[first] == '[' && content[last] == ']') || (content[first] == '{' && content[last] == '}');
  if (!has_brackets) return false;
  try {
    static_cast<void>(parse_json(content, "names"));
    return true;
  } catch (const Error&) {
    return false;
  }
}

ClassList read_json(std::string_view content, const std::filesystem::path& file) {
  const Json root = parse_json(content, file.string());
  if (!root.is_object()) return names_of(root, std::nullopt);
  for (const Container& container : kContainers) {
    const auto inner = root.find(container.key);
    if (inner && (inner->is_object() || inner->is_array()))
      return names_of(*inner, inner->is_object() ? std::optional(container.by_name) : std::nullopt);
  }
  return names_of(root, std::nullopt);
}

// ------------------------------------------------------------------------------------------------------ text

std::vector<std::string_view> lines_of(std::string_view content) {
  std::vector<std::string_view> lines;
  std::size_t num_names = 0;  // up to the last line that is not empty
  while (!content.empty()) {
    const std::size_t end = std::min(content.find('\n'), content.size());
    std::string_view line = content.substr(0, end);
    content.remove_prefix(std::min(end + 1, content.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back(line);
    if (!line.empty() && !line.ends_with('\t')) num_names = lines.size();
  }
  lines.resize(num_names);
  return lines;
}

/// "n01440764 tench, Tinca tinca", as in Caffe's synset_words.txt.
bool split_at_synsets(const std::vector<std::string_view>& lines, ClassList& out) {
  constexpr std::size_t kDigits = 8;
  const auto has_synset = [](std::string_view line) {
    return line.size() > kDigits + 2 && line[0] == 'n' && line[kDigits + 1] == ' ' &&
           std::ranges::all_of(line.substr(1, kDigits), [](unsigned char c) { return std::isdigit(c) != 0; });
  };
  if (lines.empty() || !std::ranges::all_of(lines, has_synset)) return false;
  for (const std::string_view line : lines) {
    out.ids.emplace_back(line.substr(0, kDigits + 1));
    out.names.emplace_back(line.substr(kDigits + 2));
  }
  return true;
}

/// "ID<tab>NAME" in all lines or in none.
bool split_at_tabs(const std::vector<std::string_view>& lines, const std::filesystem::path& file,
                   ClassList& out) {
  const auto has_tab = [](std::string_view line) { return line.find('\t') != line.npos; };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(lines, has_tab));
  if (count == 0) return false;
  VIT_CHECK(count == lines.size(), kWhere.with(ErrorKind::mismatch), file.string(),
            ": only some lines have an id before a tab");
  for (const std::string_view line : lines) {
    const std::size_t tab = line.find('\t');
    out.ids.emplace_back(line.substr(0, tab));
    out.names.emplace_back(line.substr(tab + 1));
  }
  return true;
}

ClassList read_text(std::string_view content, const std::filesystem::path& file) {
  ClassList out;
  const std::vector<std::string_view> lines = lines_of(content);
  VIT_CHECK(lines.size() <= kMaxClasses, kWhere.with(ErrorKind::unsupported), file.string(), ": ",
            lines.size(), " names, at most ", kMaxClasses, " are allowed");
  if (auto table = parse_indexed_lines(lines, file)) return *std::move(table);
  if (split_at_tabs(lines, file, out) || split_at_synsets(lines, out)) return out;
  for (const std::string_view line : lines) out.names.emplace_back(line);
  return out;
}

/// Whether all lines start with a number and have that many separators at least.
bool is_table(std::string_view content, char delimiter, std::ptrdiff_t separators) {
  const std::vector<std::string_view> lines = lines_of(content);
  return !lines.empty() && std::ranges::all_of(lines, [&](std::string_view line) {
    return std::ranges::count(line, delimiter) >= separators &&
           integer_of(line.substr(0, line.find(delimiter)));
  });
}

/// Two columns of a .csv or .tsv file without a header; nothing if it has other lines. Throws Error for what
/// looks like another table: it is not a list of names.
std::optional<ClassList> parse_columns(std::string_view content, char delimiter,
                                       const std::filesystem::path& file) {
  const auto refuse = [&](bool condition) {
    VIT_CHECK(!condition, kWhere, file.string(),
              ": a table without a header; its first line must name the columns, one of them name, label or "
              "class (forms: ",
              kForms, ")");
  };
  refuse(is_table(content, delimiter, 2));
  if (auto table = parse_indexed_lines(lines_of(content), file)) return table;
  refuse(is_table(content, delimiter, 1));
  return std::nullopt;
}

}  // namespace

std::optional<std::size_t> integer_of(std::string_view digits) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

ClassList read_class_list(const std::filesystem::path& file) {
  const SourceFile source(file, kWhere);
  VIT_CHECK(source.size() <= kMaxFileBytes, kWhere.with(ErrorKind::unsupported), file.string(), ": ",
            source.size(), " bytes are too large for names of classes, expected at most ", kMaxFileBytes);
  const std::string whole = source.text();
  const std::string_view content = without_byte_order_mark(whole);
  check_encoding(content, file);
  const std::string extension = lower_ascii(file.extension().string());
  if (extension == ".json" || holds_json(content)) return read_json(content, file);
  const std::string_view header = content.substr(0, content.find('\n'));
  const bool has_semicolons = header.find(';') != header.npos && header.find(',') == header.npos;
  for (const auto& [ending, usual] : {std::pair(".csv", ','), {".tsv", '\t'}}) {
    if (extension != ending) continue;
    const char delimiter = has_semicolons ? ';' : usual;  // of programs where the comma is in numbers
    if (auto table = parse_class_table(content, delimiter, file)) return std::move(*table);
    if (auto table = parse_columns(content, delimiter, file)) return *std::move(table);
  }
  VIT_CHECK(extension != ".yaml" && extension != ".yml", kWhere.with(ErrorKind::unsupported), file.string(),
            ": names of classes in YAML are not read; copy them into a text file (forms of --labels: ",
            kForms, ")");
  return read_text(content, file);
}

}  // namespace vit::internal
