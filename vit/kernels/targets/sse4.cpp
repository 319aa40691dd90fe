// The kernels for SSE4.2; empty if it is not among the targets.
#define VIT_KERNELS_TARGET HWY_SSE4
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/common-inl.h"
#endif
