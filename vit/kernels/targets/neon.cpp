// The kernels for NEON; nothing where it is not among the targets.
#define VIT_KERNELS_TARGET HWY_NEON
#include "vit/kernels/tables-inl.h"
