// The bias of attention scores (ScoreBias), added to the scores of a block while they are in the L1 cache: no
// memory grows with the product of queries and keys. A table is looked up for every query and key. Of tables
// for each axis, the products of a query with the vectors of all distances are computed once, (U + V) numbers
// for each query, and a key adds that of its row and that of its column.
#pragma once

#include "vit/kernels/attention-operands-inl.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/target-inl.h"
#include "vit/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {

static_assert(kAxesPadding >= kLanes && axis_terms(1, 0) >= kQueriesAtOnce + kPanel);

HWY_INLINE size_t num_terms(const ScoreBias& bias) {
  return bias.num_rows + bias.num_columns;
}

/// Terms of the panel that starts `first` queries after the first of kQueriesAtOnce; before those of all
/// panels there is room for one, query by query.
HWY_INLINE float* terms_of(const AttentionArgs& args, size_t first) {
  if (args.bias.axes == nullptr) return nullptr;
  return args.bias.terms + (kPanel + first) * num_terms(args.bias);
}

/// out (count) = log2(e) * query (d) times the columns of table (d, stride) from the first on.
HWY_INLINE void multiply_axis(const float* query, size_t head_dim, const float* table, size_t stride,
                              size_t count, float* out) {
  const D d;
  const V log2e = set(kLog2E);
  size_t e = 0;
  for (; e + 4 * kLanes <= count; e += 4 * kLanes) {
    V sum0 = hn::Zero(d), sum1 = sum0, sum2 = sum0, sum3 = sum0;
    const float* from = table + e;
    for (size_t c = 0; c < head_dim; ++c, from += stride) {
      const V q = set(query[c]);
      sum0 = hn::MulAdd(q, hn::LoadU(d, from), sum0);
      sum1 = hn::MulAdd(q, hn::LoadU(d, from + kLanes), sum1);
      sum2 = hn::MulAdd(q, hn::LoadU(d, from + 2 * kLanes), sum2);
      sum3 = hn::MulAdd(q, hn::LoadU(d, from + 3 * kLanes), sum3);
    }
    hn::StoreU(hn::Mul(sum0, log2e), d, out + e);
    hn::StoreU(hn::Mul(sum1, log2e), d, out + e + kLanes);
    hn::StoreU(hn::Mul(sum2, log2e), d, out + e + 2 * kLanes);
    hn::StoreU(hn::Mul(sum3, log2e), d, out + e + 3 * kLanes);
  }
  for (; e < count; e += kLanes) {
    V sum = hn::Zero(d);
    const float* from = table + e;
    for (size_t c = 0; c < head_dim; ++c, from += stride)
      sum = hn::MulAdd(set(query[c]), hn::LoadU(d, from), sum);
    sum = hn::Mul(sum, log2e);
    if (const size_t rest = count - e; rest < kLanes) {
      store_first(sum, rest, out + e);
    } else {
      hn::StoreU(sum, d, out + e);
    }
  }
}

/// terms (U + V, kPanel) of the queries [first, first + count); those of missing queries are zero.
HWY_INLINE void pack_terms(const AttentionArgs& args, size_t first, size_t count, float* terms) {
  const ScoreBias& bias = args.bias;
  const size_t width = num_terms(bias), num_rows = bias.num_rows, num_columns = bias.num_columns;
  float* const by_query = bias.terms;  // (count, U + V)
  for (size_t i = 0; i < count; ++i) {
    const size_t token = args.first_query + first + i;
    const float* const query = args.queries + (first + i) * args.query_stride;
    multiply_axis(query, args.head_dim, bias.axes + (num_rows - 1 - bias.rows[token]), bias.axes_stride,
                  num_rows, by_query + i * width);
    multiply_axis(query, args.head_dim,
                  bias.axes + (2 * num_rows - 1) + (num_columns - 1 - bias.columns[token]), bias.axes_stride,
                  num_columns, by_query + i * width + num_rows);
  }
  for (size_t i = count * width; i < kPanel * width; ++i) by_query[i] = 0.0f;
  transpose(by_query, width, kPanel, width, terms, kPanel);
}

HWY_INLINE void add_axes(const AttentionBlock& block) {
  const D d;
  const ScoreBias& bias = block.args.bias;
  const uint16_t* const rows = bias.rows + block.key;
  const uint16_t* const columns = bias.columns + block.key;
  const float* const HWY_RESTRICT of_columns = block.scratch.terms + bias.num_rows * kPanel;
  for (size_t k = 0; k < block.keys; ++k) {
    const float* const HWY_RESTRICT of_row = block.scratch.terms + rows[k] * kPanel;
    const float* const HWY_RESTRICT of_column = of_columns + columns[k] * kPanel;
    float* const HWY_RESTRICT scores = block.scratch.scores + k * kPanel;
    for (size_t i = 0; i < kPanel; i += kLanes) {
      const V term = hn::Add(hn::LoadU(d, of_row + i), hn::LoadU(d, of_column + i));
      hn::Store(hn::Add(hn::Load(d, scores + i), term), d, scores + i);
    }
  }
}

HWY_INLINE void add_table(const AttentionBlock& block, size_t first, size_t count) {
  const D d;
  const DI di;
  const ScoreBias& bias = block.args.bias;
  const int32_t* const query_places = bias.query_places + block.args.first_query + first;
  HWY_ALIGN int32_t places[kPanel];
  for (size_t i = 0; i < kPanel; ++i) places[i] = query_places[HWY_MIN(i, count - 1)];
  const V log2e = set(kLog2E);
  for (size_t i = 0; i < count; i += kLanes) {
    const hn::Vec<DI> query = hn::Load(di, places + i);
    for (size_t k = 0; k < block.keys; ++k) {
      float* const HWY_RESTRICT scores = block.scratch.scores + k * kPanel + i;
      const hn::Vec<DI> index = hn::Sub(query, hn::Set(di, bias.key_places[block.key + k]));
      hn::Store(hn::MulAdd(hn::GatherIndex(d, bias.table, index), log2e, hn::Load(d, scores)), d, scores);
    }
  }
}

/// Adds the bias of the queries [first, first + count) to the scores of a block.
HWY_INLINE void add_bias(const AttentionBlock& block, size_t first, size_t count) {
  if (block.args.bias.table != nullptr) add_table(block, first, count);
  if (block.args.bias.axes != nullptr) add_axes(block);
}

}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
