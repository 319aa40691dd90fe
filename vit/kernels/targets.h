// The tables that this build contains, for dispatch.cpp alone.
#pragma once

#include <vector>

#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {

/// Tables compiled for instruction sets, fastest first, whether or not this machine can run them.
struct CompiledTarget {
  const KernelTable* table;
  bool supported;
};
const std::vector<CompiledTarget>& compiled_targets();

/// Naive loops in double precision: the definition and the oracle.
const KernelTable& reference_kernels();
/// Those for inputs of bytes; the table above has the ones for inputs of 16 bits.
const Int8Kernels& reference_byte_kernels();

}  // namespace vit::internal::kernels
