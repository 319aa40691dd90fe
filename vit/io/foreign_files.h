// What is recognized without being read: files, folders and addresses of other programs, with what to do
// instead. One table for images, weights and whatever else is given in their place.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace vit::internal {

/// A row of the table.
struct ForeignFile {
  std::string_view what;  // "a graph of ONNX"
  std::string_view next;  // what to do instead, an order or a fact
};

/// By the name of a file or of an entry of a folder; null for an unknown one.
const ForeignFile* foreign_by_name(std::string_view name);
/// By the first bytes, as many as there are, 512 at most count.
const ForeignFile* foreign_by_content(std::string_view first_bytes);
/// "WHAT, which is not read; NEXT".
std::string describe(const ForeignFile& foreign);
/// A file by its name, or by its first bytes: "'NAME' is WHAT, which is not read; NEXT". "" for an unknown
/// one, and for zip archives, which PyTorch's own files are.
std::string describe_file(const std::filesystem::path& file);

/// For a path that does not exist: "; " and what it may have been meant as, an address of the web or the name
/// of a model of a hub, with the command that downloads it; or that it is empty. "" if it looks like a plain
/// path.
std::string missing_hint(std::string_view path);

}  // namespace vit::internal
