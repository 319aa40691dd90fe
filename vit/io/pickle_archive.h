// The containers in which PyTorch stores a pickle and the raw numbers that it refers to: the current zip
// archive, TorchScript's, and one stream of pickles before release 1.6. The pickle is interpreted by
// pickle_program.h.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vit/io/pickle_program.h"
#include "vit/io/source_file.h"

namespace vit::internal::pickle {

/// One opened file: its interpreted pickle, and the positions of the numbers of its storages.
struct Archive {
  std::shared_ptr<const SourceFile> file;
  std::vector<std::byte> bytes;  // of the pickle: the strings of the program point into it
  Program program;
  std::map<std::string, StoredBytes, std::less<>> storages;  // by their key in the pickle
  bool is_zip = true;  // in other formats a storage may be a view of a larger one

  /// The numbers of a storage, with the declared count. Throws Error naming `label`, the tensor that
  /// needs them.
  StoredBytes find(const Storage& storage, const std::string& label) const;
};

/// Throws Error (unsupported) naming other known formats, and Error (format) for every inconsistency.
Archive open_archive(const std::filesystem::path& path);

}  // namespace vit::internal::pickle
