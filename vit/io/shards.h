// A checkpoint in several files, with an index that says which tensor lies in which. Reading one of them is
// for safetensors.h and pickle.h.
#pragma once

#include <filesystem>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Opens every shard that an index (model.safetensors.index.json, pytorch_model.bin.index.json) names, with
/// open_shard; shards lie beside the index. The union of their tensors must be exactly the weight_map, each
/// tensor in the shard that it names. Throws Error if it is not, or if a shard cannot be read.
TensorFile open_shards(const std::filesystem::path& path,
                       TensorFile (*open_shard)(const std::filesystem::path&));

}  // namespace vit::internal
