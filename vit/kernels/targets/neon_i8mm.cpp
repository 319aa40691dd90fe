// bfloat16 and int8 for processors with BF16 and I8MM; the rest of their table is in neon.cpp.
#define VIT_KERNELS_TARGET HWY_NEON
#include "vit/kernels/target-inl.h"

#if (HWY_TARGETS & VIT_KERNELS_TARGET) && HWY_ARCH_ARM_A64
#include "vit/kernels/attention-mmla-inl.h"
#include "vit/kernels/mmla-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {

extern const LinearKernels kFloat32Linear;
constexpr const LinearKernels* kMmlaBf16Linear = &mmla::kBf16Linear;
constexpr AttentionKernels kMmlaAttention = kAttention<mmla::TileOperands>;

extern const Arithmetic kBfloat16Mmla, kInt8Mmla;
constexpr Arithmetic kBfloat16Mmla{
    .linear = kMmlaBf16Linear, .attention = kMmlaAttention, .fine = &kFloat32Linear};
constexpr Arithmetic kInt8Mmla{
    .linear = &mmla::kInt8Linear, .attention = kMmlaAttention, .fine = kMmlaBf16Linear};

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
