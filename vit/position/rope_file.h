// Rotary factors in the files that people have: which tensors of a file are cosines, sines, angles, or
// vectors before and after the rotation, and which convention all of them follow.
#pragma once

#include "vit/io/tensor_file.h"
#include "vit/position/identify.h"

namespace vit::internal {

/// Opens a file of rotary factors by its extension: .npz, .npy or .safetensors. Throws Error (argument) for
/// another one, and as the readers do.
TensorFile open_rope_file(const std::filesystem::path& path);

/// Identifies what a file holds: `cos` and `sin`, or `angles`, (T, d / 2) or (T, d) or with heads in front;
/// complex factors `freqs_cis` of these shapes, or with real and imaginary part in a last dimension of 2; or
/// `q` and `q_rotated`, `k` and `k_rotated`, (B, T, H, d) or (B, H, T, d); with `basis` (d, d) if the vectors
/// are rotated in another basis. The `array` of a .npy file is complex factors, cosines and sines in a first
/// or last dimension of 2, or else angles. All that is there must agree. Throws Error (format) if the file
/// has none of these or a tensor does not fit its name, (mismatch) if cosines and sines belong to no angle.
RopeIdentity identify_rope_file(const TensorFile& file, const IdentifyOptions& options);

}  // namespace vit::internal
