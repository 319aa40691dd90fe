// NumPy's .npz: a zip archive of arrays, the format of weights trained with JAX.
#pragma once

#include <filesystem>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// Opens a file from numpy.savez; the name of a tensor is that of its record without ".npy". Arrays of
/// objects are skipped and listed in members(). Throws Error (unsupported) for compressed records and
/// big-endian numbers, Error (format) for every inconsistency.
TensorFile open_npz(const std::filesystem::path& path);

}  // namespace vit::internal
