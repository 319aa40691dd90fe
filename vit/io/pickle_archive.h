// The containers in which PyTorch keeps a pickle and the raw numbers that it refers to: the zip archive of
// today, TorchScript's, and one stream of pickles before release 1.6. What the pickle says is for
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

/// One opened file: its pickle, interpreted, and where the numbers of its storages lie.
struct Archive {
  std::shared_ptr<const SourceFile> file;
  std::vector<std::byte> bytes;  // of the pickle: what the strings of the program point into
  Program program;
  std::map<std::string, StoredBytes, std::less<>> storages;  // by the key that the pickle gives them
  bool is_zip = true;  // elsewhere a storage may be a view of a larger one

  /// The numbers of a storage, as many as it announces. Throws Error naming `label`, for which they are
  /// wanted.
  StoredBytes find(const Storage& storage, const std::string& label) const;
};

/// Throws Error (unsupported) for other formats by their names, and Error (format) for every inconsistency.
Archive open_archive(const std::filesystem::path& path);

}  // namespace vit::internal::pickle
