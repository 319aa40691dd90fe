// Attention of one head, computed on its side: queries lie along the vectors, so that softmax needs no sum
// across lanes and neither keys nor values have to be transposed.
//   S^T (keys, queries)     = K (keys, d) * Q^T (d, queries)        one panel of kPanel queries at a time
//   O^T (d, queries)       += V^T (d, keys) * exp(S^T - maximum)    kBlockKeys keys at a time
// A running maximum and sum per query make the softmax exact over any number of blocks; memory does not grow
// with T. Queries, keys, values and weights can be rounded, see attention-operands-inl.h and
// attention-int8-inl.h; softmax is float32 still.
#pragma once

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

inline size_t attention_scratch_floats(size_t head_dim) noexcept {
  return 2 * head_dim * kPanel + kBlockKeys * kPanel + kPanel;
}

HWY_INLINE AttentionScratch lay_out(float* memory, size_t head_dim) {
  const size_t panel = head_dim * kPanel;
  float* const scores = memory + 2 * panel;
  return {memory, memory + panel, scores, scores + kBlockKeys * kPanel};
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
  float* const rotated = scratch.sums;  // (count, d), in memory that is not needed yet
  for (size_t i = 0; i < count; ++i) {
    rotate_token(args.queries + (first + i) * args.query_stride, args.first_query + first + i, args.head_dim,
                 args.rotation, rotated + i * args.head_dim);
  }
  Operands::pack_queries(rotated, count, args.head_dim, set(args.scale * kLog2E), scratch);
}

/// The maximum of `start` and the scores of a block, one vector of queries that begins at column `column`;
/// four at a time, as one chain of maxima would wait for each of them.
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

/// Running softmax of one vector of queries.
struct Running {
  V maximum, sum;
};

/// Turns the scores of a block, one vector of queries that begins at column `column`, into weights against
/// the new maximum and rescales what came before.
template <class Operands>
HWY_INLINE void weigh(const AttentionBlock& block, size_t column, Running& running) {
  const D d;
  const V maximum = maximum_of<Operands>(block, column, running.maximum);
  V sum = Operands::weigh(block, column, maximum);
  if (!block.is_first()) {
    const V factor = exp2_of_negative(hn::Sub(running.maximum, maximum));
    sum = hn::MulAdd(running.sum, factor, sum);
    float* const HWY_RESTRICT sums = block.scratch.sums + column;
    for (size_t c = 0; c < block.args.head_dim; ++c) {
      hn::Store(hn::Mul(hn::Load(d, sums + c * kPanel), factor), d, sums + c * kPanel);
    }
  }
  running = {maximum, sum};
}

constexpr float kLowest = -3.402823466e+38f;

/// Keys that some of the queries [first, first + count) meet.
HWY_INLINE size_t end_of_keys(const AttentionArgs& args, size_t first, size_t count) {
  return args.causal ? HWY_MIN(args.num_tokens, args.first_query + first + count) : args.num_tokens;
}

/// Scores of keys behind a query of the panel that begins at `first`: their weights are zero. Each query
/// meets key 0, so that its first block has a maximum.
HWY_INLINE void hide_later_keys(const AttentionBlock& block, size_t first, size_t count) {
  const size_t token = block.args.first_query + first;  // of the first query, which meets the keys up to it
  for (size_t k = token < block.key ? 0 : token + 1 - block.key; k < block.keys; ++k) {
    float* const row = block.scratch.scores + k * kPanel;
    const size_t hidden = HWY_MIN(count, block.key + k - token);
    for (size_t i = 0; i < hidden; ++i) row[i] = kLowest;
  }
}

/// Divides by the sums of the weights and writes queries [first, first + count) as rows.
HWY_INLINE void write_panel(const AttentionArgs& args, size_t first, size_t count, V sum0, V sum1,
                            const AttentionScratch& scratch) {
  const D d;
  const V one = set(1.0f);
  const V inverse0 = hn::Div(one, sum0);
  const V inverse1 = hn::Div(one, sum1);
  for (size_t c = 0; c < args.head_dim; ++c) {
    float* const row = scratch.sums + c * kPanel;
    hn::Store(hn::Mul(hn::Load(d, row), inverse0), d, row);
    if (count > kLanes) hn::Store(hn::Mul(hn::Load(d, row + kLanes), inverse1), d, row + kLanes);
  }
  transpose(scratch.sums, kPanel, args.head_dim, count, args.out + first * args.out_stride, args.out_stride);
}

template <class Operands>
void attention(const AttentionArgs& args) noexcept {
  const AttentionScratch scratch = lay_out(args.scratch, args.head_dim);
  for (size_t first = 0; first < args.num_queries; first += kPanel) {
    const size_t count = HWY_MIN(kPanel, args.num_queries - first);
    pack_queries<Operands>(args, first, count, scratch);
    const V lowest = set(kLowest);
    const size_t end = end_of_keys(args, first, count);
    Running left{lowest, set(0.0f)};
    Running right{lowest, set(0.0f)};
    for (size_t key = 0; key < end; key += kBlockKeys) {
      AttentionBlock block = Operands::block(args, scratch, key, end, count);
      Operands::score(block);
      if (args.causal) hide_later_keys(block, first, count);
      Operands::prepare_weights(block);
      weigh<Operands>(block, 0, left);
      if (count > kLanes) weigh<Operands>(block, kLanes, right);
      Operands::add_values(block);
    }
    write_panel(args, first, count, left.sum, right.sum, scratch);
  }
}

template <class Operands>
void attention_probabilities(const AttentionArgs& args) noexcept {
  const AttentionScratch scratch = lay_out(args.scratch, args.head_dim);
  for (size_t first = 0; first < args.num_queries; first += kPanel) {
    const size_t count = HWY_MIN(kPanel, args.num_queries - first);
    pack_queries<Operands>(args, first, count, scratch);
    for (size_t key = 0; key < args.num_tokens; key += kBlockKeys) {
      const AttentionBlock block = Operands::block(args, scratch, key, args.num_tokens, count);
      Operands::score(block);
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
                                      .probabilities = attention_probabilities<Operands>};

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
