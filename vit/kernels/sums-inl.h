// Sums across a row, by one tree whatever the register: column c counts in lane c % 16 of sixteen partial
// sums, which are added in halves at the end (lane i and i + 8, then i and i + 4, ...). With this, and
// products that are fused in order (tile-inl.h), float32 results have the same bits on every instruction set
// that fuses.
#pragma once

#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

constexpr size_t kSumLanes = 16;
static_assert(kLanes <= kSumLanes);

/// kVectors registers as one. Nested pairs: compilers keep an array of vectors in memory.
template <size_t kVectors>
struct Registers {
  Registers<kVectors / 2> lower, upper;
};
template <>
struct Registers<1> {
  V v;
};
/// Sixteen numbers.
using Sixteen = Registers<kSumLanes / kLanes>;

/// The result of `op` on each register of its operands.
template <class Op, class... Others>
HWY_INLINE Registers<1> each(const Op& op, Registers<1> a, Others... others) {
  return {op(a.v, others.v...)};
}
template <class Op, size_t kVectors, class... Others>
HWY_INLINE Registers<kVectors> each(const Op& op, Registers<kVectors> a, Others... others) {
  return {each(op, a.lower, others.lower...), each(op, a.upper, others.upper...)};
}

HWY_INLINE void fill(float value, Registers<1>& to) {
  to.v = set(value);
}
template <size_t kVectors>
HWY_INLINE void fill(float value, Registers<kVectors>& to) {
  fill(value, to.lower);
  fill(value, to.upper);
}
HWY_INLINE Sixteen zeros() {
  Sixteen out;
  fill(0.0f, out);
  return out;
}

HWY_INLINE void load(const float* HWY_RESTRICT from, Registers<1>& to) {
  to.v = hn::LoadU(D(), from);
}
template <size_t kVectors>
HWY_INLINE void load(const float* HWY_RESTRICT from, Registers<kVectors>& to) {
  load(from, to.lower);
  load(from + kVectors / 2 * kLanes, to.upper);
}

/// The first `count` of sixteen numbers, `filler` in place of the others. Reads nothing beyond them.
HWY_INLINE Sixteen load_sixteen(const float* HWY_RESTRICT from, size_t count, float filler) {
  Sixteen out;
  if (count >= kSumLanes) {
    load(from, out);
    return out;
  }
  HWY_ALIGN float lanes[kSumLanes];
  for (size_t i = 0; i < kSumLanes; ++i) lanes[i] = i < count ? from[i] : filler;
  load(lanes, out);
  return out;
}

HWY_INLINE Sixteen add(Sixteen a, Sixteen b) {
  return each([](V x, V y) HWY_ATTR { return hn::Add(x, y); }, a, b);
}

HWY_INLINE float sum_of(Registers<1> a) {
  if constexpr (kLanes == kSumLanes) return hn::GetLane(hn::SumOfLanes(D(), a.v));  // in halves, too
  HWY_ALIGN float lanes[kLanes];
  hn::Store(a.v, D(), lanes);
  for (size_t half = kLanes / 2; half > 0; half /= 2) {
    for (size_t i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}
template <size_t kVectors>
HWY_INLINE float sum_of(Registers<kVectors> a) {
  return sum_of(each([](V x, V y) HWY_ATTR { return hn::Add(x, y); }, a.lower, a.upper));
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
