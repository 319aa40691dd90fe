// Products in registers, in as many independent chains as a tile has sums: the rate of an arithmetic without
// loads, which is the limit of a loop that has some.
#pragma once

#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/gemm-inl.h"
#include "vit/kernels/int8-lines-inl.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

/// `rounds` rounds of sum = step(sum) in twelve chains, in each of which a lane multiplies and adds kPerLane
/// times. Returns the floating-point operations, or as many of integers.
template <size_t kPerLane, class Step>
HWY_INLINE double run_chains(size_t rounds, const Step& step, float* sink) {
  // Different start values, as in multiply_adds().
  SixRows c{set(1.0f), set(1.1f), set(1.2f), set(1.3f), set(1.4f), set(1.5f),
            set(1.6f), set(1.7f), set(1.8f), set(1.9f), set(2.0f), set(2.1f)};
  for (size_t i = 0; i < rounds; ++i) {
    c.c00 = step(c.c00);
    c.c01 = step(c.c01);
    c.c10 = step(c.c10);
    c.c11 = step(c.c11);
    c.c20 = step(c.c20);
    c.c21 = step(c.c21);
    c.c30 = step(c.c30);
    c.c31 = step(c.c31);
    c.c40 = step(c.c40);
    c.c41 = step(c.c41);
    c.c50 = step(c.c50);
    c.c51 = step(c.c51);
  }
  HWY_ALIGN float lanes[12 * kLanes];
  store_six<6, 2>(c, 0, ScratchSink{TileStart::zero, lanes});
  float sum = 0.0f;
  for (const float lane : lanes) sum += lane;
  *sink = sum;
  return 2.0 * 12.0 * static_cast<double>(kLanes * kPerLane) * static_cast<double>(rounds);
}

/// Those of a form of lines (tile-inl.h) that covers kColumns of K.
template <class Form>
struct ProductChains {
  static constexpr size_t kPerLane = Form::kColumns;
  static HWY_INLINE double run(size_t rounds, float* sink) {
    const V factor = set(0.5f), line = set(0.25f);
    return run_chains<kPerLane>(
        rounds, [&](V sum) HWY_ATTR { return Form::multiply_add(factor, line, sum); }, sink);
  }
};

template <>
struct ProductChains<FloatLines> {
  static constexpr size_t kPerLane = 1;
  static HWY_INLINE double run(size_t rounds, float* sink) { return multiply_adds(rounds, sink); }
};

namespace int8 {

/// Those of a form of bytes or words.
template <class Form>
struct ProductChains {
  static constexpr size_t kPerLane = Form::kStep;
  static HWY_INLINE double run(size_t rounds, float* sink) {
    VI inputs = hn::Set(DI(), 0x00010001);
    const VI weights = hn::Set(DI(), 0x01010101);
    const auto step = [&](V sum) HWY_ATTR {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
      __asm__ volatile("" : "+v"(inputs.raw));  // or products of two instructions are computed once for all
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
      __asm__ volatile("" : "+x"(inputs.raw));
#endif
      return hn::BitCast(D(), add_products(Form(), hn::BitCast(DI(), sum), inputs, weights));
    };
    return run_chains<kPerLane>(rounds, step, sink);
  }
};

}  // namespace int8

/// As many operations of the products of `Keys` as of those of `Values`.
template <class Keys, class Values>
double run_both_chains(size_t rounds, float* sink) noexcept {
  float of_values = 0.0f;
  const double operations = Keys::run(rounds * Values::kPerLane, sink);
  const double others = Values::run(rounds * Keys::kPerLane, &of_values);
  *sink += of_values;
  return operations + others;
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
