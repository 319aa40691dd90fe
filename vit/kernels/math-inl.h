// Exponential, activations and partial loads on Highway vectors. Compiled once for each instruction set.
// Errors quoted are maxima over all floats of the range against double precision, in units of the last place
// (ulp).
#if defined(VIT_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_MATH_INL_H_
#undef VIT_KERNELS_MATH_INL_H_
#else
#define VIT_KERNELS_MATH_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/base/activation.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {
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

/// What an activation is good for: full keeps nearly all digits of a float32; coarse is for numbers that are
/// rounded to bfloat16 or 8 bits next, and loses little among what that loses.
enum class Precision { full, coarse };

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

/// exp(x) for x <= 0, 1 ulp; exp(-87.3) = 1.2e-38 for anything smaller. NaN stays NaN.
HWY_INLINE V exp_of_negative(V x) {
  const V clamped = hn::Max(set(-87.3f), x);
  const hn::Vec<DI> n = hn::NearestInt(hn::Mul(clamped, set(kLog2E)));
  const V n_float = hn::ConvertTo(D(), n);
  const V r = hn::NegMulAdd(n_float, set(kLn2Low), hn::NegMulAdd(n_float, set(kLn2High), clamped));
  return hn::Mul(exp_of_remainder(r), power_of_two(n));
}

/// 1.5 * 2^23: adding it rounds to an integer, which the low bits of the sum then hold.
constexpr float kRounder = 12582912.0f;

/// 2^x for x <= 0, 1 ulp; zero for anything below -126.5. NaN stays NaN.
/// 2^x = 2^n 2^r, |r| <= 1/2.
HWY_INLINE V exp2_of_negative(V x) {
  const V rounder = set(kRounder);
  const V clamped = hn::Max(set(-127.0f), x);
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
  const V clamped = hn::Min(set(89.0f), hn::Max(set(-104.0f), x));
  const hn::Vec<DI> n = hn::NearestInt(hn::Mul(clamped, set(kLog2E)));
  const V n_float = hn::ConvertTo(D(), n);
  const V r = hn::NegMulAdd(n_float, set(kLn2Low), hn::NegMulAdd(n_float, set(kLn2High), clamped));
  const hn::Vec<DI> half = hn::ShiftRight<1>(n);  // 2^n in two factors, either of them a normal number
  return hn::Mul(hn::Mul(exp_of_remainder(r), power_of_two(half)), power_of_two(hn::Sub(n, half)));
}

/// max(x, 0), which keeps NaN: Max may drop it.
HWY_INLINE V ramp(V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(D())), x);
}

/// x Phi(x), the exact GELU, off by at most 1e-7 |x|, as x (1 + erf(x / sqrt(2))) / 2 is in float. The tail
/// keeps its digits longer: 9 ulp for x > -2, 30 ulp for x > -4; zero below -13.
///   x Phi(x) = max(x, 0) - t Phi(-t),  t = |x|,   Phi(-t) = 2^p(t)
/// The logarithm of Phi(-t) is so smooth that a polynomial meets it: p(0) = -1 is exact, the rest minimax in
/// the error of Phi(-t) relative to exp(-0.2 t^2) for t <= 9, and falls to the end of the range.
HWY_INLINE V gelu(V x) {
  const V t = hn::Min(set(16.0f), hn::Abs(x));
  // In pairs, which makes the chain of dependent instructions short; one by one at the end, for the rounding.
  const V t2 = hn::Mul(t, t), t4 = hn::Mul(t2, t2);
  const V p23 = hn::MulAdd(set(-5.244593944e-2f), t, set(-4.592178883e-1f));
  const V p45 = hn::MulAdd(set(1.055932221e-5f), t, set(6.945021766e-3f));
  const V p67 = hn::MulAdd(set(8.113789757e-5f), t, set(-2.899225250e-4f));
  const V p89 = hn::MulAdd(set(9.953120265e-7f), t, set(-1.209022683e-5f));
  const V p8 = hn::MulAdd(set(-3.544964294e-8f), t2, p89);
  const V p2 = hn::MulAdd(hn::MulAdd(p8, t2, p67), t4, hn::MulAdd(p45, t2, p23));
  const V p = hn::MulAdd(hn::MulAdd(p2, t, set(-1.151104621e+0f)), t, set(-1.0f));
  return hn::NegMulAdd(t, exp2_of_negative(p), ramp(x));
}

/// gelu, off by at most 9e-5 and a rounding: Phi(t) - 1/2 as an odd polynomial, minimax in the error of t
/// Phi(t) for t <= 4.145, where it meets 1/2.
HWY_INLINE V coarse_gelu(V x) {
  const V t = hn::Min(set(4.145f), hn::Abs(x));
  const V t2 = hn::Mul(t, t);
  V p = hn::MulAdd(set(-9.376008160e-10f), t2, set(8.176071340e-8f));
  p = hn::MulAdd(p, t2, set(-3.099768730e-6f));
  p = hn::MulAdd(p, t2, set(6.772825570e-5f));
  p = hn::MulAdd(p, t2, set(-9.568325520e-4f));
  p = hn::MulAdd(p, t2, set(9.322293420e-3f));
  p = hn::MulAdd(p, t2, set(-6.557201210e-2f));
  p = hn::MulAdd(p, t2, set(3.984923400e-1f));
  return hn::NegMulAdd(t, hn::NegMulAdd(t, p, set(0.5f)), ramp(x));
}

/// x / (1 + exp(-y)): x times the logistic function of y.
HWY_INLINE V times_sigmoid(V x, V y) {
  return hn::Div(x, hn::Add(set(1.0f), exp_of(hn::Neg(y))));
}

/// gelu_tanh through 0.5 (1 + tanh z) = sigmoid(2 z).
HWY_INLINE V gelu_tanh(V x) {
  constexpr float kTwiceSqrt2OverPi = 1.5957691216f;
  const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), set(0.044715f), x);
  return times_sigmoid(x, hn::Mul(cubic, set(kTwiceSqrt2OverPi)));
}

template <Precision kPrecision, Activation kActivation>
HWY_INLINE V activated(V x) {
  if constexpr (kActivation == Activation::gelu)
    return kPrecision == Precision::full ? gelu(x) : coarse_gelu(x);
  if constexpr (kActivation == Activation::gelu_tanh) return gelu_tanh(x);
  if constexpr (kActivation == Activation::quick_gelu) return times_sigmoid(x, hn::Mul(x, set(1.702f)));
  if constexpr (kActivation == Activation::silu) return times_sigmoid(x, x);
  if constexpr (kActivation == Activation::relu) return hn::Max(set(0.0f), x);
  return x;
}

}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_MATH_INL_H_
