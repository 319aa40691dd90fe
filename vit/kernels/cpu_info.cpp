#include "vit/kernels/cpu_info.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <numeric>
#include <string_view>
#include <utility>

#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#include "vit/base/parallel.h"
#include "vit/kernels/amx.h"
#include "vit/kernels/targets.h"

namespace vit::internal::kernels {

namespace {

#if defined(__x86_64__) || defined(__i386__)

/// The registers of CPUID that report what is asked for: leaf and subleaf in hexadecimal, register.
enum Word { k1Ecx, k7Ebx, k7Ecx, k7Edx, k71Eax, kNumWords };

/// Where a feature is reported, and the registers, bits of XCR0, that the system must save for it.
struct Feature {
  const char* name;
  Word word;
  int bit;
  unsigned saved;
};
constexpr unsigned kNothing = 0, kYmm = 0x06, kZmm = 0xE6, kTiles = 0x60000;
constexpr Feature kFeatures[] = {
    {"ssse3", k1Ecx, 9, kNothing},   {"sse4.1", k1Ecx, 19, kNothing}, {"sse4.2", k1Ecx, 20, kNothing},
    {"pclmul", k1Ecx, 1, kNothing},  {"aes", k1Ecx, 25, kNothing},    {"avx", k1Ecx, 28, kYmm},
    {"fma", k1Ecx, 12, kYmm},        {"f16c", k1Ecx, 29, kYmm},       {"avx2", k7Ebx, 5, kYmm},
    {"bmi", k7Ebx, 3, kNothing},     {"bmi2", k7Ebx, 8, kNothing},    {"avx512f", k7Ebx, 16, kZmm},
    {"avx512dq", k7Ebx, 17, kZmm},   {"avx512cd", k7Ebx, 28, kZmm},   {"avx512bw", k7Ebx, 30, kZmm},
    {"avx512vl", k7Ebx, 31, kZmm},   {"avx512vnni", k7Ecx, 11, kZmm}, {"avxvnni", k71Eax, 4, kYmm},
    {"avx512bf16", k71Eax, 5, kZmm}, {"amx-bf16", k7Edx, 22, kTiles}, {"amx-tile", k7Edx, 24, kTiles},
    {"amx-int8", k7Edx, 25, kTiles}};

struct Words {
  Words() {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) != 0) value[k1Ecx] = c;
    constexpr unsigned kOsxsave = 1u << 27;
    if ((value[k1Ecx] & kOsxsave) != 0) __asm__ volatile("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return;
    value[k7Ebx] = b;
    value[k7Ecx] = c;
    value[k7Edx] = d;
    const unsigned num_subleaves = a;
    if (num_subleaves > 0 && __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0) value[k71Eax] = a;
  }

  unsigned value[kNumWords] = {};
  unsigned saved = 0;  // XCR0: what the system saves when it switches threads
};

/// Not by __builtin_cpu_supports: the run-time support of some compilers lacks features, that of Zig all.
bool supports(std::string_view name) {
  static const Words words;
  const Feature& feature = *std::find_if(std::begin(kFeatures), std::end(kFeatures),
                                         [&](const Feature& f) { return f.name == name; });
  return (words.value[feature.word] >> feature.bit & 1u) != 0 &&
         (words.saved & feature.saved) == feature.saved;
}

#else

bool supports(std::string_view) {
  return false;
}

#endif

bool support_all(std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(), supports);
}

}  // namespace

// The instruction sets of Highway's targets (HWY_TARGET_STR_... in hwy/ops/set_macros-inl.h).
bool cpu_has_sse4() {
  return support_all({"ssse3", "sse4.1", "sse4.2", "pclmul", "aes"});
}
bool cpu_has_avx2() {
  return cpu_has_sse4() && support_all({"avx2", "fma", "bmi", "bmi2", "f16c"});
}
bool cpu_has_avx512() {
  return cpu_has_avx2() && support_all({"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"});
}
bool cpu_has_avx512_vnni() {
  return cpu_has_avx512() && supports("avx512vnni");
}
bool cpu_has_avx512_bf16() {
  return cpu_has_avx512_vnni() && supports("avx512bf16");
}
bool cpu_has_amx() {
  return support_all({"amx-tile", "amx-bf16", "amx-int8"});
}
bool cpu_has_avx_vnni() {
  return support_all({"avx2", "avxvnni"});
}

// Highway compiles for processors with AES, which the first ones of 64 bits do not have.
bool cpu_has_neon() {
#if defined(__ARM_FEATURE_AES) || defined(__ARM_FEATURE_CRYPTO) || (defined(__arm__) && defined(__ARM_NEON))
  return true;
#elif defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kAes = 1ul << 3;
  return (getauxval(AT_HWCAP) & kAes) != 0;
#else
  return false;
#endif
}

// Bits of Linux's arch/arm64/include/uapi/asm/hwcap.h.
bool cpu_has_arm_dot_product() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kDotProduct = 1ul << 20;
  return (getauxval(AT_HWCAP) & kDotProduct) != 0;
#else
  return false;
#endif
}

