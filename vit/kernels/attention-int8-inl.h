// Queries, keys, values and weights of attention-inl.h as integers, for layers in int8: pairs of 16 bits,
// which any x86 multiplies twice as fast as floats, and values and weights as bytes if one instruction
// multiplies and adds four of them (VNNI).
//
// A query or key of words has its own step, like the rows of int8.h. A value has one too, a power of two,
// and a weight is a multiple of 2^-13 or 1/254 of the largest. The weight of a key relative to others
// includes the step of its value, which goes into the exponent:
//   sum over k of weight[k] v[k][c] = sum over k of 2^(score[k] + e[k]) q[k][c],   v[k][c] = 2^e[k] q[k][c]
//   sum over k of weight[k]         = sum over k of 2^(score[k] + e[k]) 2^-e[k]
// so that a key with a large weight and small values, like an attention sink, does not coarsen the others.
// The rounding error of a weight is added to that of the next key in the same part of a lane: many small
// weights keep their sum, and the values of some of the keys represent all. Sums over a block are
// exact in int32; those of the blocks are added in float32, in order.
#pragma once

#include "vit/kernels/attention-operands-inl.h"
#include "vit/kernels/int8-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

/// sums (rows, kPanel) of a group, `columns` of each; earlier blocks are added before.
template <class Form, class SomeGroup>
HWY_INLINE void accumulate_int(const SomeGroup& group, size_t rows, size_t columns, float* sums) {
  const ScratchSink kept{TileStart::zero, sums};
  if (columns > kLanes) return multiply_group<Form, 2, false>(group, rows, sums, kept);
  multiply_group<Form, 1, false>(group, rows, sums, kept);
}

/// Keys (T, lanes), a lane for two channels, and the scale of each. Form: Pairs, or one that multiplies
/// in the same way.
template <class Form>
struct Int16Keys {
  using Chains = ProductChains<Form>;
  static HWY_INLINE size_t lanes_of(size_t head_dim) { return (head_dim + 1) / 2; }
  static HWY_INLINE size_t scales_at(size_t num_tokens, size_t head_dim) {
    return round_to_line(num_tokens * lanes_of(head_dim));
  }
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return scales_at(num_tokens, head_dim) + round_to_line(2 * num_tokens);
  }

  /// Bound for the integers of queries and keys: products of `head_dim` of them cannot overflow.
  static HWY_INLINE float largest_factor(size_t head_dim) {
    const float square = 2147483000.0f / static_cast<float>(head_dim);  // less than 2^31 / d, rounded or not
    const float largest = hn::GetLane(hn::Floor(hn::Sqrt(set(square))));
    return HWY_MIN(largest, 32'767.0f);
  }

  /// Queries or keys (count, d), at most kLanes, as rows of lanes, which may start at the same address.
  static HWY_INLINE void quantize_rows(const float* rows, size_t count, size_t head_dim, Scaling& scaling,
                                       float* to) {
    for (size_t i = 0; i < count; ++i) scan_range(rows + i * head_dim, head_dim, scaling, i);
    choose_steps<Form>(scaling, largest_factor(head_dim));
    for (size_t i = 0; i < count; ++i) {
      int16_t* const words = reinterpret_cast<int16_t*>(to + i * lanes_of(head_dim));
      quantize_group<Form>(rows + i * head_dim, head_dim, scaling.factor[i], 0.0f, words);
      if (head_dim % 2 != 0) __builtin_memset(words + head_dim, 0, sizeof(int16_t));
    }
  }

  static HWY_INLINE void pack(const KeyValueArgs& args, float* keys) {
    float* const scales_begin = keys + scales_at(args.num_tokens, args.head_dim);
    InputScale* const scales = reinterpret_cast<InputScale*>(scales_begin);
    Scaling scaling = {};
    for (size_t t = args.first_token; t < args.last_token; t += kLanes) {
      const size_t count = HWY_MIN(kLanes, args.last_token - t);
      for (size_t i = 0; i < count; ++i) {
        rotate_token(args.key_row(t + i), t + i, args.head_dim, args.rotation,
                     args.scratch + i * args.head_dim);
      }
      quantize_rows(args.scratch, count, args.head_dim, scaling, keys + t * lanes_of(args.head_dim));
      for (size_t i = 0; i < count; ++i) scales[t + i] = {scaling.step[i], 0.0f};
    }
  }

  static HWY_INLINE void pack_queries(float* rotated, size_t count, size_t head_dim, V scale,
                                      const AttentionScratch& scratch) {
    const size_t lanes = lanes_of(head_dim);
    Scaling scaling = {};
    for (size_t first = 0; first < count; first += kLanes) {
      const size_t some = HWY_MIN(kLanes, count - first);
      quantize_rows(rotated + first * head_dim, some, head_dim, scaling, rotated + first * lanes);
      hn::Store(hn::Mul(hn::Load(D(), scaling.step), scale), D(), scratch.query_steps + first);
    }
    transpose_queries(rotated, count, lanes, scratch);
  }

  static HWY_INLINE void score(const AttentionBlock& block) {
    const size_t lanes = lanes_of(block.args.head_dim);
    const float* const scales = block.packed_keys + scales_at(block.args.num_tokens, block.args.head_dim);
    const Group group{.in = reinterpret_cast<const std::byte*>(block.packed_keys + block.key * lanes),
                      .in_step = lanes * sizeof(float),
                      .scales = reinterpret_cast<const InputScale*>(scales) + block.key,
                      .scale_step = 1,
                      .header = block.scratch.query_steps,
                      .lines = reinterpret_cast<const int32_t*>(block.scratch.queries),
                      .steps = lanes,
                      .start = TileStart::zero,
                      .next = nullptr};
    accumulate_int<Form>(group, block.keys, block.queries, block.scratch.scores);
  }
};

