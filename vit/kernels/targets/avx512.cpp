// The kernels for AVX-512; empty if it is not among the targets.
#define VIT_KERNELS_TARGET HWY_AVX3
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/common-inl.h"
#endif
