// The memory layout of int8 weights, and one step of a product with inputs.
//
//   panel:  scales and sums of every group | k0: kPanel x kStep weights | k1: ... |    a step reads one line
#pragma once

#include "vit/kernels/int8.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/quantize-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

template <class Form>
constexpr size_t kLineBytes = kPanel* Form::kStep;  // weights of one step

/// The header before the weights of a panel, for every group: the scales of its columns and, if inputs
/// have a zero, the sums of their weights, the excess of an input that represents 0 (integers
/// below 2^24, stored as floats).
template <class Form>
constexpr size_t kHeaderLanes = (Form::kHasZero ? 2 : 1) * kPanel;  // of a group

template <class Form>
HWY_INLINE size_t header_bytes(size_t in_features) {
  return round_up(int8_groups(in_features) * kHeaderLanes<Form> * sizeof(float), 64);
}

template <class Form>
HWY_INLINE size_t panel_bytes(size_t in_features) {
  const size_t steps = round_up(in_features, Form::kStep) / Form::kStep;
  return round_up(header_bytes<Form>(in_features) + steps * kLineBytes<Form>, 64);
}

template <class Form>
size_t packed_bytes(size_t columns, size_t in_features) noexcept {
  return columns / kPanel * panel_bytes<Form>(in_features);
}

/// One column of a panel: its groups one after the other.
template <class Form>
HWY_INLINE bool pack_column(const float* row, size_t in_features, size_t c, float* header, int8_t* lines) {
  int8_t q[kInt8Group];
  for (size_t k = 0; k < in_features; k += kInt8Group, header += kHeaderLanes<Form>) {
    const size_t count = HWY_MIN(kInt8Group, in_features - k);
    if (!quantize_weights(row + k, count, Form::kPairLargest, q, header[c])) return false;
    int32_t sum = 0;
    for (size_t i = 0; i < count; ++i) {
      lines[(k + i) / Form::kStep * kLineBytes<Form> + c * Form::kStep + (k + i) % Form::kStep] = q[i];
      sum += q[i];
    }
    if constexpr (Form::kHasZero) header[c + kPanel] = static_cast<float>(sum);
  }
  return true;
}

template <class Form>
bool pack(const PackArgs& args) noexcept {
  const size_t bytes = panel_bytes<Form>(args.in_features), header = header_bytes<Form>(args.in_features);
  for (size_t column = 0; column < args.out_features; column += kPanel) {
    std::byte* const panel = args.packed + packed_bytes<Form>(column, args.in_features);
    __builtin_memset(panel, 0, bytes);
    for (size_t c = 0; c < HWY_MIN(kPanel, args.out_features - column); ++c) {
      if (!pack_column<Form>(args.weight + (column + c) * args.stride, args.in_features, c,
                             reinterpret_cast<float*>(panel), reinterpret_cast<int8_t*>(panel + header))) {
        return false;
      }
    }
  }
  return true;
}

/// sum + the products of the inputs in one lane with the weights in every lane.
HWY_INLINE VI add_products(Pairs, VI sum, VI inputs, VI weights) {
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
  const hn::Repartition<int16_t, DI> d16;
  VI unused = hn::Zero(DI());
  return hn::ReorderWidenMulAccumulate(DI(), hn::BitCast(d16, inputs), hn::BitCast(d16, weights), sum,
                                       unused);
#else
  const auto lower = [](VI pair) { return hn::ShiftRight<16>(hn::ShiftLeft<16>(pair)); };
  const auto upper = [](VI pair) { return hn::ShiftRight<16>(pair); };
  return hn::Add(sum,
                 hn::Add(hn::Mul(lower(inputs), lower(weights)), hn::Mul(upper(inputs), upper(weights))));
#endif
}

/// Weights of a group as lanes of kStep numbers, kPanel lanes per step: widened into `memory` once for all
/// rows.
HWY_INLINE const int32_t* unpack_lines(Pairs, const int8_t* lines, size_t steps, int32_t* memory) {
  for (size_t i = 0; i < steps * kPanel; i += kLanes) {
#if HWY_TARGET == HWY_SCALAR
    memory[i] = (lines[2 * i] & 0xFFFF) | lines[2 * i + 1] * 0x10000;
#else
    const hn::Repartition<int16_t, DI> d16;
    const auto pairs = hn::PromoteTo(d16, hn::Load(hn::Rebind<int8_t, decltype(d16)>(), lines + 2 * i));
    hn::Store(hn::BitCast(DI(), pairs), DI(), memory + i);
#endif
  }
  return memory;
}

HWY_INLINE const int32_t* unpack_lines(Bytes, const int8_t* lines, size_t, int32_t*) {
  return reinterpret_cast<const int32_t*>(lines);
}

#if HWY_TARGET == HWY_AVX2
alignas(32) constexpr int16_t kOnes[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};

// Twelve sums, two vectors of weights, inputs and products fill all sixteen registers: the ones stay in
// memory, which compilers do not do on their own.
HWY_INLINE VI add_products(Bytes, VI sum, VI inputs, VI weights) {
  VI products;
  __asm__("vpmaddubsw %3, %2, %1\n\tvpmaddwd %4, %1, %1\n\tvpaddd %1, %0, %0"
          : "+x"(sum.raw), "=&x"(products.raw)
          : "x"(inputs.raw), "x"(weights.raw), "m"(kOnes));
  return sum;
}
#elif HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
HWY_INLINE VI add_products(Bytes, VI sum, VI inputs, VI weights) {
  const hn::Repartition<int16_t, DI> d16;
#if HWY_TARGET <= HWY_AVX3
  const hn::Vec<decltype(d16)> pairs{_mm512_maddubs_epi16(inputs.raw, weights.raw)};
#else
  const hn::Vec<decltype(d16)> pairs{_mm_maddubs_epi16(inputs.raw, weights.raw)};
#endif
  VI unused = hn::Zero(DI());
  return hn::ReorderWidenMulAccumulate(DI(), pairs, hn::Set(d16, 1), sum, unused);
}
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Written as assembly: the instruction set is detected at run time and is not part of Highway's target. Those
// of AVX-512 and of AVX differ only in their encoding.
#if HWY_TARGET == HWY_AVX3
#define VIT_MULTIPLY_ADD(name, sum, inputs, weights) \
  __asm__(name " %2, %1, %0" : "+v"(sum.raw) : "v"(inputs.raw), "v"(weights.raw))
#else
#define VIT_MULTIPLY_ADD(name, sum, inputs, weights) \
  __asm__("%{vex%} " name " %2, %1, %0" : "+x"(sum.raw) : "x"(inputs.raw), "x"(weights.raw))
#endif

HWY_INLINE VI add_products(VnniBytes, VI sum, VI inputs, VI weights) {
  VIT_MULTIPLY_ADD("vpdpbusd", sum, inputs, weights);
  return sum;
}

HWY_INLINE VI add_products(VnniPairs, VI sum, VI inputs, VI weights) {
  VIT_MULTIPLY_ADD("vpdpwssd", sum, inputs, weights);
  return sum;
}

/// Signed inputs with unsigned weights.
struct VnniSignedBytes {
  static constexpr size_t kStep = 4;
  static constexpr bool kHasZero = false;
};

HWY_INLINE VI add_products(VnniSignedBytes, VI sum, VI inputs, VI weights) {
  VIT_MULTIPLY_ADD("vpdpbusd", sum, weights, inputs);
  return sum;
}

#undef VIT_MULTIPLY_ADD
#endif

}  // namespace int8
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
