// Kernels over entire rows: layer norm, and the softmax of attention probabilities.
#pragma once

#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/sums-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

HWY_INLINE float mean_of(const float* HWY_RESTRICT row, size_t columns) {
  Sixteen even = zeros(), odd = zeros();
  size_t c = 0;
  for (; c + 2 * kSumLanes <= columns; c += 2 * kSumLanes) {
    even = add(even, load_sixteen(row + c, kSumLanes, 0.0f));
    odd = add(odd, load_sixteen(row + c + kSumLanes, kSumLanes, 0.0f));
  }
  for (; c < columns; c += kSumLanes) even = add(even, load_sixteen(row + c, columns - c, 0.0f));
  return sum_of(add(even, odd)) / static_cast<float>(columns);
}

HWY_INLINE float variance_of(const float* HWY_RESTRICT row, size_t columns, float mean) {
  const V center = set(mean);
  const auto square = [&](V x, V sum) HWY_ATTR {
    const V deviation = hn::Sub(x, center);
    return hn::MulAdd(deviation, deviation, sum);
  };
  Sixteen even = zeros(), odd = zeros();
  size_t c = 0;
  for (; c + 2 * kSumLanes <= columns; c += 2 * kSumLanes) {
    even = each(square, load_sixteen(row + c, kSumLanes, mean), even);
    odd = each(square, load_sixteen(row + c + kSumLanes, kSumLanes, mean), odd);
  }
  for (; c < columns; c += kSumLanes) even = each(square, load_sixteen(row + c, columns - c, mean), even);
  return sum_of(add(even, odd)) / static_cast<float>(columns);
}

/// kShifts: there is a beta, and the mean is subtracted; else RMSNorm.
template <bool kShifts>
HWY_INLINE void norm_rows(const LayerNormArgs& args) {
  const D d;
  for (size_t r = 0; r < args.rows; ++r) {
    const float* const in = args.in + r * args.in_stride;
    float* const out = args.out + r * args.out_stride;
    const float mean = kShifts ? mean_of(in, args.columns) : 0.0f;
    const V center = set(mean);
    const V variance = set(variance_of(in, args.columns, mean));
    const V factor = hn::Div(set(1.0f), hn::Sqrt(hn::Add(variance, set(args.eps))));
    const auto normed = [&](V x) HWY_ATTR { return hn::Mul(kShifts ? hn::Sub(x, center) : x, factor); };
    size_t c = 0;
    for (; c + kLanes <= args.columns; c += kLanes) {
      const V x = normed(hn::LoadU(d, in + c)), gamma = hn::LoadU(d, args.gamma + c);
      hn::StoreU(kShifts ? hn::MulAdd(x, gamma, hn::LoadU(d, args.beta + c)) : hn::Mul(x, gamma), d, out + c);
    }
    if (c == args.columns) continue;
    const size_t rest = args.columns - c;
    const V x = normed(load_first(in + c, rest, mean)), gamma = load_first(args.gamma + c, rest, 0.0f);
    store_first(kShifts ? hn::MulAdd(x, gamma, load_first(args.beta + c, rest, 0.0f)) : hn::Mul(x, gamma),
                rest, out + c);
  }
}

inline void layer_norm(const LayerNormArgs& args) noexcept {
  if (args.beta != nullptr) {
    norm_rows<true>(args);
  } else {
    norm_rows<false>(args);
  }
}

/// row = 2^row / sum.
HWY_INLINE void softmax_row(float* row, size_t columns) {
  const D d;
  constexpr float kLowest = -3.402823466e+38f;
  V largest = set(kLowest);
  size_t c = 0;
  for (; c + kLanes <= columns; c += kLanes) largest = hn::Max(largest, hn::LoadU(d, row + c));
  if (c < columns) largest = hn::Max(largest, load_first(row + c, columns - c, kLowest));
  largest = hn::MaxOfLanes(d, largest);

  for (c = 0; c + kLanes <= columns; c += kLanes)
    hn::StoreU(exp2_of_negative(hn::Sub(hn::LoadU(d, row + c), largest)), d, row + c);
  if (c < columns) {
    const size_t rest = columns - c;
    store_first(exp2_of_negative(hn::Sub(load_first(row + c, rest, kLowest), largest)), rest, row + c);
  }
  Sixteen sums = zeros();
  for (c = 0; c < columns; c += kSumLanes) sums = add(sums, load_sixteen(row + c, columns - c, 0.0f));
  const V total = set(sum_of(sums));

  for (c = 0; c + kLanes <= columns; c += kLanes)
    hn::StoreU(hn::Div(hn::LoadU(d, row + c), total), d, row + c);
  if (c < columns) {
    store_first(hn::Div(load_first(row + c, columns - c, 0.0f), total), columns - c, row + c);
  }
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
