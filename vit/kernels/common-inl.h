// Common to all instruction sets: the rows of their tables and the arithmetics that need no extension.
#pragma once

#include "vit/kernels/attention-inl.h"
#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/convolution-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8-inl.h"
#include "vit/kernels/maps-inl.h"
#include "vit/kernels/resample-inl.h"
#include "vit/kernels/rows-inl.h"
#include "vit/kernels/targets.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {

extern const TargetKernels kTarget;
constexpr TargetKernels kTarget{.fuses = HWY_NATIVE_FMA != 0,
                                .layer_norm = layer_norm,
                                .resample = {.columns_rgb = resample_columns_rgb, .rows = resample_rows},
                                .maps = {.blend = blend, .interpolate = interpolate},
                                .convolution = winograd::kKernels,
                                .multiply_adds = multiply_adds};

extern const LinearKernels kFloat32Linear;
constexpr LinearKernels kFloat32Linear = kFloatLinear;

extern const Arithmetic kFloat32;
constexpr Arithmetic kFloat32{
    .linear = &kFloat32Linear, .attention = kAttention<FloatOperands>, .fine = &kFloat32Linear};

#if VIT_ALL_KERNELS || HWY_TARGET != HWY_BASELINE_SCALAR
extern const Arithmetic kBfloat16;
constexpr Arithmetic kBfloat16{.linear = &bf16::kLinear<bf16::ColumnLines>,
                               .attention = kAttention<FloatOperands>,
                               .fine = &kFloat32Linear};
#endif

#if VIT_ALL_KERNELS || (HWY_TARGET != HWY_BASELINE_SCALAR && HWY_TARGET != HWY_AVX3)
extern const Arithmetic kInt8;
constexpr Arithmetic kInt8{.linear = &int8::kLinear<int8::DefaultInt8>,
                           .attention = kAttention<int8::DefaultOperands>,
                           .fine = &kFloat32Linear};
#endif

// Of instruction sets that fuse; of AVX-512 in a small library that with VNNI.
#if HWY_NATIVE_FMA && (VIT_ALL_KERNELS || HWY_TARGET != HWY_AVX3)
extern const Arithmetic kInt8Portable;
constexpr Arithmetic kInt8Portable{.linear = &int8::kLinear<int8::PortableInt8>,
                                   .attention = kAttention<int8::PortableOperands<int8::Pairs>>,
                                   .fine = &kFloat32Linear};
#endif

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
