// The kernels for NEON; empty if it is not among the targets.
#define VIT_KERNELS_TARGET HWY_NEON
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/common-inl.h"

#if HWY_ARCH_ARM_A64
HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {

extern const LinearKernels kInt8DotLinear, kInt8DotPortableLinear;  // in neon_dot.cpp
extern const Arithmetic kInt8Dot, kInt8DotPortable;
constexpr Arithmetic kInt8DotPortable{
    .linear = &kInt8DotPortableLinear, .attention = kInt8Portable.attention, .fine = &kFloat32Linear};
constexpr Arithmetic kInt8Dot{
    .linear = &kInt8DotLinear, .attention = kFloat32.attention, .fine = &kFloat32Linear};

}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif
