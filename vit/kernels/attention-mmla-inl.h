// Attention in bfloat16 by the products of mmla-inl.h.
//
//   keys     (pairs of tokens, quads of channels)     operands of rows
//   queries  (quads of channels)                      lines, a panel of queries
//   values   (quads of tokens, pairs of channels)     operands of rows: channels along K = tokens
//   weights  (quads of tokens)                        lines, in place of their scores
#pragma once

#include "vit/kernels/attention-inl.h"
#include "vit/kernels/mmla-inl.h"
#include "vit/kernels/target-inl.h"

HWY_BEFORE_NAMESPACE();
namespace vit::internal::kernels::HWY_NAMESPACE {
namespace {
namespace mmla {

constexpr size_t kOperandFloats = kOperandBytes / sizeof(float);

/// Products of two rows and two columns with four numbers each: four for a sum.
struct TileChains {
  static constexpr size_t kPerLane = 4;
  static HWY_INLINE double run(size_t rounds, float* sink) {
    const uint8x16_t rows = rounded(set(0.5f), set(0.5f)), columns = rounded(set(0.25f), set(0.25f));
    const auto step = [&](V sum) HWY_ATTR {
      Bf16Products::multiply_add(sum.raw, rows, columns);
      return sum;
    };
    return run_chains<kPerLane>(rounds, step, sink);
  }
};

struct TileKeys {
  using Chains = TileChains;
  static HWY_INLINE size_t quads_of(size_t head_dim) { return lanes_for<QuadLines>(head_dim); }
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return round_to_line((num_tokens + 1) / 2 * quads_of(head_dim) * kOperandFloats);
  }
  static HWY_INLINE void pack(const KeyValueArgs& args, float* keys) {
    const size_t d = args.head_dim, quads = quads_of(d);
    for (size_t t = args.first_token; t < args.last_token; t += 2) {
      const bool has_second = t + 1 < args.last_token;
      for (size_t i = 0; i < (has_second ? 2 : 1); ++i)
        rotate_token(args.key_row(t + i), t + i, d, args.rotation, args.scratch + i * d);
      float* const to = keys + t / 2 * quads * kOperandFloats;
      for (size_t quad = 0; quad < quads; ++quad) {
        const float* const row = args.scratch + quad * 4;
        const V second = has_second ? load_up_to(row + d, d - quad * 4) : hn::Zero(D());
        store_operand(rounded(load_up_to(row, d - quad * 4), second),
                      reinterpret_cast<std::byte*>(to + quad * kOperandFloats));
      }
    }
  }
  static HWY_INLINE void pack_queries(float* rotated, size_t count, size_t head_dim, V scale,
                                      const AttentionScratch& scratch) {
    for (size_t i = 0; i < count; ++i)
      scale_row(rotated + i * head_dim, head_dim, scale, rotated + i * head_dim);
    for (size_t quad = 0; quad < quads_of(head_dim); ++quad) {
      QuadLines::store_columns(rotated + quad * 4, head_dim, count, scratch.queries + quad * QuadLines::kLine,
                               head_dim - quad * 4);
    }
  }
  static HWY_INLINE void score(const AttentionBlock& block) {
    const size_t quads = quads_of(block.args.head_dim);
    const float* const keys = block.packed_keys + block.key / 2 * quads * kOperandFloats;
    multiply_rows<Bf16Products, 1>(JoinedRows{reinterpret_cast<const std::byte*>(keys), quads * kOperandBytes,
                                              kOperandBytes, block.keys},
                                   Lines{reinterpret_cast<const std::byte*>(block.scratch.queries), quads, 0},
                                   TileStart::zero, block.scratch.scores);
  }
};
static_assert(kBlockKeys % 4 == 0);

struct TileValues : PlainScores {
  using Chains = TileChains;
  static HWY_INLINE size_t pairs_of(size_t head_dim) { return (head_dim + 1) / 2; }
  static HWY_INLINE size_t packed_floats(size_t num_tokens, size_t head_dim) {
    return round_to_line((num_tokens + 3) / 4 * pairs_of(head_dim) * kOperandFloats);
  }
  static HWY_INLINE void pack(const KeyValueArgs& args, float* values) {
    for (size_t t = args.first_token; t < args.last_token; t += 4) {
      for (size_t c = 0; c < args.head_dim; c += 4) {
        HWY_ALIGN float tokens[16], channels[16];
        for (size_t i = 0; i < 4; ++i) {
          const float* const from = args.value_row(t + i) + c;
          hn::Store(t + i < args.last_token ? load_up_to(from, args.head_dim - c) : hn::Zero(D()), D(),
                    tokens + 4 * i);
        }
        transpose_square(tokens, 4, channels, 4);
        float* const to = values + (t / 4 * pairs_of(args.head_dim) + c / 2) * kOperandFloats;
        for (size_t i = 0; i < HWY_MIN(size_t{4}, args.head_dim - c); i += 2) {
          store_operand(rounded(hn::Load(D(), channels + 4 * i), hn::Load(D(), channels + 4 * i + 4)),
                        reinterpret_cast<std::byte*>(to + i / 2 * kOperandFloats));
        }
      }
    }
  }
  static HWY_INLINE void prepare_weights(AttentionBlock&) {}

  static HWY_INLINE V weigh(const AttentionBlock& block, size_t column, V maximum) {
    float* const HWY_RESTRICT scores = block.scratch.scores + column;
    const auto weight = [&](size_t k) HWY_ATTR {
      if (k >= block.keys) return hn::Zero(D());
      return coarse_exp2_of_negative<1>(hn::Sub(hn::Load(D(), scores + k * kPanel), maximum));
    };
    V sum = hn::Zero(D());
    for (size_t k = 0; k < block.keys; k += 4) {
      const V w0 = weight(k), w1 = weight(k + 1), w2 = weight(k + 2), w3 = weight(k + 3);
      sum = hn::Add(sum, hn::Add(hn::Add(w0, w1), hn::Add(w2, w3)));
      const uint16x8_t even = vreinterpretq_u16_u8(rounded(w0, w2));  // (key, query): 00 01 02 03 20 21 22 23
      const uint16x8_t odd = vreinterpretq_u16_u8(rounded(w1, w3));
      const uint32x4_t low = vreinterpretq_u32_u16(vzip1q_u16(even, odd));   // 00 10, 01 11, ...
      const uint32x4_t high = vreinterpretq_u32_u16(vzip2q_u16(even, odd));  // 20 30, 21 31, ...
      // The first pair of these queries, then the second, in rows of scores that have been read.
      std::byte* const to = reinterpret_cast<std::byte*>(scores + k / 2 * kPanel);
      store_operand(vreinterpretq_u8_u32(vzip1q_u32(low, high)), to);
      store_operand(vreinterpretq_u8_u32(vzip2q_u32(low, high)), to + kPanel * sizeof(float));
    }
    return sum;
  }

  static HWY_INLINE void add_values(const AttentionBlock& block) {
    const size_t pairs = pairs_of(block.args.head_dim);
    const float* const values = block.packed_values + block.key / 4 * pairs * kOperandFloats;
    multiply_rows<Bf16Products, 1>(
        JoinedRows{reinterpret_cast<const std::byte*>(values), kOperandBytes, pairs * kOperandBytes,
                   block.args.head_dim},
        Lines{reinterpret_cast<const std::byte*>(block.scratch.scores), (block.keys + 3) / 4, 0},
        block.is_first() ? TileStart::zero : TileStart::stored, block.scratch.sums);
  }
};

using TileOperands = Operands<TileKeys, TileValues>;

}  // namespace mmla
}  // namespace
}  // namespace vit::internal::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
