// bfloat16 and int8 for processors with AMX; the rest of their table is in avx512.cpp.
#define VIT_KERNELS_TARGET HWY_AVX3
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/amx-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {

extern const LinearKernels kFloat32Linear;
constexpr const LinearKernels* kAmxBf16Linear = &amx::kBf16Linear;

extern const Arithmetic kBfloat16Amx, kInt8Amx;
constexpr Arithmetic kBfloat16Amx{
    .linear = kAmxBf16Linear, .attention = amx::kTileAttention, .fine = &kFloat32Linear};
constexpr Arithmetic kInt8Amx{
    .linear = &amx::kInt8Linear, .attention = amx::kTileAttention, .fine = kAmxBf16Linear};

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
