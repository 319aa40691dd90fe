// Products in registers, in as many independent chains as a tile has sums: the rate of an arithmetic without
// loads, which is the limit of a loop that has some.
#pragma once

#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/int8-lines-inl.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

/// Different start values, or the compiler would merge equal chains.
HWY_INLINE SixRows first_of_chains(float first) {
  return {set(first),        set(first + 0.1f), set(first + 0.2f), set(first + 0.3f),
          set(first + 0.4f), set(first + 0.5f), set(first + 0.6f), set(first + 0.7f),
          set(first + 0.8f), set(first + 0.9f), set(first + 1.0f), set(first + 1.1f)};
}

template <class Step>
HWY_INLINE void step_chains(const Step& step, SixRows& c) {
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

/// `rounds` rounds of sum = step(sum) in every chain, in each of which a lane multiplies and adds kPerLane
/// times. Returns the floating-point operations, or as many of integers.
template <size_t kPerLane, class Step>
HWY_INLINE double run_chains(size_t rounds, const Step& step, float* sink) {
  constexpr bool kHasLower = kTileRows > 6;
  SixRows upper = first_of_chains(1.0f), lower = first_of_chains(2.2f);
  for (size_t i = 0; i < rounds; ++i) {
    step_chains(step, upper);
    if constexpr (kHasLower) step_chains(step, lower);
  }
  HWY_ALIGN float lanes[24 * kLanes];
  store_six<6, 2>(upper, 0, ScratchSink{TileStart::zero, lanes});
  store_six<6, 2>(lower, 6, ScratchSink{TileStart::zero, lanes});
  float sum = 0.0f;
  for (const float lane : lanes) sum += lane;
  *sink = sum;
  constexpr size_t kInRound = (kHasLower ? 24 : 12) * kLanes * kPerLane;
  return 2.0 * static_cast<double>(kInRound) * static_cast<double>(rounds);
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

/// Each factor depends on the sum before: of two constants the compiler could make one number.
template <>
struct ProductChains<FloatLines> {
  static constexpr size_t kPerLane = 1;
  static HWY_INLINE double run(size_t rounds, float* sink) {
    const V factor = set(0.5f), addend = set(1.0f);
    return run_chains<kPerLane>(
        rounds, [&](V sum) HWY_ATTR { return hn::MulAdd(sum, factor, addend); }, sink);
  }
};

inline double multiply_adds(size_t rounds, float* sink) noexcept {
  return ProductChains<FloatLines>::run(rounds, sink);
}

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
