// Tables of classes: CSV and TSV.
#include "vit/io/class_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <span>
#include <utility>

#include "vit/base/ascii.h"
#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"labels", ErrorKind::format};

/// The rows of a table, one at a time.
class CsvReader {
 public:
  CsvReader(std::string_view text, char delimiter, const std::filesystem::path& file)
      : rest_(without_byte_order_mark(text)), delimiter_(delimiter), file_(file) {}

  /// The fields of the next row that is not empty; nothing at the end.
  std::optional<std::vector<std::string>> next() {
    while (!rest_.empty()) {
      line_ = next_line_;
      std::vector<std::string> fields{field()};
      while (rest_.starts_with(delimiter_)) {
        rest_.remove_prefix(1);
        fields.push_back(field());
      }
      end_line();
      if (fields.size() > 1 || !fields.front().empty()) return fields;
    }
    return std::nullopt;
  }
  /// The line at which the last row started, from 1.
  std::size_t line() const noexcept { return line_; }

 private:
  std::string field() {
    if (rest_.starts_with('"')) return quoted();
    const std::size_t end = std::min(rest_.find_first_of(ends_), rest_.size());
    std::string out(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return out;
  }

  std::string quoted() {
    std::string out;
    do {
      rest_.remove_prefix(1);
      const std::size_t quote = rest_.find('"');
      VIT_CHECK(quote != rest_.npos, kWhere, file_.string(), ", line ", line_,
                ": a quote that does not close");
      out += rest_.substr(0, quote);
      next_line_ += static_cast<std::size_t>(std::ranges::count(rest_.substr(0, quote), '\n'));
      rest_.remove_prefix(quote + 1);
      if (rest_.starts_with('"')) out += '"';
    } while (rest_.starts_with('"'));
    VIT_CHECK(rest_.empty() || rest_.find_first_of(ends_) == 0, kWhere, file_.string(), ", line ", line_,
              ": text after a closing quote");
    return out;
  }

  void end_line() {
    if (rest_.starts_with('\r')) rest_.remove_prefix(1);
    if (rest_.starts_with('\n')) rest_.remove_prefix(1);
    ++next_line_;
  }

  std::string_view rest_;
  char delimiter_;
  std::string ends_{delimiter_, '\r', '\n'};  // of a field
  const std::filesystem::path& file_;
  std::size_t line_ = 1, next_line_ = 1;
};

/// The contents of a column by its name, in any case.
constexpr std::string_view kNameColumns[] = {"name",      "label",      "class", "class_name",
                                             "classname", "label_name", "tag",   "category_name"};
constexpr std::string_view kIndexColumns[] = {"id",       "index",       "class_id", "idx",
                                              "label_id", "class_index", "class_idx"};
constexpr std::string_view kIdColumns[] = {"id", "synset", "wnid"};

/// A table below its header.
struct Table {
  std::vector<std::string> header;  // lower case
  std::vector<std::vector<std::string>> rows;

  /// The column of the first of these names that exists.
  std::optional<std::size_t> column(std::span<const std::string_view> names) const {
    for (const std::string_view name : names) {
      const auto found = std::ranges::find(header, name);
      if (found != header.end()) return static_cast<std::size_t>(found - header.begin());
    }
    return std::nullopt;
  }
};

/// The class of each row by a column of integers; nothing without one.
std::optional<std::vector<std::size_t>> classes_of(const Table& table) {
  for (const std::string_view name : kIndexColumns) {
    const auto column = table.column(std::array{name});
    if (!column) continue;
    std::vector<std::size_t> classes;
    for (const std::vector<std::string>& row : table.rows) {
      const auto index = integer_of(row[*column]);
      if (!index) break;
      classes.push_back(*index);
    }
    if (classes.size() == table.rows.size()) return classes;
  }
  return std::nullopt;
}

bool holds_every_class(const Table& table, std::size_t column) {
  std::vector<bool> found(table.rows.size(), false);
  for (const std::vector<std::string>& row : table.rows) {
    const auto index = integer_of(row[column]);
    if (!index || *index >= found.size() || found[*index]) return false;
    found[*index] = true;
  }
  return !found.empty();
}

/// The one of two columns that holds every class index once, whatever the header calls it; nothing if both or
/// none do.
std::optional<std::size_t> plain_indices(const Table& table) {
  if (table.header.size() != 2) return std::nullopt;
  const bool first = holds_every_class(table, 0), second = holds_every_class(table, 1);
  if (first == second) return std::nullopt;
  return first ? 0 : 1;
}

/// Sorts the rows by class.
void order_rows(const std::filesystem::path& file, const std::vector<std::size_t>& classes, Table& table) {
  std::vector<std::vector<std::string>> ordered(table.rows.size());
  for (std::size_t i = 0; i < classes.size(); ++i) {
    VIT_CHECK(classes[i] < ordered.size(), kWhere, file.string(), ": class ", classes[i], " among ",
              ordered.size(), " rows; classes are numbered from 0, and each needs a row");
    VIT_CHECK(ordered[classes[i]].empty(), kWhere, file.string(), ": class ", classes[i], " appears twice");
    ordered[classes[i]] = std::move(table.rows[i]);
  }
  table.rows = std::move(ordered);
}

std::vector<std::string> take_column(Table& table, std::size_t column) {
  std::vector<std::string> out;
  for (std::vector<std::string>& row : table.rows) out.push_back(std::move(row[column]));
  return out;
}

}  // namespace

std::optional<ClassList> parse_class_table(std::string_view content, char delimiter,
                                           const std::filesystem::path& file) {
  CsvReader reader(content, delimiter, file);
  std::optional<std::vector<std::string>> header = reader.next();
  if (!header) return std::nullopt;
  Table table{.header = std::move(*header), .rows = {}};
  for (std::string& name : table.header) name = lower_ascii(name);
  auto name = table.column(kNameColumns);
  if (!name) return std::nullopt;
  while (std::optional<std::vector<std::string>> row = reader.next()) {
    VIT_CHECK(row->size() == table.header.size(), kWhere, file.string(), ", line ", reader.line(), ": ",
              row->size(), " fields below a header of ", table.header.size());
    table.rows.push_back(std::move(*row));
  }
  auto classes = classes_of(table);
  if (const auto indices = plain_indices(table)) {
    classes.emplace();
    for (const std::vector<std::string>& row : table.rows) classes->push_back(*integer_of(row[*indices]));
    name = 1 - *indices;
  }
  if (classes) order_rows(file, *classes, table);
  ClassList out;
  const auto category = table.column(std::array<std::string_view, 1>{"category"});
  const auto id = table.column(classes ? std::span(kIdColumns).subspan(1) : std::span(kIdColumns));
  if (category && category != name) out.categories = take_column(table, *category);
  if (id && id != name) out.ids = take_column(table, *id);
  out.names = take_column(table, *name);
  return out;
}

std::optional<ClassList> read_class_table(const std::filesystem::path& file) {
  const SourceFile source(file, kWhere);
  VIT_CHECK(source.size() <= JsonLimits().max_bytes, kWhere.with(ErrorKind::unsupported), file.string(), ": ",
            source.size(), " bytes are too large for names of classes, expected at most ",
            JsonLimits().max_bytes);
  return parse_class_table(source.text(), ',', file);
}

}  // namespace vit::internal
