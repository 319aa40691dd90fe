// The tensors of weight files, by the reader of each format.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "vit/io/shards.h"
#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Opens a weight file, or the index of shards, by its ending; names lose the components of wrappers. Of
/// shards those are opened that hold something wanted (io/shards.h).
TensorFile open_weights(const std::filesystem::path& file, WantsTensor wants = nullptr);
/// The same of a .safetensors file in memory, which must outlive the result.
TensorFile open_weights(std::span<const std::byte> file, const std::filesystem::path& name);
/// The tensors of several files as those of one, called `path`. Throws Error if a name occurs twice.
TensorFile open_together(const std::vector<std::filesystem::path>& files, const std::filesystem::path& path);
/// The same of a backbone and a head, "decode_head.*". Either file, or one that is given twice, may be the
/// whole model: of `model` the head is left out, of `head` the backbone, "backbone.*".
TensorFile open_with_head(const std::filesystem::path& model, const std::filesystem::path& head);

}  // namespace vit::internal
