// Attention of one head, computed on its side: queries lie along the vectors, so that softmax needs no sum
// across lanes and neither keys nor values have to be transposed.
//   S^T (keys, queries)     = K (keys, d) * Q^T (d, queries)        one panel of kPanel queries at a time
//   O^T (d, queries)       += V^T (d, keys) * exp(S^T - maximum)    kBlockKeys keys at a time
// A running maximum and sum per query make the softmax exact over any number of blocks; memory does not grow
// with T. Where there are products of bfloat16 pairs, queries, keys, values and weights can be rounded to
// them; softmax and all sums are float32 still.
#if defined(VIT_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef VIT_KERNELS_ATTENTION_INL_H_
#undef VIT_KERNELS_ATTENTION_INL_H_
#else
#define VIT_KERNELS_ATTENTION_INL_H_
#endif

#include "hwy/highway.h"
#include "vit/kernels/bf16-inl.h"
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

// packed: keys (T, d) turned, then values (T, d); rows dense, the second part on a new cache line. As pairs
// they take less.
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

/// Operands as float32. A key is a row of lanes; a weight has a line of its own.
struct FloatOperands {
  using Form = FloatLines;

  static HWY_INLINE size_t key_lanes(size_t head_dim) { return head_dim; }
  static HWY_INLINE void pack_key(const KeyValueArgs& args, size_t t, float* key) {
    rotate_token(args.keys + t * args.key_stride, t, args.head_dim, args.rotation, key);
  }
  /// Rows [t, t + kColumns) of values as one line.
  static HWY_INLINE void pack_values(const KeyValueArgs& args, size_t t, float* line) {
    copy_row(args.values + t * args.value_stride, args.head_dim, line);
  }
  /// A query that is turned already, times `scale`, as a row of key_lanes.
  static HWY_INLINE void pack_query(float* turned, size_t head_dim, V scale, float* row) {
    scale_row(turned, head_dim, scale, row);
  }
  /// exp2(score - maximum) in the place of the scores of `keys` keys, one vector of queries; returns their
  /// sum.
  static HWY_INLINE V weigh(float* HWY_RESTRICT scores, size_t keys, V maximum) {
    const D d;
    V sum = hn::Zero(d);
    for (size_t k = 0; k < keys; ++k) {
      const V weight = exp2_of_negative(hn::Sub(hn::Load(d, scores + k * kPanel), maximum));
      hn::Store(weight, d, scores + k * kPanel);
      sum = hn::Add(sum, weight);
    }
    return sum;
  }
};

#if HWY_TARGET == HWY_AVX3
/// Operands as pairs of bfloat16: two channels of a key or query, two keys of a value or weight.
struct PairOperands {
  using Form = bf16::PairLines;

  static HWY_INLINE size_t key_lanes(size_t head_dim) { return (head_dim + 1) / 2; }
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
  static HWY_INLINE void pack_query(float* turned, size_t head_dim, V scale, float* row) {
    scale_row(turned, head_dim, scale, turned);
    bf16::round_row(turned, head_dim, row);
  }
  static HWY_INLINE V weigh(float* HWY_RESTRICT scores, size_t keys, V maximum) {
    const D d;
    V sum = hn::Zero(d);
    const auto weight = [&](size_t k) HWY_ATTR {
      return coarse_exp2_of_negative(hn::Sub(hn::Load(d, scores + k * kPanel), maximum));
    };
    for (size_t k = 0; k < keys; k += 2) {
      const V first = weight(k);
      const V second = k + 1 < keys ? weight(k + 1) : hn::Zero(d);
      sum = hn::Add(sum, hn::Add(first, second));
      hn::Store(bf16::pairs(first, second), d, scores + k / 2 * kPanel);
    }
    return sum;
  }
};
#endif

/// Where the values begin.
template <class Operands>
HWY_INLINE size_t key_floats(size_t num_tokens, size_t head_dim) {
  return round_to_line(num_tokens * Operands::key_lanes(head_dim));
}

template <class Operands>
void attention_pack(const KeyValueArgs& args) noexcept {
  constexpr size_t kColumns = Operands::Form::kColumns;
  const size_t lanes = Operands::key_lanes(args.head_dim);
  float* const values = args.packed + key_floats<Operands>(args.num_tokens, args.head_dim);
  for (size_t t = args.first_token; t < args.last_token; ++t) {
    Operands::pack_key(args, t, args.packed + t * lanes);
  }
  for (size_t t = args.first_token; t < args.last_token; t += kColumns) {
    Operands::pack_values(args, t, values + t / kColumns * args.head_dim);
  }
}

