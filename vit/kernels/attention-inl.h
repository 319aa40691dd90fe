// Attention of one head, computed transposed: queries lie along the vectors, so that softmax needs no sum
// across lanes and neither keys nor values have to be transposed.
//   S^T (keys, queries)     = K (keys, d) * Q^T (d, queries)        one panel of kPanel queries at a time
//   O^T (d, queries)       += V^T (d, keys) * exp(S^T - maximum)    kBlockKeys keys at a time
// A running maximum and sum per query make the softmax exact over any number of blocks; memory does not grow
// with T. A block of keys and values is used by the panels of kQueriesAtOnce queries, one after the other,
// before the next one: otherwise long sequences would be read from memory completely for every panel. Each
// query processes the keys in order. Queries, keys, values and weights can be rounded, see
// attention-operands-inl.h and attention-int8-inl.h; softmax remains float32.
#pragma once

#include "vit/kernels/attention-bias-inl.h"
#include "vit/kernels/attention-int8-inl.h"
#include "vit/kernels/attention-operands-inl.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/rotate-inl.h"
#include "vit/kernels/rows-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

template <class Operands>
size_t attention_packed_floats(size_t num_tokens, size_t head_dim) noexcept {
  return Operands::packed_floats(num_tokens, head_dim);
}

static_assert(kQueriesAtOnce % kPanel == 0);

/// Queries of a panel: a line may hold four channels, of which a head of one channel has a quarter.
HWY_INLINE size_t query_floats(size_t head_dim) {
  return HWY_MAX(head_dim, size_t{2}) * kPanel;
}

/// The state of a panel between blocks of keys.
HWY_INLINE size_t panel_floats(size_t head_dim) {
  return query_floats(head_dim) + (head_dim + 3) * kPanel;
}

inline size_t attention_scratch_floats(size_t head_dim) noexcept {
  return kBlockKeys * kPanel + kQueriesAtOnce / kPanel * panel_floats(head_dim);
}

/// Scratch of the panel that starts `first` queries after the first of kQueriesAtOnce.
HWY_INLINE AttentionScratch scratch_of(const AttentionArgs& args, size_t first) {
  float* const kept = args.scratch + kBlockKeys * kPanel + first / kPanel * panel_floats(args.head_dim);
  float* const sums = kept + query_floats(args.head_dim);
  float* const query_steps = sums + args.head_dim * kPanel;
  return {.queries = kept,
          .sums = sums,
          .scores = args.scratch,
          .query_steps = query_steps,
          .maxima = query_steps + kPanel,
          .weight_sums = query_steps + 2 * kPanel,
          .terms = terms_of(args, first)};
}

template <class Operands>
void attention_pack(const KeyValueArgs& args) noexcept {
  Operands::pack(args);
}

/// Rotated and scaled queries [first, first + count) as a panel; missing queries are zero. The scale includes
/// log2(e), so that the scores are exponents of two.
template <class Operands>
HWY_INLINE void pack_queries(const AttentionArgs& args, size_t first, size_t count,
                             const AttentionScratch& scratch) {
  if (args.bias.axes != nullptr) pack_terms(args, first, count, scratch.terms);
  float* const rotated = scratch.sums;  // (count, d), in memory not used yet
  for (size_t i = 0; i < count; ++i) {
    rotate_token(args.queries + (first + i) * args.query_stride, args.first_query + first + i, args.head_dim,
                 args.rotation, rotated + i * args.head_dim);
  }
  Operands::pack_queries(rotated, count, args.head_dim, set(args.scale * kLog2E), scratch);
}

constexpr float kLowest = -3.402823466e+38f;

/// The maximum of `start` and the scores of a block, one vector of queries that begins at column `column`;
/// four at a time, because a single chain of maxima would be latency-bound.
template <class Operands>
HWY_INLINE V maximum_of(const AttentionBlock& block, size_t column, V start) {
  const auto score = [&](size_t k) HWY_ATTR { return Operands::exponent(block, column, k); };
  V max0 = start, max1 = start, max2 = start, max3 = start;
  size_t k = 0;
  for (; k + 4 <= block.keys; k += 4) {
    max0 = hn::Max(max0, score(k));
    max1 = hn::Max(max1, score(k + 1));
    max2 = hn::Max(max2, score(k + 2));
    max3 = hn::Max(max3, score(k + 3));
  }
  for (; k < block.keys; ++k) max0 = hn::Max(max0, score(k));
  return hn::Max(hn::Max(max0, max1), hn::Max(max2, max3));
}

