// The tables that this build contains, for dispatch.cpp, cpu_info.cpp and tests.
#pragma once

#include <vector>

#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {

/// Shared by all tables of one instruction set.
struct TargetKernels {
  bool fuses;  // multiply-adds round once
  void (*layer_norm)(const LayerNormArgs& args) noexcept;
  ResampleKernels resample;
  MapKernels maps;
  ConvolutionKernels convolution;
  /// Runs `rounds` rounds of independent multiply-adds in registers and returns the floating-point operations
  /// done; `sink` keeps the compiler from removing them.
  double (*multiply_adds)(std::size_t rounds, float* sink) noexcept;
};

/// Tables compiled for instruction sets, fastest first, whether or not this machine supports them.
struct CompiledTarget {
  KernelTable table;
  bool supported;
  double (*multiply_adds)(std::size_t rounds, float* sink) noexcept;
};
const std::vector<CompiledTarget>& compiled_targets();

/// Naive loops in double precision: the definition and the oracle.
const KernelTable& reference_kernels();
/// Its products of linear layers; int8 with inputs of 16 bits.
extern const LinearKernels kReferenceFloat32, kReferenceBfloat16, kReferenceInt8;
/// int8 products with inputs of bytes, and neighboring weights whose sum is at most pair_largest (128 or
/// 255).
const LinearKernels& reference_byte_kernels(int pair_largest);

}  // namespace vit::internal::kernels
