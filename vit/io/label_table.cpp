#include "vit/io/label_table.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/utf8.h"
#include "vit/io/json.h"
#include "vit/io/source_file.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"labels", ErrorKind::format};

/// The rows of a CSV text, one at a time.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::filesystem::path& file)
      : rest_(without_byte_order_mark(text)), file_(file) {}

  /// The fields of the next row that is not empty; nothing at the end.
  std::optional<std::vector<std::string>> next() {
    while (!rest_.empty()) {
      line_ = next_line_;
      std::vector<std::string> fields{field()};
      while (rest_.starts_with(',')) {
        rest_.remove_prefix(1);
        fields.push_back(field());
      }
      end_line();
      if (fields.size() > 1 || !fields.front().empty()) return fields;
    }
    return std::nullopt;
  }
  /// Where the last row began, from 1.
  std::size_t line() const noexcept { return line_; }

 private:
  std::string field() {
    if (rest_.starts_with('"')) return quoted();
    const std::size_t end = std::min(rest_.find_first_of(",\r\n"), rest_.size());
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
    VIT_CHECK(rest_.empty() || rest_.find_first_of(",\r\n") == 0, kWhere, file_.string(), ", line ", line_,
              ": text behind a closing quote");
    return out;
  }

  void end_line() {
    if (rest_.starts_with('\r')) rest_.remove_prefix(1);
    if (rest_.starts_with('\n')) rest_.remove_prefix(1);
    ++next_line_;
  }

  std::string_view rest_;
  const std::filesystem::path& file_;
  std::size_t line_ = 1, next_line_ = 1;
};

}  // namespace

std::optional<LabelTable> parse_label_table(std::string_view content, const std::filesystem::path& file) {
  CsvReader reader(content, file);
  const std::optional<std::vector<std::string>> header = reader.next();
  if (!header) return std::nullopt;
  const auto column = [&](std::string_view name) {
    return static_cast<std::size_t>(std::ranges::find(*header, name) - header->begin());
  };
  const std::size_t name = column("name"), category = column("category");
  if (name == header->size()) return std::nullopt;
  LabelTable table;
  while (std::optional<std::vector<std::string>> row = reader.next()) {
    VIT_CHECK(row->size() == header->size(), kWhere, file.string(), ", line ", reader.line(), ": ",
              row->size(), " fields below a header of ", header->size());
    table.names.push_back(std::move((*row)[name]));
    if (category != header->size()) table.categories.push_back(std::move((*row)[category]));
  }
  return table;
}

std::optional<LabelTable> read_label_table(const std::filesystem::path& file) {
  const SourceFile source(file, kWhere);
  VIT_CHECK(source.size() <= JsonLimits().max_bytes, kWhere.with(ErrorKind::unsupported), file.string(), ": ",
            source.size(), " bytes are no names of classes, expected ", JsonLimits().max_bytes, " at most");
  return parse_label_table(source.text(), file);
}

}  // namespace vit::internal
