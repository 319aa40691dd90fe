// Attention of one head, computed on its side: queries lie along the vectors, so that softmax needs no sum
// across lanes and neither keys nor values have to be transposed.
//   S^T (keys, queries)     = K (keys, d) * Q^T (d, queries)        one panel of kPanel queries at a time
//   O^T (d, queries)       += V^T (d, keys) * exp(S^T - maximum)    kBlockKeys keys at a time
// A running maximum and sum per query make the softmax exact over any number of blocks; memory does not grow
// with T.
#if defined(VIT_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_ATTENTION_INL_H_
#undef VIT_KERNELS_ATTENTION_INL_H_
#else
#define VIT_KERNELS_ATTENTION_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/math-inl.h"
#include "vit/kernels/rotate-inl.h"
#include "vit/kernels/rows-inl.h"
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

// packed: keys (T, d) turned, then values (T, d); rows dense, the second part on a new cache line
size_t attention_packed_floats(size_t num_tokens, size_t head_dim) noexcept {
  return 2 * round_to_line(num_tokens * head_dim);
}

size_t attention_scratch_floats(size_t head_dim) noexcept {
  return 2 * head_dim * kPanel + kBlockKeys * kPanel;
}

struct AttentionScratch {
  float* queries;  // (d, kPanel)
  float* sums;     // (d, kPanel), the output before division
  float* scores;   // (kBlockKeys, kPanel)
};

HWY_INLINE AttentionScratch lay_out(float* memory, size_t head_dim) {
  const size_t panel = head_dim * kPanel;
  return {memory, memory + panel, memory + 2 * panel};
}

void attention_pack(const KeyValueArgs& args) noexcept {
  float* const values = args.packed + round_to_line(args.num_tokens * args.head_dim);
  for (size_t t = 0; t < args.num_tokens; ++t) {
    rotate_token(args.keys + t * args.key_stride, t, args.head_dim, args.rotation,
                 args.packed + t * args.head_dim);
    copy_row(args.values + t * args.value_stride, args.head_dim, values + t * args.head_dim);
  }
}

/// Turned and scaled queries [first, first + count) as a panel; missing queries are zero. The scale includes
/// log2(e), so that the scores are exponents of two.
HWY_INLINE void pack_queries(const AttentionArgs& args, size_t first, size_t count,
                             const AttentionScratch& scratch) {
  const D d;
  const size_t used = HWY_MIN(kPanel, (count + kLanes - 1) / kLanes * kLanes);
  const V scale = set(args.scale * kLog2E);
  float* const rows = scratch.sums;  // (used, d), not needed yet
  for (size_t i = 0; i < count; ++i) {
    rotate_token(args.queries + (first + i) * args.query_stride, args.first_query + first + i, args.head_dim,
                 args.rotation, rows + i * args.head_dim);
  }
  for (size_t i = count * args.head_dim; i < used * args.head_dim; ++i) rows[i] = 0.0f;
  transpose(rows, args.head_dim, used, args.head_dim, scratch.queries, kPanel);
  for (size_t c = 0; c < args.head_dim; ++c) {
    for (size_t i = 0; i < used; i += kLanes) {
      float* const lanes = scratch.queries + c * kPanel + i;
      hn::Store(hn::Mul(hn::Load(d, lanes), scale), d, lanes);
    }
  }
}

/// scores (keys, kPanel) of the keys [key, key + keys).
HWY_INLINE void score_keys(const AttentionArgs& args, size_t key, size_t keys, size_t queries,
                           const AttentionScratch& scratch) {
  multiply({args.packed + key * args.head_dim, args.head_dim, 1}, keys, {scratch.queries, args.head_dim},
           queries, {TileStart::zero, scratch.scores});
}

/// Running softmax of one vector of queries.
struct Running {
  V maximum, sum;
};

/// Turns the scores of a block into weights against the new maximum and rescales what came before.
HWY_INLINE void weigh(float* HWY_RESTRICT scores, size_t keys, float* HWY_RESTRICT sums, size_t head_dim,
                      bool first_block, Running& running) {
  const D d;
  V maximum = running.maximum;
  for (size_t k = 0; k < keys; ++k) maximum = hn::Max(maximum, hn::Load(d, scores + k * kPanel));
  V sum = hn::Zero(d);
  for (size_t k = 0; k < keys; ++k) {
    const V weight = exp2_of_negative(hn::Sub(hn::Load(d, scores + k * kPanel), maximum));
    hn::Store(weight, d, scores + k * kPanel);
    sum = hn::Add(sum, weight);
  }
  if (!first_block) {
    const V factor = exp2_of_negative(hn::Sub(running.maximum, maximum));
    sum = hn::MulAdd(running.sum, factor, sum);
    for (size_t c = 0; c < head_dim; ++c) {
      hn::Store(hn::Mul(hn::Load(d, sums + c * kPanel), factor), d, sums + c * kPanel);
    }
  }
  running = {maximum, sum};
}

/// sums (d, kPanel) = or += values^T * weights for the keys [key, key + keys).
HWY_INLINE void add_values(const AttentionArgs& args, size_t key, size_t keys, size_t queries,
                           TileStart start, const AttentionScratch& scratch) {
  const float* const values =
      args.packed + round_to_line(args.num_tokens * args.head_dim) + key * args.head_dim;
  multiply({values, 1, args.head_dim}, args.head_dim, {scratch.scores, keys}, queries, {start, scratch.sums});
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

void attention(const AttentionArgs& args) noexcept {
  const AttentionScratch scratch = lay_out(args.scratch, args.head_dim);
  for (size_t first = 0; first < args.num_queries; first += kPanel) {
    const size_t count = HWY_MIN(kPanel, args.num_queries - first);
    pack_queries(args, first, count, scratch);
    const V lowest = set(-3.402823466e+38f);
    Running left{lowest, set(0.0f)};
    Running right{lowest, set(0.0f)};
    for (size_t key = 0; key < args.num_tokens; key += kBlockKeys) {
      const size_t keys = HWY_MIN(kBlockKeys, args.num_tokens - key);
      score_keys(args, key, keys, count, scratch);
      weigh(scratch.scores, keys, scratch.sums, args.head_dim, key == 0, left);
      if (count > kLanes) {
        weigh(scratch.scores + kLanes, keys, scratch.sums + kLanes, args.head_dim, key == 0, right);
      }
      add_values(args, key, keys, count, key == 0 ? TileStart::zero : TileStart::stored, scratch);
    }
    write_panel(args, first, count, left.sum, right.sum, scratch);
  }
}

void attention_probabilities(const AttentionArgs& args) noexcept {
  const AttentionScratch scratch = lay_out(args.scratch, args.head_dim);
  for (size_t first = 0; first < args.num_queries; first += kPanel) {
    const size_t count = HWY_MIN(kPanel, args.num_queries - first);
    pack_queries(args, first, count, scratch);
    for (size_t key = 0; key < args.num_tokens; key += kBlockKeys) {
      const size_t keys = HWY_MIN(kBlockKeys, args.num_tokens - key);
      score_keys(args, key, keys, count, scratch);
      transpose(scratch.scores, kPanel, keys, count, args.out + first * args.out_stride + key,
                args.out_stride);
    }
  }
  for (size_t i = 0; i < args.num_queries; ++i)
    softmax_row<Base::two>(args.out + i * args.out_stride, args.num_tokens);
}

}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_ATTENTION_INL_H_
