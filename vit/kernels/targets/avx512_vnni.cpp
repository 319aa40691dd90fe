// int8 for AVX-512 with VNNI; the rest of its table is in avx512.cpp.
#define VIT_KERNELS_TARGET HWY_AVX3
#include "vit/kernels/target-inl.h"

#if HWY_TARGETS & VIT_KERNELS_TARGET
#include "vit/kernels/vnni-inl.h"
#endif
