// Exponentials and partial loads on Highway vectors. Errors quoted
// are maxima over all floats of the range against double precision, in units of the last place (ulp).
#pragma once

#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using DI = hn::RebindToSigned<D>;
constexpr size_t kLanes = hn::MaxLanes(D());

HWY_INLINE V set(float value) {
  return hn::Set(D(), value);
}

/// The first `count` < kLanes numbers at `from`, `filler` in the other lanes. Reads nothing beyond them.
HWY_INLINE V load_first(const float* HWY_RESTRICT from, size_t count, float filler) {
  HWY_ALIGN float lanes[kLanes];
  for (size_t i = 0; i < kLanes; ++i) lanes[i] = i < count ? from[i] : filler;
  return hn::Load(D(), lanes);
}

/// Writes the first `count` < kLanes lanes.
HWY_INLINE void store_first(V value, size_t count, float* HWY_RESTRICT to) {
  HWY_ALIGN float lanes[kLanes];
  hn::Store(value, D(), lanes);
  for (size_t i = 0; i < count; ++i) to[i] = lanes[i];
}

/// The larger of the two; NaN stays NaN. Only the maximum instructions of x86 keep it.
HWY_INLINE V at_least(float bound, V x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  return hn::Max(set(bound), x);
#else
  return hn::IfThenElse(hn::Lt(x, set(bound)), set(bound), x);
#endif
}
HWY_INLINE V at_most(float bound, V x) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  return hn::Min(set(bound), x);
#else
  return hn::IfThenElse(hn::Gt(x, set(bound)), set(bound), x);
#endif
}

// exp(x) = 2^n exp(r), n = round(x / ln 2), |r| <= ln(2) / 2. ln 2 is split so that n * kLn2High is exact.
constexpr float kLog2E = 1.44269504f;
constexpr float kLn2High = 0.693145751953125f;
constexpr float kLn2Low = 1.42860677e-6f;

/// exp(r) for |r| <= ln(2) / 2: 1 + r + r^2 q(r), q minimax of degree 4 (truncation 0.05 ulp).
HWY_INLINE V exp_of_remainder(V r) {
  V q = hn::MulAdd(set(1.381461509e-3f), r, set(8.368710056e-3f));
  q = hn::MulAdd(q, r, set(4.166838899e-2f));
  q = hn::MulAdd(q, r, set(1.666652113e-1f));
  q = hn::MulAdd(q, r, set(4.999999404e-1f));
  return hn::Add(set(1.0f), hn::MulAdd(hn::Mul(r, r), q, r));
}

HWY_INLINE V power_of_two(hn::Vec<DI> n) {
  return hn::BitCast(D(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(DI(), 127))));
}

/// 1.5 * 2^23: adding it rounds to an integer, stored in the low bits of the sum.
constexpr float kRounder = 12582912.0f;

/// 2^x for x <= 0, 1 ulp; zero for anything below -126.5. NaN stays NaN.
/// 2^x = 2^n 2^r, |r| <= 1/2.
HWY_INLINE V exp2_of_negative(V x) {
  const V rounder = set(kRounder);
  const V clamped = at_least(-127.0f, x);
  const V shifted = hn::Add(clamped, rounder);
  const V r = hn::Sub(clamped, hn::Sub(shifted, rounder));
  const V r2 = hn::Mul(r, r);
  const V p01 = hn::MulAdd(set(6.931471825e-1f), r, set(1.0f));
  const V p23 = hn::MulAdd(set(5.550332367e-2f), r, set(2.402264774e-1f));
  const V p45 = hn::MulAdd(set(1.339887385e-3f), r, set(9.618436918e-3f));
  const V p456 = hn::MulAdd(set(1.535336924e-4f), r2, p45);
  const V p = hn::MulAdd(hn::MulAdd(p456, r2, p23), r2, p01);
  return hn::Mul(p, power_of_two(hn::BitCast(DI(), shifted)));
}