/// Converts the scores of a block, one vector of queries that begins at column `column`, into weights against
/// the new maximum and rescales earlier sums.
template <class Operands>
HWY_INLINE void weigh(const AttentionBlock& block, size_t column) {
  const D d;
  float* const HWY_RESTRICT kept_maximum = block.scratch.maxima + column;
  float* const HWY_RESTRICT kept_sum = block.scratch.weight_sums + column;
  const V before = block.is_first() ? set(kLowest) : hn::Load(d, kept_maximum);
  const V maximum = maximum_of<Operands>(block, column, before);
  V sum = Operands::weigh(block, column, maximum);
  if (!block.is_first()) {
    const V factor = exp2_of_negative(hn::Sub(before, maximum));
    sum = hn::MulAdd(hn::Load(d, kept_sum), factor, sum);
    float* const HWY_RESTRICT sums = block.scratch.sums + column;
    for (size_t c = 0; c < block.args.head_dim; ++c) {
      hn::Store(hn::Mul(hn::Load(d, sums + c * kPanel), factor), d, sums + c * kPanel);
    }
  }
  hn::Store(maximum, d, kept_maximum);
  hn::Store(sum, d, kept_sum);
}

/// End of the keys that the queries [first, first + count) attend to.
HWY_INLINE size_t end_of_keys(const AttentionArgs& args, size_t first, size_t count) {
  return args.causal ? HWY_MIN(args.num_tokens, args.first_query + first + count) : args.num_tokens;
}

/// Masks scores of keys after a query of the panel that starts at `first`: their weights are zero. Each query
/// attends to key 0, so that its first block has a maximum.
HWY_INLINE void hide_later_keys(const AttentionBlock& block, size_t first, size_t count) {
  const size_t token = block.args.first_query + first;  // of the first query, which attends to keys up to it
  for (size_t k = token < block.key ? 0 : token + 1 - block.key; k < block.keys; ++k) {
    float* const row = block.scratch.scores + k * kPanel;
    const size_t hidden = HWY_MIN(count, block.key + k - token);
    for (size_t i = 0; i < hidden; ++i) row[i] = kLowest;
  }
}

/// Scores of keys that are hidden from queries of the panel that begins at `first`. A block of hidden keys
/// only counts until one that is read takes the maximum, and with it what came before, away.
HWY_INLINE void hide_keys(const AttentionBlock& block, size_t first, size_t count) {
  const HiddenKeys& hidden = block.args.hidden;
  const size_t token = block.args.first_query + first, first_key = block.args.num_tokens - hidden.keys;
  if (token >= hidden.queries) return;
  const size_t queries = HWY_MIN(count, hidden.queries - token);
  for (size_t k = block.key < first_key ? first_key - block.key : 0; k < block.keys; ++k) {
    float* const row = block.scratch.scores + k * kPanel;
    const uint8_t* const flags = hidden.flags + token * hidden.keys + (block.key + k - first_key);
    for (size_t i = 0; i < queries; ++i) {
      if (flags[i * hidden.keys] != 0) row[i] = kLowest;
    }
  }
}

/// Keys from `key` on, at most kBlockKeys, and the queries [first, first + count).
template <class Operands>
HWY_INLINE void meet_keys(const AttentionArgs& args, size_t first, size_t count, size_t key,
                          const AttentionScratch& scratch) {
  const size_t end = end_of_keys(args, first, count);
  if (key >= end) return;
  AttentionBlock block = Operands::block(args, scratch, key, end, count);
  Operands::score(block);
  add_bias(block, first, count);
  if (args.causal) hide_later_keys(block, first, count);
  if (args.hidden.flags != nullptr) hide_keys(block, first, count);
  Operands::prepare_weights(block);
  weigh<Operands>(block, 0);
  if (count > kLanes) weigh<Operands>(block, kLanes);
  Operands::add_values(block);
}

