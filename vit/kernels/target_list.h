// The instruction sets for which kernels are compiled: HWY_TARGETS, as determined by Highway for this
// architecture and compiler.
#pragma once

// Not worth a separate copy: SSSE3 next to SSE4, scalable vectors. Ice Lake's extensions do not include VNNI
// of AVX-512 in Highway 1.0; it, that of AVX, and BF16 are detected at run time.
#define VIT_NO_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
// Few (-DVIT_SLIM=ON): of x86 AVX2, AVX-512 with VNNI, which has no other products of bytes, and the
// baseline, whose bfloat16 and int8 are the reference's.
#ifdef VIT_FEW_KERNELS
#define HWY_DISABLED_TARGETS (VIT_NO_TARGETS | HWY_SSE4)
#define VIT_ALL_KERNELS 0
#else
#define HWY_DISABLED_TARGETS VIT_NO_TARGETS
#define VIT_ALL_KERNELS 1
#endif

#include "hwy/targets.h"

// The namespace of HWY_BASELINE_SCALAR, which is one of these two.
#if HWY_BROKEN_EMU128 || defined(HWY_COMPILE_ONLY_SCALAR)
#define VIT_KERNELS_PORTABLE N_SCALAR
#else
#define VIT_KERNELS_PORTABLE N_EMU128
#endif
