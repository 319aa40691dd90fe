#include "vit/io/indexed_lines.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr Where kLines{"labels", ErrorKind::format};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(kBlanks) + 1 - first);
}

/// Without the quotes around it, of either kind.
std::string_view unquoted(std::string_view text) {
  text = trimmed(text);
  for (const char quote : {'"', '\''}) {
    if (text.size() >= 2 && text.front() == quote && text.back() == quote)
      return text.substr(1, text.size() - 2);
  }
  return text;
}

/// The lines of a printed dictionary or of a table, without blank ones, braces and the commas between
/// entries.
std::vector<std::string_view> entries_of(std::span<const std::string_view> lines) {
  std::vector<std::string_view> out;
  for (const std::string_view line : lines) {
    if (const std::string_view entry = trimmed(line); !entry.empty()) out.push_back(entry);
  }
  if (out.empty() || !out.front().starts_with('{') || !out.back().ends_with('}')) return out;
  out.front() = trimmed(out.front().substr(1));
  out.back() = trimmed(out.back().substr(0, out.back().size() - 1));
  std::erase(out, "");
  for (std::string_view& entry : out) {
    if (entry.ends_with(',')) entry.remove_suffix(1);
  }
  return out;
}

/// Two columns.
struct Columns {
  std::vector<std::string_view> first, second;
};

/// Splits each line at its first separator, or at its last one; nothing if one has none.
std::optional<Columns> split(std::span<const std::string_view> entries, char separator, bool at_last) {
  Columns out;
  for (const std::string_view entry : entries) {
    const std::size_t at = at_last ? entry.rfind(separator) : entry.find(separator);
    if (at == entry.npos) return std::nullopt;
    out.first.push_back(unquoted(entry.substr(0, at)));
    out.second.push_back(unquoted(entry.substr(at + 1)));
    if (out.first.back().empty()) return std::nullopt;
  }
  return out;
}

/// What the integers of a column are.
struct Indices {
  std::vector<std::size_t> values;  // empty if not all are integers
  bool are_classes = false;         // 0 to n - 1, each once

  explicit Indices(std::span<const std::string_view> column) {
    std::set<std::size_t> different;
    for (const std::string_view field : column) {
      const auto value = integer_of(field);
      if (!value) {
        values.clear();
        return;
      }
      values.push_back(*value);
      different.insert(*value);
    }
    are_classes = !values.empty() && different.size() == values.size() && *different.rbegin() < values.size();
  }
  bool are_integers() const { return !values.empty(); }
  /// Whether they are 1, 2, 3, ... in order.
  bool count_from_one() const {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] != i + 1) return false;
    }
    return are_integers();
  }
  /// Whether they could be meant as classes: no number beyond their count.
  bool are_near_classes() const {
    return are_integers() && *std::ranges::max_element(values) <= values.size();
  }
};

ClassList by_index(const Indices& indices, std::span<const std::string_view> names) {
  ClassList out;
  out.names.resize(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) out.names[indices.values[i]] = names[i];
  return out;
}

bool are_different(std::span<const std::string_view> names) {
  return std::set(names.begin(), names.end()).size() == names.size();
}

std::string separator_name(char separator) {
  return separator == '\t' ? "tab" : separator == ' ' ? "space" : std::string(1, separator);
}

/// The table with this separator, the index in the first or the last column.
std::optional<ClassList> parse(std::span<const std::string_view> entries, char separator, bool index_last,
                               const std::filesystem::path& file) {
  const std::optional<Columns> columns = split(entries, separator, index_last);
  if (!columns || entries.empty()) return std::nullopt;
  const std::span<const std::string_view> own = index_last ? columns->second : columns->first;
  const std::span<const std::string_view> names = index_last ? columns->first : columns->second;
  const Indices indices(own), others(names);
  if (indices.are_classes) {
    if (separator == ' ' && (!are_different(names) || std::ranges::count(names, "") > 0)) return std::nullopt;
    VIT_CHECK(
        !others.are_classes || others.values == indices.values, kLines, file.string(),
        ": both columns hold every class index, so either could be the names; write a header, index and "
        "name");
    return by_index(indices, names);
  }
  // one from 1, or a row too few: not names, and not the order of the lines either; next to a space or a
  // colon, which names may have, only all numbers from 1 in order
  const bool is_shifted =
      !others.are_integers() && (separator == ' ' || separator == ':' ? indices.count_from_one()
                                 : index_last                         ? indices.are_integers()
                                                                      : indices.are_near_classes());
  VIT_CHECK(!is_shifted || entries.size() < 2, kLines, file.string(), ": the ", index_last ? "last" : "first",
            " of two columns (separator: ", separator_name(separator),
            ") holds integers, but not every class from 0 to ", entries.size() - 1,
            " once; classes are numbered from 0, and each needs a row");
  return std::nullopt;
}

}  // namespace

std::optional<ClassList> parse_indexed_lines(std::span<const std::string_view> lines,
                                             const std::filesystem::path& file) {
  const std::vector<std::string_view> entries = entries_of(lines);
  const std::span<const std::string_view> all = entries;
  for (const char separator : {'\t', ',', ';', ':', ' '}) {
    for (const bool index_last : {false, true}) {
      if (auto table = parse(all, separator, index_last, file)) return table;
      // a header is a line of which neither field is an integer
      if (all.size() < 2 || separator == ' ') continue;
      const std::optional<Columns> header = split(all.first(1), separator, index_last);
      if (!header || integer_of(header->first.front()) || integer_of(header->second.front())) continue;
      if (auto table = parse(all.subspan(1), separator, index_last, file)) return table;
    }
  }
  return std::nullopt;
}

}  // namespace vit::internal
