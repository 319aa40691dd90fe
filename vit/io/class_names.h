// Files of class names: one reader of all formats for --labels and --classes-file, and of the
// tables published with taggers. The caller knows whose classes they are.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace vit::internal {

/// By class, from 0; the vectors have one element for each class, or none.
struct ClassList {
  std::vector<std::string> names;
  std::vector<std::string> ids;         // other identifiers: ImageNet's synsets
  std::vector<std::string> categories;  // of taggers: "0" for a tag, "9" for a rating, ...
};

/// Reads a file of class names:
///
///   text         one name per line, two columns of which one holds every class index once (indexed_lines.h),
///                "ID<tab>NAME" or "n01440764 NAME"; empty names at the end are ignored
///   .json        a list of names; an object {"0": NAME, ...}, or {NAME: 0, ...} as in label2id and
///                class_to_idx; either of them, or a list, below id2label, label2id, class_to_idx,
///                label_names, classes or names. A NAME is a string, an integer, or a pair of id and name
///                (ImageNet).
///   .csv, .tsv   a header with a column of names (name, label, class, ...); a column of integers
///                (id, index, class_id, ...) gives the class of a row, as does the other one of two columns
///                if it holds every class index once; one of other values is an id; category is a category.
///                Without a header as text
///
/// Throws Error (format) that names the file, the position and what is expected: for a class without a name
/// or with two, for a table of more columns without a header, for keys and values that can be read both ways,
/// and for the first line that is not UTF-8.
ClassList read_class_list(const std::filesystem::path& file);

/// A CSV table (RFC 4180) with the columns of a header in any order, "," or a tab between fields. Nothing if
/// no column contains names. Throws Error (format) naming `file` and the line for quotes that do not close,
/// rows of another length, and duplicate or missing classes.
std::optional<ClassList> parse_class_table(std::string_view content, char delimiter,
                                           const std::filesystem::path& file);
/// The same for a .csv file. Throws Error for one that cannot be read or is too large for a list of classes.
std::optional<ClassList> read_class_table(const std::filesystem::path& file);

/// The class index in `digits`; nothing unless all of them are decimal digits and it is in range.
std::optional<std::size_t> integer_of(std::string_view digits);

}  // namespace vit::internal
