// int8 for AVX2 with AVX-VNNI; the rest of its table is in avx2.cpp.
#define VIT_KERNELS_TARGET HWY_AVX2
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/vnni-inl.h"
#endif
