// Queries, keys, values and weights of attention-inl.h as whole numbers of 16 bits, for layers in int8:
// processors without products of bfloat16 multiply pairs of them twice as fast as floats. Compiled once for
// each instruction set.
//
// A query, key or value has a step of its own, as the rows of int8.h, and a weight is a multiple of 2^-13 of
// the largest there can be. The steps of values go into the weights:
//   sum over k of weight[k] v[k][c] = step 2^-13 sum over k of round(2^13 weight[k] step[k] / step) q[k][c],
//   step = the largest step[k] of the block.
// Sums over a block are exact in int32; those of the blocks are added in float32, in order. Rounding is
// finer than that to bfloat16 (8 bits) but for weights below 2^-5, which matter as little.
#if defined(VIT_KERNELS_ATTENTION_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_ATTENTION_WORDS_INL_H_
#undef VIT_KERNELS_ATTENTION_WORDS_INL_H_
#else
#define VIT_KERNELS_ATTENTION_WORDS_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/attention-operands-inl.h"
#include "vit/kernels/int8-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {
namespace {
namespace int8 {

constexpr int kLargestWeight = 8192;
constexpr int kLargestValue = 1023;
static_assert(kBlockKeys * kLargestWeight * kLargestValue <= size_t{INT32_MAX});

/// Of the numbers of queries and keys: products of `head_dim` of them cannot overflow.
HWY_INLINE float largest_factor(size_t head_dim) {
  const float square = 2147483000.0f / static_cast<float>(head_dim);  // less than 2^31 / d, rounded or not
  const float largest = hn::GetLane(hn::Floor(hn::Sqrt(set(square))));
  return HWY_MIN(largest, 32'767.0f);
}

/// Numbers to which kRounder was added, as whole numbers in the lower and upper halves of lanes.
HWY_INLINE V word_pairs(V lower, V upper) {
  const VI lower_half = hn::And(hn::BitCast(DI(), lower), hn::Set(DI(), 0xFFFF));
  return hn::BitCast(D(), hn::Or(lower_half, hn::ShiftLeft<16>(hn::BitCast(DI(), upper))));
}

/// What a weight is a multiple of, for each query.
struct WeightSteps {
  HWY_ALIGN float lanes[kPanel];
};
constexpr WeightSteps kWeightSteps = [] {
  WeightSteps steps{};
  for (float& lane : steps.lanes) lane = 1.0f / kLargestWeight;
  return steps;
}();

/// Inputs of which a lane lies `lane_step` bytes after the one before: columns as if they were rows.
struct StridedGroup : Group {
  size_t lane_step;
  size_t k_step() const { return lane_step; }
};

/// Form: Pairs, or one that multiplies as they do.
template <class Form>
struct WordOperands {
  /// Where what is packed begins, in floats. A lane holds two words: two channels of a key, two keys of a
  /// value.
  struct Layout {
    size_t values;       // (T / 2 rounded up, d), after keys (T, key_lanes)
    size_t key_scales;   // (T), InputScale each
    size_t value_steps;  // (T)
    size_t end;
  };

  static HWY_INLINE size_t key_lanes(size_t head_dim) { return (head_dim + 1) / 2; }

  static HWY_INLINE Layout lay_out(size_t num_tokens, size_t head_dim) {
    const size_t values = round_to_line(num_tokens * key_lanes(head_dim));
    const size_t key_scales = values + round_to_line((num_tokens + 1) / 2 * head_dim);
    const size_t value_steps = key_scales + round_to_line(2 * num_tokens);
    return {values, key_scales, value_steps, value_steps + round_to_line(num_tokens)};
  }
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return lay_out(num_tokens, head_dim).end;
  }

  /// Queries or keys (count, d), at most kLanes, as rows of key_lanes, which may begin where they do.
  static HWY_INLINE void quantise_rows(const float* rows, size_t count, size_t head_dim, Scaling& scaling,
                                       float* to) {
    for (size_t i = 0; i < count; ++i) look_at(rows + i * head_dim, head_dim, scaling, i);
    choose_steps<Form>(scaling, largest_factor(head_dim));
    for (size_t i = 0; i < count; ++i) {
      int16_t* const words = reinterpret_cast<int16_t*>(to + i * key_lanes(head_dim));
      quantise_group<Form>(rows + i * head_dim, head_dim, scaling.factor[i], 0.0f, words);
      if (head_dim % 2 != 0) __builtin_memset(words + head_dim, 0, sizeof(int16_t));
    }
  }

  static HWY_INLINE void pack(const KeyValueArgs& args) {
    const Layout layout = lay_out(args.num_tokens, args.head_dim);
    InputScale* const key_scales = reinterpret_cast<InputScale*>(args.packed + layout.key_scales);
    Scaling scaling = {};
    for (size_t t = args.first_token; t < args.last_token; t += kLanes) {
      const size_t count = HWY_MIN(kLanes, args.last_token - t);
      for (size_t i = 0; i < count; ++i) {
        rotate_token(args.keys + (t + i) * args.key_stride, t + i, args.head_dim, args.rotation,
                     args.scratch + i * args.head_dim);
      }
      quantise_rows(args.scratch, count, args.head_dim, scaling, args.packed + t * key_lanes(args.head_dim));
      for (size_t i = 0; i < count; ++i) key_scales[t + i] = {scaling.step[i], 0.0f};
      const float* const values = args.values + t * args.value_stride;
      for (size_t i = 0; i < count; ++i) look_at(values + i * args.value_stride, args.head_dim, scaling, i);
      choose_steps<Form>(scaling, kLargestValue);
      for (size_t i = 0; i < count; i += 2) {
        const float* const first = values + i * args.value_stride;
        const bool has_second = i + 1 < count;
        pack_values(first, scaling.factor[i], has_second ? first + args.value_stride : first,
                    has_second ? scaling.factor[i + 1] : 0.0f, args.head_dim,
                    args.packed + layout.values + (t + i) / 2 * args.head_dim);
      }
      for (size_t i = 0; i < count; ++i) args.packed[layout.value_steps + t + i] = scaling.step[i];
    }
  }

  /// Two rows of values as one line.
  static HWY_INLINE void pack_values(const float* first, float first_factor, const float* second,
                                     float second_factor, size_t count, float* line) {
    const D d;
    const V rounder = set(kRounder);
    const auto pairs = [&](V lower, V upper) HWY_ATTR {
      return word_pairs(hn::MulAdd(lower, set(first_factor), rounder),
                        hn::MulAdd(upper, set(second_factor), rounder));
    };
    size_t c = 0;
    for (; c + kLanes <= count; c += kLanes)
      hn::StoreU(pairs(hn::LoadU(d, first + c), hn::LoadU(d, second + c)), d, line + c);
    if (const size_t rest = count - c; rest > 0)
      store_first(pairs(load_first(first + c, rest, 0.0f), load_first(second + c, rest, 0.0f)), rest,
                  line + c);
  }

  static HWY_INLINE void pack_queries(float* turned, size_t count, size_t head_dim, V scale,
                                      const AttentionScratch& scratch) {
    const size_t lanes = key_lanes(head_dim);
    Scaling scaling = {};
    for (size_t first = 0; first < count; first += kLanes) {
      const size_t some = HWY_MIN(kLanes, count - first);
      quantise_rows(turned + first * head_dim, some, head_dim, scaling, turned + first * lanes);
      hn::Store(hn::Mul(hn::Load(D(), scaling.step), scale), D(), scratch.query_steps + first);
    }
    transpose_queries(turned, count, lanes, scratch);
  }

  template <class SomeGroup>
  static HWY_INLINE void multiply(const SomeGroup& group, size_t rows, size_t columns, float* out) {
    const KeptSums kept{TileStart::zero, out};  // earlier blocks are added before
    if (columns > kLanes) return multiply_group<Form, 2, false>(group, rows, out, kept);
    multiply_group<Form, 1, false>(group, rows, out, kept);
  }

  static HWY_INLINE void score(const AttentionBlock& block) {
    const size_t lanes = key_lanes(block.args.head_dim);
    const Layout layout = lay_out(block.args.num_tokens, block.args.head_dim);
    const float* const packed = block.args.packed;
    const Group group{.in = reinterpret_cast<const std::byte*>(packed + block.key * lanes),
                      .in_step = lanes * sizeof(float),
                      .scales = reinterpret_cast<const InputScale*>(packed + layout.key_scales) + block.key,
                      .scale_step = 1,
                      .head = block.scratch.query_steps,
                      .lines = reinterpret_cast<const int32_t*>(block.scratch.queries),
                      .steps = lanes,
                      .start = TileStart::zero,
                      .upcoming = nullptr};
    multiply(group, block.keys, block.queries, block.scratch.scores);
  }

  static HWY_INLINE void prepare_weights(AttentionBlock& block) {
    const Layout layout = lay_out(block.args.num_tokens, block.args.head_dim);
    const float* const steps = block.args.packed + layout.value_steps + block.key;
    Scaling scaling = {};
    look_at(steps, block.keys, scaling, 0);
    // Infinite where a value is not finite: times sums of nothing, that makes NaN.
    block.value_step = scaling.highest[0];
    const bool is_usual = block.value_step > 0.0f && block.value_step <= hwy::HighestValue<float>();
    const V factor = set(is_usual ? kLargestWeight / block.value_step : 0.0f);
    scale_row(steps, block.keys, factor, block.scratch.weight_factors);
  }

  static HWY_INLINE V weigh(const AttentionBlock& block, size_t column, V maximum) {
    const float* const HWY_RESTRICT factors = block.scratch.weight_factors;
    const V rounder = set(kRounder);
    return weigh_pairs(block, column, maximum, [&](size_t k, V first, V second) HWY_ATTR {
      const float second_factor = k + 1 < block.keys ? factors[k + 1] : 0.0f;
      return word_pairs(hn::MulAdd(first, set(factors[k]), rounder),
                        hn::MulAdd(second, set(second_factor), rounder));
    });
  }

  static HWY_INLINE void add_values(const AttentionBlock& block) {
    const size_t head_dim = block.args.head_dim;
    const float* const values = block.args.packed + lay_out(block.args.num_tokens, head_dim).values;
    const InputScale scale{block.value_step, 0.0f};
    const StridedGroup group{{.in = reinterpret_cast<const std::byte*>(values + block.key / 2 * head_dim),
                              .in_step = sizeof(float),
                              .scales = &scale,
                              .scale_step = 0,
                              .head = kWeightSteps.lanes,
                              .lines = reinterpret_cast<const int32_t*>(block.scratch.scores),
                              .steps = (block.keys + 1) / 2,
                              .start = block.is_first() ? TileStart::zero : TileStart::stored,
                              .upcoming = nullptr},
                             head_dim * sizeof(float)};
    multiply(group, head_dim, block.queries, block.scratch.sums);
  }
};

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_SSSE3
using UsualOperands = WordOperands<Pairs>;
#else
using UsualOperands = FloatOperands;  // products of words would take two of floats
#endif

}  // namespace int8
}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_ATTENTION_WORDS_INL_H_