/// Numbers to which kRounder was added, as adjacent integers in lanes: kBits of `lower`, `upper`
/// above them.
template <int kBits>
HWY_INLINE V side_by_side(V lower, V upper) {
  const VI mask = hn::Set(DI(), (1 << kBits) - 1);
  const VI moved = hn::ShiftLeft<kBits>(hn::BitCast(DI(), upper));
  return hn::BitCast(D(), hn::IfVecThenElse(mask, hn::BitCast(DI(), lower), moved));
}

/// Values and weights as words: two keys to a lane, multiplied by Products.
template <class SomeProducts>
struct Int16x2 {
  using Products = SomeProducts;
  static constexpr bool kIsPortable = false;  // whether weights are of one sequence of operations everywhere
  static constexpr float kLargestWeight = 8192.0f;
  static constexpr float kLargestValue = 1023.0f;
  static_assert(kBlockKeys * size_t{8193} * size_t{1023} <= size_t{INT32_MAX});

  /// number(i): of key i, with kRounder added.
  template <class Number>
  static HWY_INLINE V lanes(const Number& number) {
    const V first = number(0), second = number(1);
    return side_by_side<16>(first, second);
  }
};

template <class SomeProducts>
struct PortableInt16x2 : Int16x2<SomeProducts> {
  static constexpr bool kIsPortable = true;
};

/// Keys and weights as bytes, weights unsigned: four keys to a lane.
template <class SomeProducts>
struct Int8x4 {
  using Products = SomeProducts;
  static constexpr bool kIsPortable = false;
  static constexpr float kLargestWeight = 254.0f;  // plus 1 that rounding may add
  static constexpr float kLargestValue = 127.0f;

  template <class Number>
  static HWY_INLINE V lanes(const Number& number) {
    const V first = number(0), second = number(1), third = number(2), fourth = number(3);
    return side_by_side<16>(side_by_side<8>(first, second), side_by_side<8>(third, fourth));
  }
};

/// The step of a weight, for each query.
struct WeightSteps {
  HWY_ALIGN float lanes[kPanel];

  static constexpr WeightSteps all(float step) {
    WeightSteps steps{};
    for (float& lane : steps.lanes) lane = step;
    return steps;
  }
};

/// Inputs whose lanes are `lane_step` bytes apart: columns treated as rows.
struct StridedGroup : Group {
  size_t lane_step;
  size_t k_step() const { return lane_step; }
};

