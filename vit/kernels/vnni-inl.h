// The int8 arithmetic of a target with VNNI, for AVX2 and for AVX-512: the including file has set
// the target, whose other arithmetic is in a separate file.
#pragma once

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

#if VIT_ALL_KERNELS  // a small library takes that of AVX2, which has the same bits
extern const Arithmetic kInt8VnniPortable;
constexpr Arithmetic kInt8VnniPortable{.linear = &int8::kLinear<int8::PortableVnniBytes>,
                                       .attention = kAttention<int8::PortableOperands<int8::VnniPairs>>,
                                       .fine = &kFloat32Linear};
#endif

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
