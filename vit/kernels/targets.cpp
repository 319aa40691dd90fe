// Lists the kernel tables of this build, which targets/*.cpp hold, and asks the processor which of them it
// runs.
#include "vit/kernels/targets.h"

#include <vector>

#include "vit/kernels/cpu_info.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/target_list.h"

namespace vit::internal::kernels {

#if HWY_TARGETS & HWY_AVX3
namespace N_AVX3 {
extern const KernelTable kTable, kVnniTable, kBf16Table;
}
#endif
#if HWY_TARGETS & HWY_AVX2
namespace N_AVX2 {
extern const KernelTable kTable, kVnniTable;
}
#endif
#if HWY_TARGETS & HWY_SSE4
namespace N_SSE4 {
extern const KernelTable kTable;
}
#endif
#if HWY_TARGETS & HWY_NEON
namespace N_NEON {
extern const KernelTable kTable;
}
#endif
#if HWY_TARGETS & HWY_EMU128
namespace N_EMU128 {
extern const KernelTable kTable;
}
#endif
#if HWY_TARGETS & HWY_SCALAR
namespace N_SCALAR {
extern const KernelTable kTable;
}
#endif

const std::vector<CompiledTarget>& compiled_targets() {
  static const std::vector<CompiledTarget> targets = [] {
    const auto supported = hwy::SupportedTargets();
    std::vector<CompiledTarget> found;
#if HWY_TARGETS & HWY_AVX3
    __builtin_cpu_init();
    const bool has_vnni = __builtin_cpu_supports("avx512vnni") != 0;
    const bool has_bf16 = has_vnni && __builtin_cpu_supports("avx512bf16") != 0;
    found.push_back({&N_AVX3::kBf16Table, has_bf16 && (supported & HWY_AVX3) != 0});
    found.push_back({&N_AVX3::kVnniTable, has_vnni && (supported & HWY_AVX3) != 0});
    found.push_back({&N_AVX3::kTable, (supported & HWY_AVX3) != 0});
#endif
#if HWY_TARGETS & HWY_AVX2
    found.push_back({&N_AVX2::kVnniTable, cpu_has_avx_vnni() && (supported & HWY_AVX2) != 0});
    found.push_back({&N_AVX2::kTable, (supported & HWY_AVX2) != 0});
#endif
#if HWY_TARGETS & HWY_SSE4
    found.push_back({&N_SSE4::kTable, (supported & HWY_SSE4) != 0});
#endif
#if HWY_TARGETS & HWY_NEON
    found.push_back({&N_NEON::kTable, (supported & HWY_NEON) != 0});
#endif
#if HWY_TARGETS & HWY_EMU128
    found.push_back({&N_EMU128::kTable, true});
#endif
#if HWY_TARGETS & HWY_SCALAR
    found.push_back({&N_SCALAR::kTable, true});
#endif
    return found;
  }();
  return targets;
}

}  // namespace vit::internal::kernels
