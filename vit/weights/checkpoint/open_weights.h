// Weight files by their names: which of a folder is meant, and which reader opens it.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "vit/io/shards.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// The weight file of a folder with the first of the names that timm, Hugging Face and OpenCLIP write; else
/// all files that are called as weights are.
std::vector<std::filesystem::path> find_weights(const std::filesystem::path& folder);
/// Among these files the two of dino.txt, the image tower's first: Meta publishes the backbone and what goes
/// on top of it, with the text tower, apart. Nothing if they are not there.
std::vector<std::filesystem::path> dinotxt_pair(const std::vector<std::filesystem::path>& files);
/// All files of a folder that are called as weights are.
std::vector<std::filesystem::path> list_weights(const std::filesystem::path& folder);
/// Whether these are all shards of one checkpoint, "model-00001-of-00003.safetensors" and so on. Throws Error
/// (io) that names those which are missing.
bool are_all_shards(const std::vector<std::filesystem::path>& files);
/// Whether a weight file has a name that OpenCLIP gives.
bool is_open_clip_name(const std::filesystem::path& file);
/// Opens a weight file, or the index of shards, by its ending; what wrappers put into names is left out. Of
/// shards those are opened that hold something wanted (io/shards.h).
TensorFile open_weights(const std::filesystem::path& file, WantsTensor wants = nullptr);
/// The same of a .safetensors file in memory, which must outlive the result.
TensorFile open_weights(std::span<const std::byte> file, const std::filesystem::path& name);
/// The tensors of several files as those of one, called `path`. Throws Error if a name occurs twice.
TensorFile open_together(const std::vector<std::filesystem::path>& files, const std::filesystem::path& path);

}  // namespace vit::internal
