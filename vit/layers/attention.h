// Multi-head self-attention with rotary position, and its core for queries from elsewhere
// (pooling). Letters: B = sequences, T = tokens, R = queries of a sequence, H = heads, d = width of a head,
// A = H d, G = K d: K heads of keys and values, each for H / K consecutive query heads, C =
// channels. If lengths differ, B * T and B * R are the sums.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/pass.h"
#include "vit/layers/sequences.h"
#include "vit/position/rope.h"

namespace vit::internal {

/// Requests the attention probabilities of one head of a sequence, for all queries or some consecutive
/// ones.
struct AttentionTap {
  std::size_t sequence = 0;
  std::size_t head = 0;
  std::size_t first_query = 0;
  TensorView<float> probabilities{};  // (queries, T)
};

/// Keys that the first queries of each sequence do not read.
struct KeyMask {
  const std::uint8_t* hidden = nullptr;  // (B, queries, keys): not 0 where a key is hidden; null = none is
  std::size_t queries = 0;               // the first of each sequence
  std::size_t keys = 0;                  // the last of each sequence; one at least is left to each query
};

/// What one pass of attention works on: the queries of each sequence read all of its keys and values.
struct AttentionInput {
  Sequences sequences;            // of B * T rows
  Sequences queries = sequences;  // as many, of B * R rows: the first R tokens of each sequence,
  bool queries_last = false;      // or its last R
  bool causal = false;            // a token attends to itself and earlier tokens
  /// For num_prefix tokens that are not rotated and num_patches that are: an image. Empty = no rotation. Rows
  /// of several images repeat them; a sequence may be part of an image.
  position::RopeFactors rope{};
  std::size_t num_prefix = 0;
  double logit_factor = 1.0;  // times 1 / sqrt(d)
  KeyMask mask{};
  std::span<const AttentionTap> taps{};

  bool all_are_queries() const { return queries.rows() == sequences.rows(); }
  /// The first query token of sequence i.
  std::size_t first_query(std::size_t i) const {
    return queries_last ? sequences.length(i) - queries.length(i) : 0;
  }
};

/// Queries, keys and values of B sequences; heads are adjacent in the columns.
struct AttentionRows {
  TensorView<const float> queries{};  // (tokens, A)
  Sequences query_tokens;             // tokens of each sequence that have a row in `queries`, R or more
  TensorView<const float> keys{};     // (B * T, G)
  TensorView<const float> values{};   // (B * T, G)
};

/// out (B * R, A) = the heads' softmax(q k^T / sqrt(d)) v, concatenated. Takes scratch from activations
/// reserved for T tokens and these heads. Throws Error if shapes disagree.
void attend(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
            TensorView<float> out, const kernels::AttentionKernels& kernels, const Pass& pass);

/// Norms over the channels of each head, if a model has them.
struct HeadNorms {
  std::optional<LayerNorm> queries{}, keys{}, values{};  // (d)
};

class Attention {
 public:
  /// qkv (A + 2G, C), rows ordered q, k, v; norm over the concatenated heads (A), if any; proj (C, A). Throws
  /// Error if shapes disagree.
  Attention(Linear qkv, HeadNorms head_norms, std::optional<LayerNorm> norm, Linear proj,
            std::size_t num_heads, const kernels::AttentionKernels& kernels);

  /// From now on q, k and v are computed by three layers that clip, (A, C), (G, C) and (G, C), instead of
  /// qkv.
  void set_clipped(std::vector<Linear> layers) { clipped_ = std::move(layers); }

  /// out.add_to += out.scale * proj(attend(qkv(norm(x)))). x (B * T, C), one row per token; add_to (B *
  /// R, C), the rows of the queries only, which may be x. Uses activations.normed, .qkv and .heads.
  void forward(const NormedRows& x, const AttentionInput& input, const Residual& out, const Pass& pass) const;

  /// sums (B * T) = for every sequence the rows of its attention probabilities, averaged over the heads and
  /// weighted by weights (B * T), summed. x as in forward(). Uses activations.normed, .qkv and .heads.
  void sum_probabilities(const NormedRows& x, const AttentionInput& input, std::span<const double> weights,
                         std::span<double> sums, const Pass& pass) const;

  std::size_t embed_dim() const noexcept { return proj_.out_features(); }     // C
  std::size_t attention_dim() const noexcept { return proj_.in_features(); }  // A
  std::size_t num_heads() const noexcept { return num_heads_; }
  /// G: channels of all keys of a token.
  std::size_t key_dim() const noexcept { return (qkv_.out_features() - attention_dim()) / 2; }

 private:
  /// Keys and values of all rows, queries of the query rows, in activations.qkv.
  AttentionRows compute_qkv(const NormedRows& x, const AttentionInput& input, const Pass& pass) const;
  void normalize_heads(TensorView<float> qkv, const Pass& pass) const;
  void multiply_qkv(const LinearInput& normed, const AttentionInput& input, TensorView<float> qkv,
                    const Pass& pass) const;

  Linear qkv_;
  HeadNorms head_norms_;
  std::vector<Linear> clipped_;  // q, k and v, or none
  std::optional<LayerNorm> norm_;
  Linear proj_;
  std::size_t num_heads_;
  const kernels::AttentionKernels* kernels_;
};

}  // namespace vit::internal
