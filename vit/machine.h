// Properties of this machine: available kernels, processor, threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/error.h"

namespace vit {

/// Hand-written loops for one instruction set; ModelOptions::kernels names one, or NAME:portable.
struct KernelInfo {
  std::string name;         // "avx2"
  std::string description;  // "AVX2 and FMA: 8 lanes"
  std::string bfloat16;     // how Precision::bfloat16 multiplies
  std::string int8;         // how Precision::int8 multiplies
};

/// The contract of reproducible results. Those of one number have the same bits on every machine, for any
/// batch and number of threads: one fused chain for each product, one order of additions
/// (vit/kernels/README.md).
struct BitsContract {
  int number = 0;       // 1; 0 = none
  std::string why_not;  // "" or the reason why there is none
};

/// Kernels that this machine supports, fastest first; the last one, "reference", defines the results and is
/// slow.
VIT_API std::vector<KernelInfo> available_kernels();

/// The kernels of that name; with "" those named by the environment variable VIT_KERNELS, else the
/// fastest. Throws Error for an unknown name or one that this machine does not support.
VIT_API KernelInfo find_kernels(std::string_view name = "");

/// The contract that these kernels keep in this precision; "" as for find_kernels(), which see for errors.
VIT_API BitsContract bits_contract(Precision precision, std::string_view kernels = "");

/// The processor's name as reported by the operating system, else the architecture.
VIT_API std::string cpu_name();

/// Relevant instruction sets enabled by the processor and the operating system, for example
/// {"sse4.2", "avx2", "fma"}.
VIT_API std::vector<std::string> cpu_instruction_sets();

/// The number of threads for a setting: itself if positive; for 0 that of OpenMP, OMP_NUM_THREADS or one for
/// each core that this process may use.
VIT_API int num_threads(int threads = 0);

/// Highest rate in 1e9 floating-point operations per second of multiply-adds in registers, on `threads`
/// threads (0 = all) with these kernels ("" = the fastest of this machine): the limit for a matrix product.
/// Takes about 0.1 s.
VIT_API double measure_peak_gflops(int threads = 0, std::string_view kernels = "");

}  // namespace vit
