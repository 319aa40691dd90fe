// NumPy's .npz: a zip archive of arrays, the form of weights that were trained with JAX.
#pragma once

#include <filesystem>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Opens a file that numpy.savez wrote; a tensor is called as its record without ".npy". Arrays of objects
/// are passed by and listed in members(). Throws Error (unsupported) for compressed records and big-endian
/// numbers, Error (format) for every inconsistency.
TensorFile open_npz(const std::filesystem::path& path);

}  // namespace vit::internal
