// int8 for AVX2 with AVX-VNNI; the rest of its table is avx2.cpp.
#define VIT_KERNELS_TARGET HWY_AVX2
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/attention-inl.h"
#include "vit/kernels/int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {

extern const LinearKernels kFloat32Linear, kInt8VnniLinear;
constexpr LinearKernels kInt8VnniLinear = int8::kLinear<int8::VnniBytes>;

extern const Arithmetic kInt8Vnni;
constexpr Arithmetic kInt8Vnni{
    .linear = &kInt8VnniLinear,
    .attention = kAttention<Operands<int8::Int16Keys<int8::VnniPairs>, int8::Int8Values>>,
    .fine = &kFloat32Linear};

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
