// Linear interpolation of maps, in whole vectors of channels.
#pragma once

#include "vit/kernels/maps.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

/// out = a * (1 - weight) + b * weight for `count` numbers.
HWY_INLINE void blend_numbers(const float* a, const float* b, V near, V far, size_t count, float* out) {
  const D d;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes)
    hn::StoreU(hn::MulAdd(hn::LoadU(d, b + i), far, hn::Mul(hn::LoadU(d, a + i), near)), d, out + i);
  if (i == count) return;
  const size_t rest = count - i;
  const V first = hn::Mul(load_first(a + i, rest, 0.0f), near);
  store_first(hn::MulAdd(load_first(b + i, rest, 0.0f), far, first), rest, out + i);
}

inline void blend(const BlendArgs& args) noexcept {
  blend_numbers(args.a, args.b, set(1.0f - args.weight), set(args.weight), args.count, args.out);
}

inline void interpolate(const InterpolateArgs& args) noexcept {
  const size_t channels = args.channels;
  for (size_t i = 0; i < args.pixels; ++i) {
    const float weight = args.weight[i];
    blend_numbers(args.in + args.first[i] * channels, args.in + args.second[i] * channels, set(1.0f - weight),
                  set(weight), channels, args.out + i * channels);
  }
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
