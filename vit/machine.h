// What this machine offers: its kernels by name, its processor, its threads.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "vit/base/error.h"

namespace vit {

/// Hand-written loops for one instruction set; ModelOptions::kernels names one.
struct KernelInfo {
  std::string name;         // "avx2"
  std::string description;  // "AVX2 and FMA: 8 lanes"
  std::string bfloat16;     // how Precision::bfloat16 multiplies
  std::string int8;         // how Precision::int8 multiplies
};

/// Kernels that this machine can run, fastest first; the last one, "reference", defines the results and is
/// slow.
VIT_API std::vector<KernelInfo> available_kernels();

/// The kernels of that name, or with "" those that the environment variable VIT_KERNELS names, else the
/// fastest. Throws Error for a name that is unknown or that this machine cannot run.
VIT_API KernelInfo find_kernels(std::string_view name = "");

/// The processor's name as the operating system tells it, or the architecture if it does not.
VIT_API std::string cpu_name();

/// Instruction sets that matter here and that the processor and the operating system enable, for example
/// {"sse4.2", "avx2", "fma"}.
VIT_API std::vector<std::string> cpu_instruction_sets();

/// Threads that `threads` stands for: itself if positive; if 0 what OpenMP takes, OMP_NUM_THREADS or one for
/// each core that this process may use.
VIT_API int num_threads(int threads = 0);

/// Highest rate in 1e9 floating-point operations per second of multiply-adds in registers, on `threads`
/// threads (0 = all) with these kernels ("" = the fastest of this machine): the ceiling for a matrix product.
/// Takes about 0.1 s.
VIT_API double measure_peak_gflops(int threads = 0, std::string_view kernels = "");

}  // namespace vit
