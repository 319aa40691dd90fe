// Lists the kernel tables of this build, whose parts are in targets/*.cpp, and checks which of them the
// processor supports.
#include "vit/kernels/targets.h"

#include "vit/kernels/amx.h"
#include "vit/kernels/cpu_info.h"
#include "vit/kernels/self_check.h"
#include "vit/kernels/target_list.h"

namespace vit::internal::kernels {

#if HWY_TARGETS & HWY_AVX3
namespace N_AVX3 {
extern const TargetKernels kTarget;
extern const Arithmetic kFloat32, kBfloat16, kBfloat16Pairs, kBfloat16Amx, kInt8, kInt8Vnni, kInt8VnniBf16,
    kInt8Amx, kInt8Portable, kInt8VnniPortable;
}  // namespace N_AVX3
#endif
#if HWY_TARGETS & HWY_AVX2
namespace N_AVX2 {
extern const TargetKernels kTarget;
extern const Arithmetic kFloat32, kBfloat16, kInt8, kInt8Vnni, kInt8Portable, kInt8VnniPortable;
}  // namespace N_AVX2
#endif
#if HWY_TARGETS & HWY_SSE4
namespace N_SSE4 {
extern const TargetKernels kTarget;
extern const Arithmetic kFloat32, kBfloat16, kInt8;
}  // namespace N_SSE4
#endif
#if HWY_TARGETS & HWY_NEON
namespace N_NEON {
extern const TargetKernels kTarget;
extern const Arithmetic kFloat32, kBfloat16, kInt8, kInt8Portable;
#if HWY_ARCH_ARM_A64
extern const Arithmetic kInt8Dot, kInt8DotPortable, kBfloat16Mmla, kInt8Mmla;
#endif
}  // namespace N_NEON
#endif
#if HWY_TARGETS & HWY_BASELINE_SCALAR
namespace VIT_KERNELS_PORTABLE {
extern const TargetKernels kTarget;
extern const Arithmetic kFloat32, kBfloat16, kInt8;
}  // namespace VIT_KERNELS_PORTABLE
#endif

namespace {

struct Name {
  const char* name;
  const char* description;
};

[[maybe_unused]] CompiledTarget target(bool supported, Name name, const TargetKernels& shared,
                                       const Arithmetic& float32, const Arithmetic& bfloat16,
                                       const Arithmetic& int8, const Arithmetic* portable_bfloat16 = nullptr,
                                       const Arithmetic* portable_int8 = nullptr) {
  return {.table = {.name = name.name,
                    .description = name.description,
                    .is_portable = shared.fuses,
                    .layer_norm = shared.layer_norm,
                    .resample = shared.resample,
                    .maps = shared.maps,
                    .convolution = shared.convolution,
                    .float32 = &float32,
                    .bfloat16 = &bfloat16,
                    .int8 = &int8,
                    .portable_bfloat16 = portable_bfloat16,
                    .portable_int8 = portable_int8},
          .supported = supported,
          .multiply_adds = shared.multiply_adds};
}

#if HWY_TARGETS & HWY_AVX3
void add_avx512(std::vector<CompiledTarget>& found) {
  using namespace N_AVX3;
  const bool runs = cpu_has_avx512();
  const bool has_vnni = cpu_has_avx512_vnni();
#if VIT_ALL_KERNELS
  const Arithmetic* const portable_int8 = &kInt8VnniPortable;
#elif HWY_TARGETS & HWY_AVX2
  const Arithmetic* const portable_int8 = &N_AVX2::kInt8Portable;
#else
  const Arithmetic* const portable_int8 = nullptr;
#endif
#if VIT_ALL_KERNELS
  const bool has_bf16 = cpu_has_avx512_bf16();
  const bool has_tiles = has_bf16 && amx_support() == Amx::permitted;
  const bool tiles_are_right = has_tiles && products_are_right(*kBfloat16Amx.linear, *kInt8Amx.linear);
  found.push_back(target(tiles_are_right,
                         {"avx512_amx",
                          "AVX-512 with AMX: the same, on tiles; compiled and emulated, never run on "
                          "hardware yet"},
                         kTarget, kFloat32, kBfloat16Amx, kInt8Amx, &kBfloat16, &kInt8VnniPortable));
  // The table that is chosen instead says why tiles are not used: theirs is not listed then.
#define VIT_BF16_TABLE "AVX-512 with VNNI and BF16: the same, and products of pairs for bfloat16"
  const char* description = VIT_BF16_TABLE;
  if (amx_support() == Amx::refused)
    description = VIT_BF16_TABLE "; AMX is not used, the system refuses it (Linux grants it since 5.16)";
  if (has_tiles && !tiles_are_right)
    description = VIT_BF16_TABLE "; AMX is not used, its tiles failed a self-check";
#undef VIT_BF16_TABLE
  found.push_back(target(has_bf16, {"avx512_bf16", description}, kTarget, kFloat32, kBfloat16Pairs,
                         kInt8VnniBf16, &kBfloat16, &kInt8VnniPortable));
#endif
  found.push_back(target(has_vnni,
                         {"avx512_vnni", "AVX-512 with VNNI: the same, and its products of bytes for int8"},
                         kTarget, kFloat32, kBfloat16, kInt8Vnni, &kBfloat16, portable_int8));
#if VIT_ALL_KERNELS
  found.push_back(target(runs, {"avx512", "AVX-512 (F, VL, DQ, BW): 16 lanes"}, kTarget, kFloat32, kBfloat16,
                         kInt8, &kBfloat16, &kInt8Portable));
#endif
}
#endif

#if HWY_TARGETS & HWY_AVX2
void add_avx2(std::vector<CompiledTarget>& found) {
  using namespace N_AVX2;
  const bool runs = cpu_has_avx2();
#if VIT_ALL_KERNELS
  found.push_back(target(runs && cpu_has_avx_vnni(),
                         {"avx2_vnni", "AVX2 with AVX-VNNI: the same, and its products of bytes for int8"},
                         kTarget, kFloat32, kBfloat16, kInt8Vnni, &kBfloat16, &kInt8VnniPortable));
#endif
  found.push_back(target(runs, {"avx2", "AVX2 and FMA: 8 lanes"}, kTarget, kFloat32, kBfloat16, kInt8,
                         &kBfloat16, &kInt8Portable));
}
#endif

#if HWY_TARGETS & HWY_NEON
#define VIT_ONLY_EMULATED "; compiled and emulated, never run on hardware yet"
void add_neon(std::vector<CompiledTarget>& found) {
  using namespace N_NEON;
  const bool runs = cpu_has_neon();
#if HWY_ARCH_ARM_A64
  const bool has_matrices = runs && cpu_has_arm_matrices();
  const bool are_right = has_matrices && products_are_right(*kBfloat16Mmla.linear, *kInt8Mmla.linear);
  found.push_back(target(are_right,
                         {"neon_i8mm",
                          "NEON with BF16 and I8MM: the same, and products of two rows and two columns for "
                          "bfloat16 and int8" VIT_ONLY_EMULATED},
                         kTarget, kFloat32, kBfloat16Mmla, kInt8Mmla, &kBfloat16, &kInt8DotPortable));
  // As with AMX: the next table says why this one is missing.
  found.push_back(target(
      runs && cpu_has_arm_dot_product(),
      {"neon_dot", has_matrices && !are_right
                       ? "NEON with dot product: the same, and its products of bytes for int8; BF16 and I8MM "
                         "are not used, they failed a self-check" VIT_ONLY_EMULATED
                       : "NEON with dot product: the same, and its products of bytes for "
                         "int8" VIT_ONLY_EMULATED},
      kTarget, kFloat32, kBfloat16, kInt8Dot, &kBfloat16, &kInt8DotPortable));
#endif
  found.push_back(target(runs, {"neon", "NEON: 4 lanes" VIT_ONLY_EMULATED}, kTarget, kFloat32, kBfloat16,
                         kInt8, &kBfloat16, &kInt8Portable));
}
#undef VIT_ONLY_EMULATED
#endif

}  // namespace

const std::vector<CompiledTarget>& compiled_targets() {
  static const std::vector<CompiledTarget> targets = [] {
    std::vector<CompiledTarget> found;
#if HWY_TARGETS & HWY_AVX3
    add_avx512(found);
#endif
#if HWY_TARGETS & HWY_AVX2
    add_avx2(found);
#endif
#if HWY_TARGETS & HWY_SSE4
    found.push_back(target(cpu_has_sse4(), {"sse4", "SSE4.2: 4 lanes, no fused multiply-add"},
                           N_SSE4::kTarget, N_SSE4::kFloat32, N_SSE4::kBfloat16, N_SSE4::kInt8));
#endif
#if HWY_TARGETS & HWY_NEON
    add_neon(found);
#endif
#if HWY_TARGETS & HWY_BASELINE_SCALAR
#if VIT_ALL_KERNELS
    const Arithmetic &bfloat16 = VIT_KERNELS_PORTABLE::kBfloat16, &int8 = VIT_KERNELS_PORTABLE::kInt8;
#else
    const Arithmetic &bfloat16 = *reference_kernels().bfloat16, &int8 = *reference_kernels().int8;
#endif
    found.push_back(target(true, {"portable", "the compiler's baseline"}, VIT_KERNELS_PORTABLE::kTarget,
                           VIT_KERNELS_PORTABLE::kFloat32, bfloat16, int8));
#endif
    return found;
  }();
  return targets;
}

}  // namespace vit::internal::kernels
