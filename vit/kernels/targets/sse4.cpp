// The kernels for SSE4.2; nothing where it is not among the targets.
#define VIT_KERNELS_TARGET HWY_SSE4
#include "vit/kernels/tables-inl.h"
