// What attention-inl.h multiplies: queries, keys, values and weights as float32 or, where there are products
// of bfloat16 pairs, rounded to them. Compiled once for each instruction set.
#if defined(VIT_KERNELS_ATTENTION_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_ATTENTION_OPERANDS_INL_H_
#undef VIT_KERNELS_ATTENTION_OPERANDS_INL_H_
#else
#define VIT_KERNELS_ATTENTION_OPERANDS_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/bf16-inl.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/rotate-inl.h"
#include "vit/kernels/tile-inl.h"
#include "vit/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::kernels::HWY_NAMESPACE {
namespace {

// Scores of a block (16 KiB for kPanel = 16) stay in the first-level cache; a multiple of every tile height.
constexpr size_t kBlockKeys = 252;

constexpr size_t round_to_line(size_t floats) {
  return (floats + 15) / 16 * 16;
}

struct AttentionScratch {
  float* queries;         // (d, kPanel)
  float* sums;            // (d, kPanel), the output before division
  float* scores;          // (kBlockKeys, kPanel)
  float* query_steps;     // (kPanel), of whole numbers
  float* weight_factors;  // (kBlockKeys), what makes them whole numbers
};

/// Keys [key, key + keys) and the panel of queries that meets them.
struct AttentionBlock {
  const AttentionArgs& args;
  const AttentionScratch& scratch;
  size_t key, keys;
  size_t queries;           // of kPanel
  float value_step = 0.0f;  // of whole numbers

  bool is_first() const { return key == 0; }
};

/// Rows of lanes, overwritten where queries are missing, as the panel of queries.
HWY_INLINE void transpose_queries(float* rows, size_t count, size_t lanes, const AttentionScratch& scratch) {
  const size_t used = HWY_MIN(kPanel, (count + kLanes - 1) / kLanes * kLanes);
  for (size_t i = count * lanes; i < used * lanes; ++i) rows[i] = 0.0f;
  transpose(rows, lanes, used, lanes, scratch.queries, kPanel);
}

/// Operands of which a lane is a float32, or a pair of bfloat16: what they have in common. A key is a row of
/// lanes; kColumns keys share a line of values. Parts: how rows are packed.
template <class Parts, class Form>
struct LaneOperands {
  static_assert(kBlockKeys % Form::kColumns == 0);

  static HWY_INLINE size_t key_lanes(size_t head_dim) {
    return (head_dim + Form::kColumns - 1) / Form::kColumns;
  }
  /// Where the values begin.
  static HWY_INLINE size_t key_floats(size_t num_tokens, size_t head_dim) {
    return round_to_line(num_tokens * key_lanes(head_dim));
  }
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return key_floats(num_tokens, head_dim) +
           round_to_line((num_tokens + Form::kColumns - 1) / Form::kColumns * head_dim);
  }

  static HWY_INLINE void pack(const KeyValueArgs& args) {
    const size_t lanes = key_lanes(args.head_dim);
    float* const values = args.packed + key_floats(args.num_tokens, args.head_dim);
    for (size_t t = args.first_token; t < args.last_token; ++t)
      Parts::pack_key(args, t, args.packed + t * lanes);
    for (size_t t = args.first_token; t < args.last_token; t += Form::kColumns)
      Parts::pack_values(args, t, values + t / Form::kColumns * args.head_dim);
  }

  /// Turned queries (count, d), times `scale`, as a panel; missing queries are zero. Overwrites `turned`.
  static HWY_INLINE void pack_queries(float* turned, size_t count, size_t head_dim, V scale,
                                      const AttentionScratch& scratch) {
    const size_t lanes = key_lanes(head_dim);
    for (size_t i = 0; i < count; ++i) {
      float* const query = turned + i * head_dim;
      scale_row(query, head_dim, scale, query);
      Parts::pack_query(query, head_dim, turned + i * lanes);
    }
    transpose_queries(turned, count, lanes, scratch);
  }

