// Compiles the kernels once for each instruction set that Highway knows for this architecture, and lists the
// tables. Code between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE has internal linkage and uses nothing of
// the standard library, so that no inline function compiled for a newer machine can stand in for the common
// one at link time.

// Not worth a copy of their own: SSSE3 beside SSE4, scalable vectors. Ice Lake's extensions do not name VNNI
// of AVX-512 in Highway 1.0; it, that of AVX, and BF16 are asked for below.
#define HWY_DISABLED_TARGETS \
  (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)

#include <vector>

#include "vit/kernels/cpu_info.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vit/kernels/targets.cpp"
#include "hwy/foreach_target.h"
// Highway's own header must follow foreach_target.h.
#include "hwy/highway.h"
#include "vit/kernels/attention-inl.h"
#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8-inl.h"
#include "vit/kernels/rotate-inl.h"
#include "vit/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {

#if HWY_TARGET == HWY_AVX3
constexpr const char* kName = "avx512";
constexpr const char* kDescription = "AVX-512 (F, VL, DQ, BW): 16 lanes";
#elif HWY_TARGET == HWY_AVX2
constexpr const char* kName = "avx2";
constexpr const char* kDescription = "AVX2 and FMA: 8 lanes";
#elif HWY_TARGET == HWY_SSE4
constexpr const char* kName = "sse4";
constexpr const char* kDescription = "SSE4.2: 4 lanes, no fused multiply-add";
#elif HWY_TARGET == HWY_NEON
constexpr const char* kName = "neon";
constexpr const char* kDescription = "NEON: 4 lanes";
#else
constexpr const char* kName = "portable";
constexpr const char* kDescription = "the compiler's baseline";
#endif

extern const KernelTable kTable;
constexpr KernelTable kTable{
    .name = kName,
    .description = kDescription,
    .panel_columns = kPanel,
    .tile_rows = kTileRows,
    .pack_weight = pack_weight,
    .gemm = gemm<FloatLines>,
    .bf16 = &bf16::kKernels<bf16::ColumnLines>,
    .int8 = &int8::kKernels<int8::Usual>,
    .layer_norm = layer_norm,
    .softmax = softmax,
    .activate = activate,
    .add = add,
    .rotate = rotate,
    .attention_packed_floats = attention_packed_floats,
    .attention_scratch_floats = attention_scratch_floats,
    .attention = kAttention<FloatOperands>,
    .bf16_attention = kAttention<FloatOperands>,
    .int8_attention = kAttention<int8::UsualOperands>,
    .multiply_adds = multiply_adds,
};

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
extern const KernelTable kVnniTable;
constexpr KernelTable kVnniTable = [] {
  KernelTable table = kTable;
#if HWY_TARGET == HWY_AVX3
  table.name = "avx512_vnni";
  table.description = "AVX-512 with VNNI: the same, and its products of bytes for int8";
#else
  table.name = "avx2_vnni";
  table.description = "AVX2 with AVX-VNNI: the same, and its products of bytes for int8";
#endif
  table.int8 = &int8::kKernels<int8::VnniBytes>;
  table.int8_attention = kAttention<Operands<int8::WordKeys<int8::VnniPairs>, int8::ByteValues>>;
  return table;
}();
#endif

#if HWY_TARGET == HWY_AVX3
extern const KernelTable kBf16Table;
constexpr KernelTable kBf16Table = [] {
  KernelTable table = kVnniTable;
  table.name = "avx512_bf16";
  table.description = "AVX-512 with VNNI and BF16: the same, and products of pairs for bfloat16";
  table.bf16 = &bf16::kKernels<bf16::PairLines>;
  table.bf16_attention = kAttention<PairOperands>;
  table.int8_attention = kAttention<Operands<PairKeys, int8::ByteValues>>;
  return table;
}();
#endif

}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace vit::kernels {

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

}  // namespace vit::kernels
#endif  // HWY_ONCE
