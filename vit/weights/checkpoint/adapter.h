// LoRA adapters of PEFT: merged into the weights of their base while those are read, as in
// merge_and_unload(). Their bases are found by checkpoint_files.h.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// The tensors of a model with an adapter: W + s B A, in float32 when they are read, and the tensors that the
/// adapter contains itself (biases, modules_to_save). `root` is the prefix of the model's names; a report
/// is added to `notes`. Throws Error (unsupported) naming kinds of adapters that are not implemented, Error
/// (mismatch) naming modules that are not in the model.
TensorFile join_adapter(const TensorFile& base, const std::string& root, const std::filesystem::path& adapter,
                        std::vector<std::string>& notes);

}  // namespace vit::internal