/// Turned and scaled queries [first, first + count) as a panel; missing queries are zero. The scale includes
/// log2(e), so that the scores are exponents of two.
template <class Operands>
HWY_INLINE void pack_queries(const AttentionArgs& args, size_t first, size_t count,
                             const AttentionScratch& scratch) {
  const size_t used = HWY_MIN(kPanel, (count + kLanes - 1) / kLanes * kLanes);
  const size_t lanes = Operands::key_lanes(args.head_dim);
  const V scale = set(args.scale * kLog2E);
  // In memory that is not needed yet.
  float* const turned = scratch.queries;  // (d)
  float* const rows = scratch.sums;       // (used, lanes)
  for (size_t i = 0; i < count; ++i) {
    rotate_token(args.queries + (first + i) * args.query_stride, args.first_query + first + i, args.head_dim,
                 args.rotation, turned);
    Operands::pack_query(turned, args.head_dim, scale, rows + i * lanes);
  }
  for (size_t i = count * lanes; i < used * lanes; ++i) rows[i] = 0.0f;
  transpose(rows, lanes, used, lanes, scratch.queries, kPanel);
}

/// scores (keys, kPanel) of the keys [key, key + keys).
template <class Operands>
HWY_INLINE void score_keys(const AttentionArgs& args, size_t key, size_t keys, size_t queries,
                           const AttentionScratch& scratch) {
  const size_t lanes = Operands::key_lanes(args.head_dim);
  multiply<typename Operands::Form>({args.packed + key * lanes, lanes, 1}, keys, {scratch.queries, lanes},
                                    queries, {TileStart::zero, scratch.scores});
}

/// The maximum of `start` and the scores of `keys` keys, one vector of queries; four at a time, as one chain
/// of maxima would wait for each of them.
HWY_INLINE V maximum_of(const float* HWY_RESTRICT scores, size_t keys, V start) {
  const D d;
  V max0 = start, max1 = start, max2 = start, max3 = start;
  size_t k = 0;
  for (; k + 4 <= keys; k += 4) {
    max0 = hn::Max(max0, hn::Load(d, scores + k * kPanel));
    max1 = hn::Max(max1, hn::Load(d, scores + (k + 1) * kPanel));
    max2 = hn::Max(max2, hn::Load(d, scores + (k + 2) * kPanel));
    max3 = hn::Max(max3, hn::Load(d, scores + (k + 3) * kPanel));
  }
  for (; k < keys; ++k) max0 = hn::Max(max0, hn::Load(d, scores + k * kPanel));
  return hn::Max(hn::Max(max0, max1), hn::Max(max2, max3));
}

/// Running softmax of one vector of queries.
struct Running {
  V maximum, sum;
};

/// Turns the scores of a block into weights against the new maximum and rescales what came before.
template <class Operands>
HWY_INLINE void weigh(float* HWY_RESTRICT scores, size_t keys, float* HWY_RESTRICT sums, size_t head_dim,
                      bool first_block, Running& running) {
  const D d;
  const V maximum = maximum_of(scores, keys, running.maximum);
  V sum = Operands::weigh(scores, keys, maximum);
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
template <class Operands>
HWY_INLINE void add_values(const AttentionArgs& args, size_t key, size_t keys, size_t queries,
                           TileStart start, const AttentionScratch& scratch) {
  constexpr size_t kColumns = Operands::Form::kColumns;
  static_assert(kBlockKeys % kColumns == 0);
  const float* const values =
      args.packed + key_floats<Operands>(args.num_tokens, args.head_dim) + key / kColumns * args.head_dim;
  multiply<typename Operands::Form>({values, 1, args.head_dim}, args.head_dim,
                                    {scratch.scores, (keys + kColumns - 1) / kColumns}, queries,
                                    {start, scratch.sums});
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
    const V lowest = set(-3.402823466e+38f);
    Running left{lowest, set(0.0f)};
    Running right{lowest, set(0.0f)};
    for (size_t key = 0; key < args.num_tokens; key += kBlockKeys) {
      const size_t keys = HWY_MIN(kBlockKeys, args.num_tokens - key);
      score_keys<Operands>(args, key, keys, count, scratch);
      weigh<Operands>(scratch.scores, keys, scratch.sums, args.head_dim, key == 0, left);
      if (count > kLanes) {
        weigh<Operands>(scratch.scores + kLanes, keys, scratch.sums + kLanes, args.head_dim, key == 0, right);
      }
      add_values<Operands>(args, key, keys, count, key == 0 ? TileStart::zero : TileStart::stored, scratch);
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
      const size_t keys = HWY_MIN(kBlockKeys, args.num_tokens - key);
      score_keys<Operands>(args, key, keys, count, scratch);
      transpose(scratch.scores, kPanel, keys, count, args.out + first * args.out_stride + key,
                args.out_stride);
    }
  }
  for (size_t i = 0; i < args.num_queries; ++i)
    softmax_row<Base::two>(args.out + i * args.out_stride, args.num_tokens);
}

template <class Operands>
constexpr AttentionKernels kAttention{.pack = attention_pack<Operands>,
                                      .attend = attention<Operands>,
                                      .probabilities = attention_probabilities<Operands>};

}  // namespace
}  // namespace vit::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // VIT_KERNELS_ATTENTION_INL_H_
