// The kernels for AVX-512; nothing where it is not among the targets.
#define VIT_KERNELS_TARGET HWY_AVX3
#include "vit/kernels/tables-inl.h"
