// The operands of attention-inl.h: queries, keys, values and weights as float32 or, if there are products
// of bfloat16 pairs, rounded to them.
#pragma once

#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/chains-inl.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/rotate-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/tile-inl.h"
#include "vit/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

// Scores of a block (16 KiB for kPanel = 16) stay in the L1 cache; a multiple of every tile height.
constexpr size_t kBlockKeys = 252;

constexpr size_t round_to_line(size_t floats) {
  return (floats + 15) / 16 * 16;
}

/// Scratch of one panel of queries; the scores are those of one block, shared by all panels.
struct AttentionScratch {
  float* queries;      // (d, kPanel)
  float* sums;         // (d, kPanel), the output before division
  float* scores;       // (kBlockKeys, kPanel)
  float* query_steps;  // (kPanel), of integers
  float* maxima;       // (kPanel), of the scores so far
  float* weight_sums;  // (kPanel), of the weights so far
  float* terms;        // (U + V, kPanel), bias of the keys of each row and column of a grid, or null
};

/// Keys [key, key + keys) and the panel of queries that attends to them.
struct AttentionBlock {
  const AttentionArgs& args;
  const AttentionScratch& scratch;
  const float* packed_keys;    // of all tokens
  const float* packed_values;  // of all tokens
  size_t key, keys;
  size_t queries;                    // of kPanel
  const float* exponents = nullptr;  // of quantized values, one for each key

  bool is_first() const { return key == 0; }
};

/// The operands of a head: Keys compute the scores, Values the sums of values. Each packs its part of the
/// tokens into packed_floats floats, whole cache lines.
template <class Keys, class Values>
struct Operands {
  /// The products of both in registers.
  static constexpr auto kMultiplyAdds = run_both_chains<typename Keys::Chains, typename Values::Chains>;
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return Keys::packed_floats(num_tokens, head_dim) + Values::packed_floats(num_tokens, head_dim);
  }
  static HWY_INLINE void pack(const KeyValueArgs& args) {
    Keys::pack(args, args.packed);
    Values::pack(args, args.packed + Keys::packed_floats(args.num_tokens, args.head_dim));
  }
  /// Rotated queries (count, d), times `scale`, as a panel; missing queries are zero. Overwrites `rotated`.
  static HWY_INLINE void pack_queries(float* rotated, size_t count, size_t head_dim, V scale,
                                      const AttentionScratch& scratch) {
    Keys::pack_queries(rotated, count, head_dim, scale, scratch);
  }
  /// The keys from `key` to `end`, exclusive.
  static HWY_INLINE AttentionBlock block(const AttentionArgs& args, const AttentionScratch& scratch,
                                         size_t key, size_t end, size_t queries) {
    const float* const values = args.packed + Keys::packed_floats(args.num_tokens, args.head_dim);
    return {args, scratch, args.packed, values, key, HWY_MIN(kBlockKeys, end - key), queries};
  }
  /// scores (keys, kPanel) of a block.
  static HWY_INLINE void score(const AttentionBlock& block) { Keys::score(block); }
  /// Prepares the data about values that weigh() needs.
  static HWY_INLINE void prepare_weights(AttentionBlock& block) { Values::prepare_weights(block); }
  /// The binary logarithm of the weight of key `key` of a block in the sums of values, up to a factor: its
  /// score, plus a term from Values. For one vector of queries that starts at column `column`.
  static HWY_INLINE V exponent(const AttentionBlock& block, size_t column, size_t key) {
    return Values::exponent(block, column, key);
  }
  /// Replaces the scores of a block by exp2(exponent - maximum), in the format of Values; returns the sum of
  /// the weights.
  static HWY_INLINE V weigh(const AttentionBlock& block, size_t column, V maximum) {
    return Values::weigh(block, column, maximum);
  }
  /// sums (d, kPanel) = or += values^T * weights.
  static HWY_INLINE void add_values(const AttentionBlock& block) { Values::add_values(block); }
};

/// Transposes rows of lanes into the panel of queries; rows of missing queries are overwritten.
HWY_INLINE void transpose_queries(float* rows, size_t count, size_t lanes, const AttentionScratch& scratch) {
  const size_t used = HWY_MIN(kPanel, (count + kLanes - 1) / kLanes * kLanes);
  for (size_t i = count * lanes; i < used * lanes; ++i) rows[i] = 0.0f;
  transpose(rows, lanes, used, lanes, scratch.queries, kPanel);
}

/// Keys and queries as rows of lanes, each a float32 or a pair of bfloat16. Parts: how rows are packed.
template <class Parts, class Form>
struct LaneKeys {
  using Chains = ProductChains<Form>;
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return round_to_line(num_tokens * lanes_for<Form>(head_dim));
  }
  static HWY_INLINE void pack(const KeyValueArgs& args, float* keys) {
    const size_t lanes = lanes_for<Form>(args.head_dim);
    for (size_t t = args.first_token; t < args.last_token; ++t) Parts::pack_key(args, t, keys + t * lanes);
  }
  static HWY_INLINE void pack_queries(float* rotated, size_t count, size_t head_dim, V scale,
                                      const AttentionScratch& scratch) {
    const size_t lanes = lanes_for<Form>(head_dim);
    for (size_t i = 0; i < count; ++i) {
      float* const query = rotated + i * head_dim;
      scale_row(query, head_dim, scale, query);
      Parts::pack_query(query, head_dim, rotated + i * lanes);
    }
    transpose_queries(rotated, count, lanes, scratch);
  }
  static HWY_INLINE void score(const AttentionBlock& block) {
    const size_t lanes = lanes_for<Form>(block.args.head_dim);
    multiply<Form>({block.packed_keys + block.key * lanes, lanes, 1}, block.keys,
                   {block.scratch.queries, lanes}, block.queries, {TileStart::zero, block.scratch.scores});
  }
};

