// Highway for one instruction set, given by the including file in VIT_KERNELS_TARGET. A file for
// each lets them compile in parallel.
//
// Code between HWY_BEFORE_NAMESPACE and HWY_AFTER_NAMESPACE has internal linkage and uses nothing of the
// standard library, so that no inline function compiled for a newer machine can replace the common one
// at link time.
#pragma once

#ifndef VIT_KERNELS_TARGET
#error "VIT_KERNELS_TARGET must name one of Highway's targets"
#endif

#include "vit/kernels/target_list.h"

// As foreach_target.h does for each of its targets.
#if HWY_TARGETS & VIT_KERNELS_TARGET
#undef HWY_TARGET
#define HWY_TARGET VIT_KERNELS_TARGET
#include "hwy/highway.h"
#endif
