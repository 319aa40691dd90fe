// Activations on Highway vectors.
#pragma once

#include "vit/base/choices.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

/// Accuracy of an activation: full keeps nearly all digits of a float32; coarse is for numbers that are
/// rounded to bfloat16 or 8 bits next, with errors small compared to that rounding.
enum class Accuracy { full, coarse, portable };

/// max(x, 0), which keeps NaN: Max may drop it.
HWY_INLINE V ramp(V x) {
  return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(D())), x);
}

/// x Phi(x), the exact GELU, error at most 1e-7 |x|, like x (1 + erf(x / sqrt(2))) / 2 in float. The tail
/// is more precise: 9 ulp for x > -2, 30 ulp for x > -4; zero below -13.
///   x Phi(x) = max(x, 0) - t Phi(-t),  t = |x|,   Phi(-t) = 2^p(t)
/// The logarithm of Phi(-t) is smooth enough for one polynomial: p(0) = -1 is exact, the rest minimax in
/// the error of Phi(-t) relative to exp(-0.2 t^2) for t <= 9, and falls to the end of the range.
HWY_INLINE V gelu(V x) {
  const V t = hn::Min(set(16.0f), hn::Abs(x));
  // In pairs, which shortens the chain of dependent instructions; one by one at the end, for the rounding.
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

#if HWY_TARGET == HWY_AVX3
/// Sixteen or 32 parabolas side by side, each `width` wide: c0[i] + c1[i] t + c2[i] t^2 for t from i width to
/// (i + 1) width.
template <size_t kCount>
HWY_INLINE V parabolas(V t, float width, const float (&c0)[kCount], const float (&c1)[kCount],
                       const float (&c2)[kCount]) {
  // 8 + t / (4 width): between 8 and 16 the uppermost bits of a float count quarters.
  const V quarters = hn::MulAdd(t, set(0.25f / width), set(8.0f));
  const hn::Vec<DI> index = hn::ShiftRight<18>(hn::BitCast(DI(), quarters));
  const V slope = hn::MulAdd(look_up(c2, index), t, look_up(c1, index));
  return hn::MulAdd(slope, t, look_up(c0, index));
}

/// gelu, error at most 5e-5 plus rounding: Phi(-t) as sixteen parabolas side by side, each minimax in the
/// error of t Phi(-t); the last one ends in zero at kEnd.
HWY_INLINE V coarse_gelu(V x) {
  constexpr float kWidth = 17.0f / 64, kEnd = 543.0f / 128;
  alignas(64) static constexpr float kC0[16] = {
      5.000000000e-1f, 5.034855604e-1f, 5.123755336e-1f, 5.206303596e-1f, 5.157473087e-1f, 4.862735569e-1f,
      4.287601709e-1f, 3.498451710e-1f, 2.627599537e-1f, 1.812745929e-1f, 1.148260236e-1f, 6.681671739e-2f,
      3.574886173e-2f, 1.760458201e-2f, 7.987955585e-3f, 7.504709065e-4f};
  alignas(64) static constexpr float kC1[16] = {
      -4.015902579e-1f, -4.269683957e-1f, -4.605930448e-1f, -4.819354415e-1f,
      -4.734228253e-1f, -4.295393825e-1f, -3.576116860e-1f, -2.727525532e-1f,
      -1.906779706e-1f, -1.223454773e-1f, -7.216170430e-2f, -3.918470442e-2f,
      -1.961636357e-2f, -9.064503014e-3f, -3.870400367e-3f, -1.769065857e-4f};
  alignas(64) static constexpr float kC2[16] = {
      2.712189592e-2f, 7.420404255e-2f, 1.061512381e-1f, 1.199633256e-1f, 1.162714958e-1f, 9.992551059e-2f,
      7.742429525e-2f, 5.460200831e-2f, 3.525775671e-2f, 2.092851326e-2f, 1.145158987e-2f, 5.787805654e-3f,
      2.706079511e-3f, 1.171794604e-3f, 4.703748855e-4f, 0.000000000e+0f};
  const V t = hn::Min(set(kEnd), hn::Abs(x));
  return hn::NegMulAdd(t, parabolas(t, kWidth, kC0, kC1, kC2), ramp(x));
}
#endif

/// gelu, error at most 9e-5 plus rounding: Phi(t) - 1/2 as an odd polynomial, minimax in the error of t
/// Phi(t) for t <= 4.145, where it reaches 1/2.
HWY_INLINE V polynomial_gelu(V x) {
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
#if HWY_TARGET != HWY_AVX3
HWY_INLINE V coarse_gelu(V x) {
  return polynomial_gelu(x);
}
#endif

#if HWY_TARGET == HWY_AVX3
/// x times the logistic function s of y, which has the sign of x and at least its magnitude; error at most
/// 4e-5 plus rounding.
///   x s(y) = max(x, 0) - |x| s(-t),  t = |y|,   s(-t) as 32 parabolas, minimax in the error of t s(-t)
/// The last one ends in zero at kEnd.
HWY_INLINE V coarse_times_sigmoid(V x, V y) {
  constexpr float kWidth = 13.0f / 32, kEnd = 1651.0f / 128;
  alignas(64) static constexpr float kC0[32] = {
      5.000000000e-1f, 5.035794377e-1f, 5.109276175e-1f, 5.134356022e-1f, 5.005128384e-1f, 4.678880870e-1f,
      4.188289940e-1f, 3.605512083e-1f, 3.003616035e-1f, 2.436347157e-1f, 1.934351325e-1f, 1.509606689e-1f,
      1.161839887e-1f, 8.840404451e-2f, 6.663069874e-2f, 4.981873930e-2f, 3.699333593e-2f, 2.730590291e-2f,
      2.004946209e-2f, 1.465256698e-2f, 1.066342089e-2f, 7.730794139e-3f, 5.585251376e-3f, 4.022332374e-3f,
      2.888275543e-3f, 2.068331232e-3f, 1.477429410e-3f, 1.052865991e-3f, 7.486635586e-4f, 5.312609137e-4f,
      3.762627894e-4f, 2.520725247e-4f};
  alignas(64) static constexpr float kC1[32] = {
      -2.519164085e-1f, -2.691196501e-1f, -2.875382602e-1f, -2.921609581e-1f, -2.766246200e-1f,
      -2.446787208e-1f, -2.044614851e-1f, -1.634384841e-1f, -1.263372153e-1f, -9.524554759e-2f,
      -7.048018277e-2f, -5.143081024e-2f, -3.713428602e-2f, -2.659335546e-2f, -1.892236434e-2f,
      -1.339466963e-2f, -9.441627190e-3f, -6.631631870e-3f, -4.643869121e-3f, -3.243399551e-3f,
      -2.260055859e-3f, -1.571614528e-3f, -1.090863836e-3f, -7.559046498e-4f, -5.229957169e-4f,
      -3.613411973e-4f, -2.493283828e-4f, -1.718308631e-4f, -1.182884298e-4f, -8.134428936e-5f,
      -5.588359636e-5f, -1.954287291e-5f};
  alignas(64) static constexpr float kC2[32] = {
      1.289167535e-2f, 3.395740315e-2f, 4.554921389e-2f, 4.765744880e-2f, 4.298431054e-2f, 3.515783697e-2f,
      2.691091038e-2f, 1.968863606e-2f, 1.396943722e-2f, 9.708072990e-3f, 6.653025746e-3f, 4.516804125e-3f,
      3.047289560e-3f, 2.047246788e-3f, 1.371533028e-3f, 9.171222337e-4f, 6.124967476e-4f, 4.087114066e-4f,
      2.725755330e-4f, 1.817165903e-4f, 1.211138151e-4f, 8.070863987e-5f, 5.377712296e-5f, 3.582962381e-5f,
      2.387068162e-5f, 1.590275497e-5f, 1.059424176e-5f, 7.057649327e-6f, 4.701598755e-6f, 3.132042821e-6f,
      2.086447012e-6f, 0.000000000e+0f};
  const V t = hn::Min(set(kEnd), hn::Abs(y));
  const V s = parabolas(t, kWidth, kC0, kC1, kC2);
  return hn::NegMulAdd(hn::Min(set(hwy::HighestValue<float>()), hn::Abs(x)), s, ramp(x));
}
#endif

/// x / (1 + exp(-y)): x times the logistic function of y.
template <Accuracy kAccuracy>
HWY_INLINE V times_sigmoid(V x, V y) {
#if HWY_TARGET == HWY_AVX3
  if constexpr (kAccuracy == Accuracy::coarse) return coarse_times_sigmoid(x, y);
#endif
  return hn::Div(x, hn::Add(set(1.0f), exp_of(hn::Neg(y))));
}

/// gelu_tanh through 0.5 (1 + tanh z) = sigmoid(2 z).
template <Accuracy kAccuracy>
HWY_INLINE V gelu_tanh(V x) {
  constexpr float kTwiceSqrt2OverPi = 1.5957691216f;
  const V cubic = hn::MulAdd(hn::Mul(hn::Mul(x, x), x), set(0.044715f), x);
  return times_sigmoid<kAccuracy>(x, hn::Mul(cubic, set(kTwiceSqrt2OverPi)));
}

template <Accuracy kAccuracy, Activation kActivation>
HWY_INLINE V activated(V x) {
  if constexpr (kActivation == Activation::gelu)
    return kAccuracy == Accuracy::full     ? gelu(x)
           : kAccuracy == Accuracy::coarse ? coarse_gelu(x)
                                           : polynomial_gelu(x);
  if constexpr (kActivation == Activation::gelu_tanh) return gelu_tanh<kAccuracy>(x);
  if constexpr (kActivation == Activation::quick_gelu)
    return times_sigmoid<kAccuracy>(x, hn::Mul(x, set(1.702f)));
  if constexpr (kActivation == Activation::silu) return times_sigmoid<kAccuracy>(x, x);
  if constexpr (kActivation == Activation::relu) return ramp(x);
  return x;
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