/// Divides by the sums of the weights and writes queries [first, first + count) as rows.
HWY_INLINE void write_panel(const AttentionArgs& args, size_t first, size_t count,
                            const AttentionScratch& scratch) {
  const D d;
  const V one = set(1.0f);
  const V inverse0 = hn::Div(one, hn::Load(d, scratch.weight_sums));
  const V inverse1 = count > kLanes ? hn::Div(one, hn::Load(d, scratch.weight_sums + kLanes)) : inverse0;
  for (size_t c = 0; c < args.head_dim; ++c) {
    float* const row = scratch.sums + c * kPanel;
    hn::Store(hn::Mul(hn::Load(d, row), inverse0), d, row);
    if (count > kLanes) hn::Store(hn::Mul(hn::Load(d, row + kLanes), inverse1), d, row + kLanes);
  }
  transpose(scratch.sums, kPanel, args.head_dim, count, args.out + first * args.out_stride, args.out_stride);
}

/// Calls run(first, count, scratch) for every panel of the queries [begin, end), at most kQueriesAtOnce.
template <class Run>
HWY_INLINE void for_each_panel(const AttentionArgs& args, size_t begin, size_t end, const Run& run) {
  for (size_t first = begin; first < end; first += kPanel)
    run(first, HWY_MIN(kPanel, end - first), scratch_of(args, first - begin));
}

template <class Operands>
void attention(const AttentionArgs& args) noexcept {
  for (size_t begin = 0; begin < args.num_queries; begin += kQueriesAtOnce) {
    const size_t end = HWY_MIN(begin + kQueriesAtOnce, args.num_queries);
    for_each_panel(args, begin, end,
                   [&](size_t first, size_t count, const AttentionScratch& scratch)
                       HWY_ATTR { pack_queries<Operands>(args, first, count, scratch); });
    const size_t last_key = end_of_keys(args, begin, end - begin);
    for (size_t key = 0; key < last_key; key += kBlockKeys) {
      for_each_panel(args, begin, end,
                     [&](size_t first, size_t count, const AttentionScratch& scratch)
                         HWY_ATTR { meet_keys<Operands>(args, first, count, key, scratch); });
    }
    for_each_panel(args, begin, end,
                   [&](size_t first, size_t count, const AttentionScratch& scratch)
                       HWY_ATTR { write_panel(args, first, count, scratch); });
  }
}

template <class Operands>
void attention_probabilities(const AttentionArgs& args) noexcept {
  const AttentionScratch scratch = scratch_of(args, 0);
  for (size_t first = 0; first < args.num_queries; first += kPanel) {
    const size_t count = HWY_MIN(kPanel, args.num_queries - first);
    pack_queries<Operands>(args, first, count, scratch);
    for (size_t key = 0; key < args.num_tokens; key += kBlockKeys) {
      const AttentionBlock block = Operands::block(args, scratch, key, args.num_tokens, count);
      Operands::score(block);
      add_bias(block, first, count);
      if (args.hidden.flags != nullptr) hide_keys(block, first, count);
      transpose(scratch.scores, kPanel, block.keys, count, args.out + first * args.out_stride + key,
                args.out_stride);
    }
  }
  for (size_t i = 0; i < args.num_queries; ++i) {
    float* const row = args.out + i * args.out_stride;
    const size_t end = end_of_keys(args, i, 1);
    softmax_row(row, end);
    for (size_t key = end; key < args.num_tokens; ++key) row[key] = 0.0f;
  }
}

template <class Operands>
constexpr AttentionKernels kAttention{.packed_floats = attention_packed_floats<Operands>,
                                      .scratch_floats = attention_scratch_floats,
                                      .pack = attention_pack<Operands>,
                                      .attend = attention<Operands>,
                                      .probabilities = attention_probabilities<Operands>,
                                      .multiply_adds = Operands::kMultiplyAdds};

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
