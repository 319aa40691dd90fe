// The kernel tables of one instruction set; targets/*.cpp compile them.
#pragma once

#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET

#include "vit/kernels/attention-inl.h"
#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8-inl.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/resample-inl.h"
#include "vit/kernels/rotate-inl.h"
#include "vit/kernels/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {

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
    .resample = {.columns_rgb = resample_columns_rgb, .rows = resample_rows},
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

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGETS
