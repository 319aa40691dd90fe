// Which files of a checkpoint folder belong together: the weights that are read, and the configuration that
// is theirs.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

namespace vit::internal {

/// Weight file of a folder: the names that timm, Hugging Face and OpenCLIP write, in this order, else the
/// only one there. Throws Error where there is none or the choice is open.
std::filesystem::path find_weights(const std::filesystem::path& folder);

/// The files that a checkpoint is read from, a folder or a weight file; none where the folder holds no
/// weights. Where these are in shards, all weight files of their folder.
std::vector<std::filesystem::path> weight_files(const std::filesystem::path& path);

/// open_clip_config.json of a folder, or beside a weight file, where it says what the weights are: those are
/// called as OpenCLIP calls them, or there is no config.json. Repositories often hold the same model for
/// several libraries.
std::optional<std::filesystem::path> find_open_clip_config(const std::filesystem::path& path);

/// Whether the name is one of PyTorch's own files: .pth, .pt, .bin.
bool is_pickle(const std::filesystem::path& file);

}  // namespace vit::internal