  /// scores (keys, kPanel) of a block.
  static HWY_INLINE void score(const AttentionBlock& block) {
    const size_t lanes = key_lanes(block.args.head_dim);
    multiply<Form>({block.args.packed + block.key * lanes, lanes, 1}, block.keys,
                   {block.scratch.queries, lanes}, block.queries, {TileStart::zero, block.scratch.scores});
  }

  /// What weigh() needs to know of the values.
  static HWY_INLINE void prepare_weights(AttentionBlock&) {}

  /// sums (d, kPanel) = or += values^T * weights.
  static HWY_INLINE void add_values(const AttentionBlock& block) {
    const size_t head_dim = block.args.head_dim;
    const float* const values = block.args.packed + key_floats(block.args.num_tokens, head_dim);
    multiply<Form>({values + block.key / Form::kColumns * head_dim, 1, head_dim}, head_dim,
                   {block.scratch.scores, (block.keys + Form::kColumns - 1) / Form::kColumns}, block.queries,
                   {block.is_first() ? TileStart::zero : TileStart::stored, block.scratch.sums});
  }
};

/// exp2(score - maximum) of keys k and k + 1, zero where there is none, as the lanes that lanes_of(k, first,
/// second) makes of them: in the place of the scores of a block, one vector of queries that begins at column
/// `column`. Returns their sum.
template <class LanesOf>
HWY_INLINE V weigh_pairs(const AttentionBlock& block, size_t column, V maximum, const LanesOf& lanes_of) {
  const D d;
  float* const HWY_RESTRICT scores = block.scratch.scores + column;
  V sum = hn::Zero(d);
  const auto weight = [&](size_t k) HWY_ATTR {
    return coarse_exp2_of_negative(hn::Sub(hn::Load(d, scores + k * kPanel), maximum));
  };
  for (size_t k = 0; k < block.keys; k += 2) {
    const V first = weight(k);
    const V second = k + 1 < block.keys ? weight(k + 1) : hn::Zero(d);
    sum = hn::Add(sum, hn::Add(first, second));
    hn::Store(lanes_of(k, first, second), d, scores + k / 2 * kPanel);
  }
  return sum;
}

struct FloatParts {
  static HWY_INLINE void pack_key(const KeyValueArgs& args, size_t t, float* key) {
    rotate_token(args.keys + t * args.key_stride, t, args.head_dim, args.rotation, key);
  }
  /// Rows [t, t + kColumns) of values as one line.
  static HWY_INLINE void pack_values(const KeyValueArgs& args, size_t t, float* line) {
    copy_row(args.values + t * args.value_stride, args.head_dim, line);
  }
  /// A query as a row of key_lanes, which may begin where the query does: here it is one.
  static HWY_INLINE void pack_query(const float*, size_t, float*) {}
};

struct FloatOperands : LaneOperands<FloatParts, FloatLines> {
  /// exp2(score - maximum) in the place of the scores of the keys of a block, one vector of queries that
  /// begins at column `column`; returns their sum.
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

#if HWY_TARGET == HWY_AVX3
/// Pairs of bfloat16: two channels of a key or query, two keys of a value or weight.
struct PairParts {
  static HWY_INLINE void pack_key(const KeyValueArgs& args, size_t t, float* key) {
    rotate_token(args.keys + t * args.key_stride, t, args.head_dim, args.rotation, args.scratch);
    bf16::round_row(args.scratch, args.head_dim, key);
  }
  static HWY_INLINE void pack_values(const KeyValueArgs& args, size_t t, float* line) {
    const D d;
    const float* const first = args.values + t * args.value_stride;
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

struct PairOperands : LaneOperands<PairParts, bf16::PairLines> {
  static HWY_INLINE V weigh(const AttentionBlock& block, size_t column, V maximum) {
    return weigh_pairs(block, column, maximum,
                       [](size_t, V first, V second) HWY_ATTR { return bf16::pairs(first, second); });
  }
};
#endif

}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_ATTENTION_OPERANDS_INL_H_
