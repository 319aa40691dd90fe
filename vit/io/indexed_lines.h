// Names of classes in two columns of text, of which one is plainly the class index.
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string_view>

#include "vit/io/class_names.h"

namespace vit::internal {

/// The classes by their indices if every line, but for a header, is an index and a name or a name and an
/// index, separated by a tab, a comma, a semicolon, a colon or a space, and the indices are 0 to n - 1, each
/// once: "panda<tab>2", "panda,2", "2: panda", "2 panda", also within the braces and quotes of a printed
/// dictionary. Separated by spaces, names must differ: "digit 0" and "digit 1" are names. Nothing if the
/// lines are of another form. Throws Error (format) naming `file` if both columns could be the indices, or if
/// a column of integers next to one of names is not such indices: names would be shifted without a word.
std::optional<ClassList> parse_indexed_lines(std::span<const std::string_view> lines,
                                             const std::filesystem::path& file);

}  // namespace vit::internal
