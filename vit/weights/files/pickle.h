// PyTorch checkpoints (.pth, .pt, .bin: a zip archive with a pickle and raw storages) as named tensors.
#pragma once

#include <filesystem>

#include "vit/weights/files/tensor_file.h"

namespace vit::internal {

/// Opens a file written by torch.save of PyTorch 1.6 or newer, without running anything: see pickle_machine.h
/// for what is understood. The tensors are those of the state dictionary, searched in this order and at most
/// four levels deep: the member "model", "state_dict", "model_state_dict", "module", "teacher", "net",
/// "model_ema", "state_dict_ema", "ema" or "student" that is a dictionary, and where there is none, the
/// dictionary itself. What else lies on the way is listed in
/// ignored(). Strides and offsets are honoured: a transposed or shared tensor reads as PyTorch shows it.
/// Throws Error for the older format without zip, for TorchScript, for classes that tensors do not need (by
/// name), and for every inconsistency.
TensorFile open_pickle(const std::filesystem::path& path);

}  // namespace vit::internal
