// A checkpoint in several files, with an index that maps tensors to files. One of them is read by
// safetensors.h and pickle.h.
#pragma once

#include <filesystem>
#include <string_view>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Whether a tensor of this name is wanted.
using WantsTensor = bool (*)(std::string_view name);

/// Opens the shards that an index (model.safetensors.index.json, pytorch_model.bin.index.json) names, with
/// open_shard; shards lie next to the index. If `wants` is given, shards without wanted tensors stay
/// closed and may be missing: their tensors are Contents::unread. The union of the tensors of the others must
/// be exactly their part of the weight_map, each tensor in the shard that it names. Throws Error if it is
/// not, or if a shard cannot be read.
TensorFile open_shards(const std::filesystem::path& path,
                       TensorFile (*open_shard)(const std::filesystem::path&), WantsTensor wants = nullptr);

}  // namespace vit::internal
