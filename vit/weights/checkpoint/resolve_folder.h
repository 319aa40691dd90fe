// From the folder that a user has to the one that holds a checkpoint, and what a folder holds instead.
#pragma once

#include <filesystem>
#include <string>

namespace vit::internal {

/// The folder or file that `path` means: of sentence-transformers the module that modules.json names, of the
/// cache of Hugging Face the snapshot that its reference names, of a run of transformers' Trainer without
/// weights of its own the last checkpoint. `path` itself if it is none of these. Throws Error (format) for a
/// modules.json that cannot be meant.
std::filesystem::path resolve_checkpoint(const std::filesystem::path& path);

/// What a folder without readable weights holds of other programs' weights, or where below it weights lie,
/// and what to do about it; "" if nothing is known.
std::string foreign_weights(const std::filesystem::path& folder);
/// The same for one file, by its name or first bytes.
std::string foreign_format(const std::filesystem::path& file);

}  // namespace vit::internal