/// Values that add nothing to the scores.
struct PlainScores {
  static HWY_INLINE V exponent(const AttentionBlock& block, size_t column, size_t key) {
    return hn::Load(D(), block.scratch.scores + key * kPanel + column);
  }
};

/// Values as lanes, each a float32 or a pair of bfloat16: kColumns of them share a line.
template <class Parts, class Form>
struct LaneValues : PlainScores {
  static_assert(kBlockKeys % Form::kColumns == 0);
  using Chains = ProductChains<Form>;

  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return round_to_line(lanes_for<Form>(num_tokens) * head_dim);
  }
  static HWY_INLINE void pack(const KeyValueArgs& args, float* values) {
    for (size_t t = args.first_token; t < args.last_token; t += Form::kColumns)
      Parts::pack_values(args, t, values + t / Form::kColumns * args.head_dim);
  }
  static HWY_INLINE void prepare_weights(AttentionBlock&) {}
  static HWY_INLINE void add_values(const AttentionBlock& block) {
    const size_t head_dim = block.args.head_dim;
    multiply<Form>({block.packed_values + block.key / Form::kColumns * head_dim, 1, head_dim}, head_dim,
                   {block.scratch.scores, lanes_for<Form>(block.keys)}, block.queries,
                   {block.is_first() ? TileStart::zero : TileStart::stored, block.scratch.sums});
  }
};

struct FloatParts {
  static HWY_INLINE void pack_key(const KeyValueArgs& args, size_t t, float* key) {
    rotate_token(args.key_row(t), t, args.head_dim, args.rotation, key);
  }
  /// Rows [t, t + kColumns) of values as one line.
  static HWY_INLINE void pack_values(const KeyValueArgs& args, size_t t, float* line) {
    copy_row(args.value_row(t), args.head_dim, line);
  }
  /// A query as a row of lanes, which may start at the query's address: here it is the query.
  static HWY_INLINE void pack_query(const float*, size_t, float*) {}
};

using FloatKeys = LaneKeys<FloatParts, FloatLines>;
struct FloatValues : LaneValues<FloatParts, FloatLines> {
  static HWY_INLINE V weigh(const AttentionBlock& block, size_t column, V maximum) {
    const D d;
    float* const HWY_RESTRICT scores = block.scratch.scores + column;
    V sum = hn::Zero(d);
    for (size_t k = 0; k < block.keys; ++k) {
      const V weight = exp2_of_negative(hn::Sub(hn::Load(d, scores + k * kPanel), maximum));
      hn::Store(weight, d, scores + k * kPanel);
      sum = hn::Add(sum, weight);
    }
    return sum;
  }
};
using FloatOperands = Operands<FloatKeys, FloatValues>;

#if HWY_TARGET == HWY_AVX3
/// Pairs of bfloat16: two channels of a key or query, two keys of a value or weight.
struct PairParts {
  static HWY_INLINE void pack_key(const KeyValueArgs& args, size_t t, float* key) {
    rotate_token(args.key_row(t), t, args.head_dim, args.rotation, args.scratch);
    bf16::round_row(args.scratch, args.head_dim, key);
  }
  static HWY_INLINE void pack_values(const KeyValueArgs& args, size_t t, float* line) {
    const D d;
    const float* const first = args.value_row(t);
    const float* const second = t + 1 < args.num_tokens ? first + args.value_stride : nullptr;
    size_t c = 0;
    for (; c + kLanes <= args.head_dim; c += kLanes) {
      hn::StoreU(bf16::pairs(hn::LoadU(d, first + c), second ? hn::LoadU(d, second + c) : hn::Zero(d)), d,
                 line + c);
    }
    if (const size_t rest = args.head_dim - c; rest > 0) {
      const V upper = second ? load_first(second + c, rest, 0.0f) : hn::Zero(d);
      store_first(bf16::pairs(load_first(first + c, rest, 0.0f), upper), rest, line + c);
    }
  }
  static HWY_INLINE void pack_query(const float* query, size_t head_dim, float* row) {
    bf16::round_row(query, head_dim, row);
  }
};

using PairKeys = LaneKeys<PairParts, bf16::PairLines>;
struct PairValues : LaneValues<PairParts, bf16::PairLines> {
  /// The sum is that of the rounded weights, so that their common error cancels in the division.
  static HWY_INLINE V weigh(const AttentionBlock& block, size_t column, V maximum) {
    const D d;
    float* const HWY_RESTRICT scores = block.scratch.scores + column;
    const auto weight = [&](size_t k) HWY_ATTR {
      return coarse_exp2_of_negative<1>(hn::Sub(hn::Load(d, scores + k * kPanel), maximum));
    };
    const V ones = hn::BitCast(d, hn::Set(DI(), 0x3F803F80));
    V sum = hn::Zero(d);
    for (size_t k = 0; k < block.keys; k += 2) {
      const V first = weight(k);
      const V second = k + 1 < block.keys ? weight(k + 1) : hn::Zero(d);
      const V pair = bf16::pairs(first, second);
      sum = bf16::PairLines::multiply_add(pair, ones, sum);
      hn::Store(pair, d, scores + k / 2 * kPanel);
    }
    return sum;
  }
};
using PairOperands = Operands<PairKeys, PairValues>;
#endif

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
