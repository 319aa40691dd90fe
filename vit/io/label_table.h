// A CSV table of classes, one a row below its header: what taggers publish as selected_tags.csv. Whose
// classes they are is for the caller.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vit::internal {

struct LabelTable {
  std::vector<std::string> names;  // column "name"
  std::vector<std::string>
      categories;  // column "category", one for each name; none if there is no such column
};

/// Reads RFC 4180 with the columns of a header in any order. Nothing if no column is called "name". Throws
/// Error (format) naming `file` and the line for quotes that do not close and rows of another length.
std::optional<LabelTable> parse_label_table(std::string_view content, const std::filesystem::path& file);
/// parse_label_table() of a file. Throws Error if it cannot be read or is too large for a list of classes.
std::optional<LabelTable> read_label_table(const std::filesystem::path& file);

}  // namespace vit::internal
