// bfloat16 for AVX-512 with BF16, and attention of int8 with it; the rest of its table is in avx512.cpp and
// avx512_vnni.cpp.
#define VIT_KERNELS_TARGET HWY_AVX3
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/attention-inl.h"
#include "vit/kernels/bf16-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {

extern const LinearKernels kFloat32Linear, kInt8VnniLinear;
constexpr const LinearKernels* kPairs = &bf16::kLinear<bf16::PairLines>;

extern const Arithmetic kBfloat16Pairs, kInt8VnniBf16;
constexpr Arithmetic kBfloat16Pairs{
    .linear = kPairs, .attention = kAttention<PairOperands>, .fine = &kFloat32Linear};
constexpr Arithmetic kInt8VnniBf16{.linear = &kInt8VnniLinear,
                                   .attention = kAttention<Operands<PairKeys, int8::Int8Values>>,
                                   .fine = kPairs};

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