/// exp(x), 1 ulp; overflows to infinity, underflows through the subnormals to zero. NaN stays NaN.
HWY_INLINE V exp_of(V x) {
  const V clamped = at_most(89.0f, at_least(-104.0f, x));
  const hn::Vec<DI> n = hn::NearestInt(hn::Mul(clamped, set(kLog2E)));
  const V n_float = hn::ConvertTo(D(), n);
  const V r = hn::NegMulAdd(n_float, set(kLn2Low), hn::NegMulAdd(n_float, set(kLn2High), clamped));
  const hn::Vec<DI> half = hn::ShiftRight<1>(n);  // 2^n as two factors, both normal numbers
  return hn::Mul(hn::Mul(exp_of_remainder(r), power_of_two(half)), power_of_two(hn::Sub(n, half)));
}

#if HWY_TARGET == HWY_AVX3
/// The entries of a table of sixteen selected by the low four bits of `index`; other bits are ignored.
HWY_INLINE V look_up(const float (&table)[kLanes], hn::Vec<DI> index) {
  return V{_mm512_permutexvar_ps(index.raw, hn::Load(D(), table).raw)};
}
/// The entries of a table of 32 selected by the low five bits of `index`.
HWY_INLINE V look_up(const float (&table)[2 * kLanes], hn::Vec<DI> index) {
  const V lower = hn::Load(D(), table), upper = hn::Load(D(), table + kLanes);
  return V{_mm512_permutex2var_ps(lower.raw, index.raw, upper.raw)};
}
HWY_INLINE hn::Vec<DI> look_up(const int32_t (&table)[2 * kLanes], hn::Vec<DI> index) {
  const hn::Vec<DI> lower = hn::Load(DI(), table), upper = hn::Load(DI(), table + kLanes);
  return hn::Vec<DI>{_mm512_permutex2var_epi32(lower.raw, index.raw, upper.raw)};
}

/// 2^x for x <= 0, at least 2^-126, for weights that are rounded next. Relative error up to 2e-7 with kDegree
/// 2, and with kDegree 1, for bfloat16, up to 3e-5 to both sides; 1 at 0, after rounding. NaN stays NaN.
/// 2^x = 2^n 2^(i/32) 2^r, |r| <= 1/64, and 2^r a polynomial in r.
template <int kDegree>
HWY_INLINE V coarse_exp2_of_negative(V x) {
  // 2^(i/32) minus i at the position of the shift below, above the 18 lower bits.
  alignas(64) static constexpr int32_t kPowers[32] = {
      0x3F800000, 0x3F7ECD87, 0x3F7DAAC3, 0x3F7C980F, 0x3F7B95C2, 0x3F7AA43A, 0x3F79C3D3, 0x3F78F4F0,
      0x3F7837F0, 0x3F778D3A, 0x3F76F532, 0x3F767043, 0x3F75FED7, 0x3F75A15B, 0x3F75583F, 0x3F7523F6,
      0x3F7504F3, 0x3F74FBAF, 0x3F7508A4, 0x3F752C4D, 0x3F75672A, 0x3F75B9BE, 0x3F76248C, 0x3F76A81E,
      0x3F7744FD, 0x3F77FBB8, 0x3F78CCDF, 0x3F79B907, 0x3F7AC0C7, 0x3F7BE4BA, 0x3F7D257D, 0x3F7E83B3};
  const V rounder = set(kRounder / 32);  // to parts of 32
  const V clamped = at_least(-126.0f, x);
  const V shifted = hn::Add(clamped, rounder);
  const V r = hn::Sub(clamped, hn::Sub(shifted, rounder));
  const V slope =
      kDegree == 1 ? set(6.931471825e-1f) : hn::MulAdd(set(2.402264774e-1f), r, set(6.931573451e-1f));
  const V p = hn::MulAdd(slope, r, set(kDegree == 1 ? 1.0000294f : 1.0f));
  const hn::Vec<DI> parts = hn::BitCast(DI(), shifted);
  const hn::Vec<DI> power = look_up(kPowers, parts);
  return hn::Mul(p, hn::BitCast(D(), hn::Add(power, hn::ShiftLeft<18>(parts))));
}
#else
/// Without such tables in registers the exact version is as fast.
template <int>
HWY_INLINE V coarse_exp2_of_negative(V x) {
  return exp2_of_negative(x);
}
#endif

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
