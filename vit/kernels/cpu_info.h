// What the processor offers: names for reports, and its floating-point peak as measured. Choosing kernels is
// dispatch.cpp.
#pragma once

#include <string>
#include <vector>

#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {

/// Instruction sets that matter here and that both the processor and the operating system enable, for example
/// {"sse4.2", "avx2", "fma"}.
std::vector<std::string> cpu_instruction_sets();

/// VNNI beside AVX2, without AVX-512.
bool cpu_has_avx_vnni();

/// The processor's name as the operating system tells it, or the architecture where it does not.
std::string cpu_name();

/// Highest rate in 1e9 floating-point operations per second that multiply-adds of `table` reach on `threads`
/// threads (0 = all) with everything in registers: the ceiling for a matrix product. Takes about 0.1 s.
double measure_fma_peak_gflops(int threads, const KernelTable& table = default_kernels());

}  // namespace vit::internal::kernels
