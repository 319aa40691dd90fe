// The kernels for AVX2 and FMA; nothing where it is not among the targets.
#define VIT_KERNELS_TARGET HWY_AVX2
#include "vit/kernels/tables-inl.h"
