// Properties of the processor: names for reports, and its measured floating-point peak. Kernels are chosen in
// dispatch.cpp.
#pragma once

#include <string>
#include <vector>

#include "vit/kernels/kernels.h"

namespace vit::internal::kernels {

/// Relevant instruction sets enabled by both the processor and the operating system, for example
/// {"sse4.2", "avx2", "fma"}.
std::vector<std::string> cpu_instruction_sets();

/// All that kernels of this name are compiled with, enabled by both the processor and the operating system.
/// False on other architectures. Highway's own detection is not used: its library measures a timer before
/// main(), a fifth of the start of the program.
bool cpu_has_sse4();
bool cpu_has_avx2();
bool cpu_has_avx512();
bool cpu_has_avx512_vnni();
bool cpu_has_avx512_bf16();
bool cpu_has_amx();  // the processor and the system; each process asks for permission (amx_support)
bool cpu_has_neon();

/// VNNI with AVX2, without AVX-512.
bool cpu_has_avx_vnni();

/// The extensions of Arm that Linux reports for this process: the dot product of bytes; BF16 and I8MM, which
/// processors have together. False elsewhere.
bool cpu_has_arm_dot_product();
bool cpu_has_arm_matrices();

/// The processor's name as reported by the operating system, else the architecture.
std::string cpu_name();

/// Highest rate in 1e9 floating-point operations per second that multiply-adds of `table` reach on `threads`
/// threads (0 = all) with everything in registers: the limit for a matrix product. Takes about 0.1 s.
double measure_fma_peak_gflops(int threads, const KernelTable& table = default_kernels());

/// The same of the products of attention in this arithmetic: of bfloat16 or of integers, of which an
/// instruction multiplies and adds several, where it has those. Softmax and conversions are not products.
double measure_attention_peak_gflops(int threads, const Arithmetic& arithmetic);

}  // namespace vit::internal::kernels
