// LoRA adapters of PEFT: joined to the weights of their base while those are read, as merge_and_unload()
// does.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Whether a folder holds an adapter, or a file is one.
bool is_adapter(const std::filesystem::path& path);

/// Where the base of an adapter lies: the folder that adapter_config.json names, the adapter's own, or the
/// one above. Throws Error (io) that names the base if it is none of these.
std::filesystem::path find_adapter_base(const std::filesystem::path& adapter);

/// The tensors of a model with an adapter: W + s B A, in float32 when they are read, and the tensors that the
/// adapter holds itself (biases, modules_to_save). `root` stands in front of the model's names; what was done
/// is added to `notes`. Throws Error (unsupported) naming kinds of adapters that are not implemented, Error
/// (mismatch) naming what has no place in the model.
TensorFile join_adapter(const TensorFile& base, const std::string& root, const std::filesystem::path& adapter,
                        std::vector<std::string>& notes);

}  // namespace vit::internal