/// Values (T / kKeys rounded up, d), a lane for kKeys keys, then for each key the exponent e and 2^-e.
template <class Lanes>
struct QuantizedValues {
  using Chains = ProductChains<typename Lanes::Products>;
  static constexpr size_t kKeys = Lanes::Products::kStep;
  static_assert(kBlockKeys % kKeys == 0);

  static HWY_INLINE size_t exponents_at(size_t num_tokens, size_t head_dim) {
    return round_to_line((num_tokens + kKeys - 1) / kKeys * head_dim);
  }
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return exponents_at(num_tokens, head_dim) + 2 * round_to_line(num_tokens);
  }

  /// The smallest powers of two, at least 2^-60, such that numbers in the ranges of `scaling` are at most
  /// kLargestValue times that: 2^-e to `factor`, e to `zero`; NaN for numbers that are not finite.
  static HWY_INLINE void choose_powers(Scaling& scaling) {
    const D d;
    const V lowest = hn::Load(d, scaling.lowest), highest = hn::Load(d, scaling.highest);
    const V largest = hn::Max(hn::Max(highest, hn::Neg(lowest)), set(0x1p-60f * Lanes::kLargestValue));
    const auto is_finite = hn::Lt(largest, hn::Inf(d));
    const VI least = hn::BitCast(DI(), hn::Div(largest, set(Lanes::kLargestValue)));
    const VI biased = hn::ShiftRight<23>(hn::Add(least, hn::Set(DI(), 0x7FFFFF)));  // 127 + e
    const V factor = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::Set(DI(), 254), biased)));
    const V exponent = hn::ConvertTo(d, hn::Sub(biased, hn::Set(DI(), 127)));
    hn::Store(hn::IfThenElse(is_finite, factor, hn::NaN(d)), d, scaling.factor);
    hn::Store(hn::IfThenElse(is_finite, exponent, hn::NaN(d)), d, scaling.zero);
  }

  static HWY_INLINE void pack(const KeyValueArgs& args, float* lines) {
    static_assert(kLanes % kKeys == 0);
    float* const exponents = lines + exponents_at(args.num_tokens, args.head_dim);
    float* const factors = exponents + round_to_line(args.num_tokens);
    Scaling scaling = {};
    for (size_t t = args.first_token; t < args.last_token; t += kLanes) {
      const size_t count = HWY_MIN(kLanes, args.last_token - t);
      const float* const values = args.value_row(t);
      for (size_t i = 0; i < count; ++i)
        scan_range(values + i * args.value_stride, args.head_dim, scaling, i);
      choose_powers(scaling);
      for (size_t i = 0; i < count; i += kKeys) {
        pack_line(values + i * args.value_stride, args.value_stride, scaling.factor + i,
                  HWY_MIN(kKeys, count - i), args.head_dim, lines + (t + i) / kKeys * args.head_dim);
      }
      for (size_t i = 0; i < count; ++i) exponents[t + i] = scaling.zero[i];
      for (size_t i = 0; i < count; ++i) factors[t + i] = scaling.factor[i];
    }
  }

  /// `keys` <= kKeys rows of values as one line; the others are zero.
  static HWY_INLINE void pack_line(const float* values, size_t stride, const float* factors, size_t keys,
                                   size_t count, float* line) {
    const D d;
    const auto lanes = [&](const auto& load) HWY_ATTR {
      return Lanes::lanes([&](size_t i) HWY_ATTR {
        const V rounder = set(kRounder);
        return i < keys ? hn::MulAdd(load(values + i * stride), set(factors[i]), rounder) : rounder;
      });
    };
    size_t c = 0;
    for (; c + kLanes <= count; c += kLanes)
      hn::StoreU(lanes([&](const float* row) HWY_ATTR { return hn::LoadU(d, row + c); }), d, line + c);
    if (const size_t rest = count - c; rest > 0)
      store_first(lanes([&](const float* row) HWY_ATTR { return load_first(row + c, rest, 0.0f); }), rest,
                  line + c);
  }

  static HWY_INLINE void prepare_weights(AttentionBlock& block) {
    block.exponents =
        block.packed_values + exponents_at(block.args.num_tokens, block.args.head_dim) + block.key;
  }
  static HWY_INLINE V exponent(const AttentionBlock& block, size_t column, size_t key) {
    return hn::Add(hn::Load(D(), block.scratch.scores + key * kPanel + column), set(block.exponents[key]));
  }

  /// The rounding error of the latest weight in each part of a lane.
  struct Rests {
    V rest0, rest1, rest2, rest3;

    HWY_INLINE V& operator[](size_t i) { return i == 0 ? rest0 : i == 1 ? rest1 : i == 2 ? rest2 : rest3; }
  };

  static HWY_INLINE V weigh(const AttentionBlock& block, size_t column, V maximum) {
    const D d;
    const V zero = hn::Zero(d);
    float* const HWY_RESTRICT scores = block.scratch.scores + column;
    const float* const HWY_RESTRICT factors = block.exponents + round_to_line(block.args.num_tokens);
    V sum = zero;
    Rests rests{zero, zero, zero, zero};
    const auto integer = [&](size_t key, size_t i) HWY_ATTR {
      const V rounder = set(kRounder);
      const V below = hn::Sub(exponent(block, column, key), maximum);
      const V weight = Lanes::kIsPortable ? exp2_of_negative(below) : coarse_exp2_of_negative<2>(below);
      sum = hn::MulAdd(weight, set(factors[key]), sum);
      const V exact = hn::MulAdd(weight, set(Lanes::kLargestWeight), rests[i]);
      const V rounded = hn::Add(exact, rounder);
      rests[i] = hn::Sub(exact, hn::Sub(rounded, rounder));
      return rounded;
    };
    size_t k = 0;
    for (; k + kKeys <= block.keys; k += kKeys) {
      const V lanes = Lanes::lanes([&](size_t i) HWY_ATTR { return integer(k + i, i); });
      hn::Store(lanes, d, scores + k / kKeys * kPanel);
    }
    if (k < block.keys) {
      const V lanes = Lanes::lanes(
          [&](size_t i) HWY_ATTR { return k + i < block.keys ? integer(k + i, i) : set(kRounder); });
      hn::Store(lanes, d, scores + k / kKeys * kPanel);
    }
    return sum;
  }

  static HWY_INLINE void add_values(const AttentionBlock& block) {
    static constexpr WeightSteps kWeightSteps = WeightSteps::all(1.0f / Lanes::kLargestWeight);
    static constexpr InputScale kValueScale{1.0f, 0.0f};
    const size_t head_dim = block.args.head_dim;
    const float* const lines = block.packed_values + block.key / kKeys * head_dim;
    const StridedGroup group{{.in = reinterpret_cast<const std::byte*>(lines),
                              .in_step = sizeof(float),
                              .scales = &kValueScale,
                              .scale_step = 0,
                              .header = kWeightSteps.lanes,
                              .lines = reinterpret_cast<const int32_t*>(block.scratch.scores),
                              .steps = (block.keys + kKeys - 1) / kKeys,
                              .start = block.is_first() ? TileStart::zero : TileStart::stored,
                              .next = nullptr},
                             head_dim * sizeof(float)};
    accumulate_int<typename Lanes::Products>(group, head_dim, block.queries, block.scratch.sums);
  }
};

template <class Form>
using Int16Operands = Operands<Int16Keys<Form>, QuantizedValues<Int16x2<Form>>>;
#if HWY_TARGET == HWY_AVX3  // whose own exponentials take a table in registers
template <class Form>
using PortableOperands = Operands<Int16Keys<Form>, QuantizedValues<PortableInt16x2<Form>>>;
#else
template <class Form>
using PortableOperands = Int16Operands<Form>;
#endif

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
using DefaultOperands = Int16Operands<Pairs>;
#else
using DefaultOperands = FloatOperands;  // products of words would take two of floats
#endif

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
using Int8Values = QuantizedValues<Int8x4<VnniSignedBytes>>;
#endif

}  // namespace int8
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
