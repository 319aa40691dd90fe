// Rotary factors in the files that people have: which tensors of a file are cosines, sines, angles, or
// vectors before and after the rotation, and which convention all of them follow.
#pragma once

#include "vit/io/tensor_file.h"
#include "vit/position/identify.h"

namespace vit::internal {

/// Identifies what a file holds: `cos` and `sin`, or `angles`, (T, d / 2) or (T, d) or with heads in front;
/// or `q` and `q_rotated`, `k` and `k_rotated`, (B, T, H, d) or (B, H, T, d). All that is there must agree.
/// Throws Error (format) if the file has none of these or a tensor does not fit its name, (mismatch) if
/// cosines and sines belong to no angle.
RopeIdentity identify_rope_file(const TensorFile& file, const IdentifyOptions& options);

}  // namespace vit::internal
