#include "vit/kernels/cpu_info.h"

#include <algorithm>
#include <chrono>
#include <fstream>

#include "vit/base/parallel.h"

namespace vit::kernels {

std::vector<std::string> cpu_instruction_sets() {
  std::vector<std::string> names;
#if defined(__x86_64__) || defined(__i386__)
  // The compiler's run-time support asks CPUID and, for the wide registers, XGETBV.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("sse4.2")) names.emplace_back("sse4.2");
  if (__builtin_cpu_supports("avx")) names.emplace_back("avx");
  if (__builtin_cpu_supports("avx2")) names.emplace_back("avx2");
  if (__builtin_cpu_supports("fma")) names.emplace_back("fma");
  if (__builtin_cpu_supports("avx512f")) names.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512vl")) names.emplace_back("avx512vl");
  if (__builtin_cpu_supports("avx512dq")) names.emplace_back("avx512dq");
  if (__builtin_cpu_supports("avx512bw")) names.emplace_back("avx512bw");
  if (__builtin_cpu_supports("avx512vnni")) names.emplace_back("avx512vnni");
  if (__builtin_cpu_supports("avx512bf16")) names.emplace_back("avx512bf16");
#elif defined(__aarch64__)
  names.emplace_back("neon");
#endif
  return names;
}

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon != std::string::npos && line.compare(0, 10, "model name") == 0) return line.substr(colon + 2);
  }
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

double measure_fma_peak_gflops(int threads, const KernelTable& table) {
  using Clock = std::chrono::steady_clock;
  const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
  // One piece takes some milliseconds; the best of many is the least disturbed by other programs.
  constexpr int kRepetitions = 25;
  std::size_t rounds = 1000;
  double best = 0.0;
  for (int repetition = 0; repetition < kRepetitions;) {
    double operations = 0.0;
    std::vector<float> sinks(num_threads);
    std::vector<double> done(num_threads);
    const auto begin = Clock::now();
    parallel_for(num_threads, threads,
                 [&](std::size_t task, int) { done[task] = table.multiply_adds(rounds, &sinks[task]); });
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    for (const double piece : done) operations += piece;
    if (seconds < 0.003) {
      rounds *= 2;
      continue;
    }
    best = std::max(best, operations / seconds * 1e-9);
    ++repetition;
  }
  return best;
}

}  // namespace vit::kernels
