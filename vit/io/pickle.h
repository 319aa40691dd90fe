// PyTorch checkpoints (.pth, .pt, .bin, .ckpt, .pth.tar: a zip archive with a pickle and raw storages) as
// named tensors.
#pragma once

#include <filesystem>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Opens a file written by torch.save of PyTorch 1.6 or newer, without running anything: see pickle_machine.h
/// for what is understood. The tensors are those of the state dictionary: at each of at most four levels the
/// first member that is a dictionary among "state_dict_ema", "model_ema", "state_dict", "model",
/// "model_state_dict", "module", "teacher", "net", "ema" and "student", or the dictionary itself if it has
/// none of these. What else lies on the way is listed in ignored(). Strides and offsets are honoured: a
/// transposed or shared tensor reads as PyTorch shows it. Throws Error (unsupported) for the older format
/// without zip, for TorchScript, and for classes that tensors do not need (by name), Error (format) for every
/// inconsistency.
TensorFile open_pickle(const std::filesystem::path& path);

}  // namespace vit::internal
