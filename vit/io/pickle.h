// PyTorch checkpoints (.pth, .pt, .bin, .ckpt, .pth.tar) as named tensors.
#pragma once

#include <filesystem>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Whether a file has one of PyTorch's endings: .pth, .pt, .bin, .ckpt, .pth.tar.
bool has_pickle_ending(const std::filesystem::path& file);

/// Opens a file written by torch.save or TorchScript without running anything: see pickle_program.h for the
/// supported contents. All its tensors, in any nesting of dictionaries, tuples and objects: their names are
/// the keys of the path, joined by dots ("state_dict.head.weight"); for modules that were saved whole the
/// names that state_dict() would give. A dictionary referenced several times counts once, where it is first
/// found. Other members are listed in members(), texts and integers in facts(). Strides and offsets are
/// respected: a transposed or shared tensor reads as in PyTorch. Throws Error (unsupported) for formats
/// of other programs and for names that run programs, Error (format) for every inconsistency.
TensorFile open_pickle(const std::filesystem::path& path);

}  // namespace vit::internal