bool cpu_has_arm_matrices() {
#if defined(__aarch64__) && defined(__linux__)
  constexpr unsigned long kI8mm = 1ul << 13, kBf16 = 1ul << 14;
  return (getauxval(AT_HWCAP2) & (kI8mm | kBf16)) == (kI8mm | kBf16);
#else
  return false;
#endif
}

std::vector<std::string> cpu_instruction_sets() {
  std::vector<std::string> names;
#if defined(__x86_64__) || defined(__i386__)
  for (const char* const name : {"sse4.2", "avx", "avx2", "fma", "avxvnni", "avx512f", "avx512vl", "avx512dq",
                                 "avx512bw", "avx512vnni", "avx512bf16"}) {
    if (supports(name)) names.emplace_back(name);
  }
  if (amx_support() == Amx::permitted) names.emplace_back("amx");
#elif defined(__aarch64__)
  names.emplace_back("neon");
  if (cpu_has_arm_dot_product()) names.emplace_back("dotprod");
  if (cpu_has_arm_matrices()) names.insert(names.end(), {"bf16", "i8mm"});
#endif
  return names;
}

namespace {

/// The value of a line "key : value" of /proc/cpuinfo, or "".
std::string value_of(const std::string& line, std::string_view key) {
  const std::size_t colon = line.find(": ");
  return colon != std::string::npos && line.compare(0, key.size(), key) == 0 ? line.substr(colon + 2) : "";
}

/// Arm's processors have no name in /proc/cpuinfo: numbers of the implementer (0x41 is Arm) and of the part.
std::string arm_name(const std::string& implementer, const std::string& part) {
  static constexpr std::pair<std::string_view, const char*> kParts[] = {
      {"0xd03", "Cortex-A53"},  {"0xd05", "Cortex-A55"},  {"0xd07", "Cortex-A57"},  {"0xd08", "Cortex-A72"},
      {"0xd0b", "Cortex-A76"},  {"0xd0c", "Neoverse N1"}, {"0xd40", "Neoverse V1"}, {"0xd49", "Neoverse N2"},
      {"0xd4f", "Neoverse V2"}, {"0xd83", "Neoverse V3"}, {"0xd8e", "Neoverse N3"}};
  const auto* const known = std::find_if(std::begin(kParts), std::end(kParts),
                                         [&](const auto& entry) { return entry.first == part; });
  if (implementer == "0x41" && known != std::end(kParts)) return known->second;
  return "aarch64, implementer " + implementer + ", part " + part;
}

}  // namespace

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string implementer;
  for (std::string line; std::getline(file, line);) {
    if (const std::string name = value_of(line, "model name"); !name.empty()) return name;
    if (const std::string found = value_of(line, "CPU implementer"); !found.empty()) implementer = found;
    if (const std::string part = value_of(line, "CPU part"); !part.empty())
      return arm_name(implementer, part);
  }
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

namespace {

/// Two chains, for tables without vectors.
double scalar_multiply_adds(std::size_t rounds, float* sink) noexcept {
  double a = 1.0;
  double b = 1.0;
  for (std::size_t i = 0; i < rounds; ++i) {
    a = a * 0.5 + 1.0;
    b = b * 0.25 + 1.0;
  }
  *sink = static_cast<float>(a + b);
  return 4.0 * static_cast<double>(rounds);
}

auto multiply_adds_of(const KernelTable& table) {
  for (const CompiledTarget& target : compiled_targets()) {
    if (target.table.float32 == table.float32) return target.multiply_adds;
  }
  return &scalar_multiply_adds;
}

/// The rate of rounds that `multiply_adds` runs, each on every thread.
double best_gflops(int threads, double (*multiply_adds)(std::size_t rounds, float* sink) noexcept) {
  const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
  std::vector<float> sinks(num_threads);
  std::vector<double> operations(num_threads);
  const auto seconds_of = [&](std::size_t num_tasks, std::size_t rounds) {
    const auto begin = std::chrono::steady_clock::now();
    parallel_for(num_tasks, threads,
                 [&](std::size_t task, int) { operations[task] = multiply_adds(rounds, &sinks[task]); });
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // Pieces of about 2 ms on one thread: next to other programs just starting a team may take longer than
  // that, and pieces sized by that time would measure nothing else. The best of several pieces is the one
  // least disturbed by others.
  constexpr std::size_t kOneTask = 1;
  std::size_t rounds = 1000;
  while (std::min({seconds_of(kOneTask, rounds), seconds_of(kOneTask, rounds),
                   seconds_of(kOneTask, rounds)}) < 0.002)
    rounds *= 2;
  constexpr int kRepetitions = 30;
  double best = 0.0;
  for (int repetition = 0; repetition < kRepetitions; ++repetition) {
    const double seconds = seconds_of(num_threads, rounds);
    best = std::max(best, std::accumulate(operations.begin(), operations.end(), 0.0) / seconds * 1e-9);
  }
  return best;
}

}  // namespace

double measure_fma_peak_gflops(int threads, const KernelTable& table) {
  return best_gflops(threads, multiply_adds_of(table));
}

double measure_attention_peak_gflops(int threads, const Arithmetic& arithmetic) {
  const auto multiply_adds = arithmetic.attention.multiply_adds;
  return best_gflops(threads, multiply_adds != nullptr ? multiply_adds : &scalar_multiply_adds);
}

}  // namespace vit::internal::kernels
