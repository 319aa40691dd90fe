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

/// Registers of a value, and of memory. Returned whole: constructors without arguments, which the compiler
/// makes, would not be compiled for the instruction set.
template <size_t kVectors>
struct MakeRegisters {
  static HWY_INLINE Registers<kVectors> of(float value) {
    return {MakeRegisters<kVectors / 2>::of(value), MakeRegisters<kVectors / 2>::of(value)};
  }
  static HWY_INLINE Registers<kVectors> load(const float* HWY_RESTRICT from) {
    return {MakeRegisters<kVectors / 2>::load(from),
            MakeRegisters<kVectors / 2>::load(from + kVectors / 2 * kLanes)};
  }
};
template <>
struct MakeRegisters<1> {
  static HWY_INLINE Registers<1> of(float value) { return {set(value)}; }
  static HWY_INLINE Registers<1> load(const float* HWY_RESTRICT from) { return {hn::LoadU(D(), from)}; }
};
using MakeSixteen = MakeRegisters<kSumLanes / kLanes>;

HWY_INLINE Sixteen zeros() {
  return MakeSixteen::of(0.0f);
}

/// The first `count` of sixteen numbers, `filler` in place of the others. Reads nothing beyond them.
HWY_INLINE Sixteen load_sixteen(const float* HWY_RESTRICT from, size_t count, float filler) {
  if (count >= kSumLanes) return MakeSixteen::load(from);
  HWY_ALIGN float lanes[kSumLanes];
  for (size_t i = 0; i < kSumLanes; ++i) lanes[i] = i < count ? from[i] : filler;
  return MakeSixteen::load(lanes);
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
