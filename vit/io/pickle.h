// PyTorch checkpoints (.pth, .pt, .bin, .ckpt, .pth.tar) as named tensors.
#pragma once

#include <filesystem>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Opens a file written by torch.save or TorchScript without running anything: see pickle_program.h for what
/// is understood. All its tensors, whatever dictionaries, tuples and objects they lie in: their names are the
/// keys on the way, joined by dots ("state_dict.head.weight"); of modules that were saved whole the names
/// that state_dict() would give. A dictionary that lies in several places counts once, where it is first
/// found. Other members are listed in members(), texts and whole numbers in facts(). Strides and offsets are
/// honoured: a transposed or shared tensor reads as PyTorch shows it. Throws Error (unsupported) for formats
/// of other programs and for names that run programs, Error (format) for every inconsistency.
TensorFile open_pickle(const std::filesystem::path& path);

}  // namespace vit::internal
