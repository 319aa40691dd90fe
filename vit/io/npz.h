// NumPy's .npz: a zip archive of arrays, the format of weights trained with JAX; and .npy, one array.
#pragma once

#include <filesystem>

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// What becomes of complex64 and complex128.
enum class ComplexNumbers {
  refused,   // Error (unsupported)
  as_pairs,  // real and imaginary part as a last dimension of 2
};

/// Opens a file from numpy.savez; the name of a tensor is that of its record without ".npy". Arrays of
/// objects are skipped and listed in members(). Throws Error (unsupported) for compressed records and
/// big-endian numbers, Error (format) for every inconsistency.
TensorFile open_npz(const std::filesystem::path& path,
                    ComplexNumbers complex_numbers = ComplexNumbers::refused);

/// Opens a file from numpy.save as one tensor of the name "array". Throws Error as open_npz().
TensorFile open_npy(const std::filesystem::path& path,
                    ComplexNumbers complex_numbers = ComplexNumbers::refused);

}  // namespace vit::internal
