// The kernels for the compiler's baseline; nothing where it is not among the targets.
#define VIT_KERNELS_TARGET HWY_BASELINE_SCALAR
#include "vit/kernels/tables-inl.h"
