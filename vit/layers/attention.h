// Multi-head self-attention with rotary position, and its core for queries that come from elsewhere
// (pooling). Letters: B = images, T = tokens, R = queries of an image, H = heads, d = width of a head, A = H
// d, C = channels.
#pragma once

#include <optional>
#include <span>

#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/layers/pass.h"
#include "vit/position/rope.h"

namespace vit::internal {

/// Requests the attention probabilities of one head of one image, for all queries or some that follow each
/// other.
struct AttentionTap {
  std::size_t image = 0;
  std::size_t head = 0;
  std::size_t first_query = 0;
  TensorView<float> probabilities{};  // (queries, T)
};

/// What one pass of attention works on.
struct AttentionInput {
  std::size_t num_images = 1;
  std::size_t num_tokens = 1;   // T; of the longest where lengths differ
  std::size_t num_queries = 1;  // R: the first R tokens of each image are queries
  /// Texts, whose lengths differ: the rows (B + 1) at which each begins, and their number. Their queries are
  /// all tokens (R = T), or with R = 1 the last token of each text.
  std::span<const std::size_t> starts{};
  bool causal = false;           // a token meets those before it and itself
  position::RopeFactors rope{};  // empty = no rotation
  std::size_t num_prefix = 0;    // leading tokens that are not rotated
  double logit_factor = 1.0;     // beside 1 / sqrt(d)
  std::span<const AttentionTap> taps{};

  bool all_are_queries() const { return num_queries == num_tokens; }
  /// B * T, or the sum of the lengths.
  std::size_t num_rows() const { return starts.empty() ? num_images * num_tokens : starts.back(); }
  /// B * R, or as many as there are rows.
  std::size_t num_query_rows() const { return all_are_queries() ? num_rows() : num_images * num_queries; }
  std::size_t first_row(std::size_t image) const {
    return starts.empty() ? image * num_tokens : starts[image];
  }
  std::size_t tokens_of(std::size_t image) const {
    return starts.empty() ? num_tokens : starts[image + 1] - starts[image];
  }
  /// Tokens of an image that are queries: the first of them, and how many.
  std::size_t first_query(std::size_t image) const {
    return starts.empty() || all_are_queries() ? 0 : tokens_of(image) - 1;
  }
  std::size_t queries_of(std::size_t image) const {
    return all_are_queries() ? tokens_of(image) : num_queries;
  }
  /// Row of an image's first query among those of all queries.
  std::size_t first_query_row(std::size_t image) const {
    return all_are_queries() ? first_row(image) : image * num_queries;
  }
};

/// Queries, keys and values of B images; heads lie side by side in the columns.
struct AttentionRows {
  TensorView<const float> queries{};  // (B * query_rows_per_image, A); of texts a row for each token
  std::size_t query_rows_per_image = 1;
  TensorView<const float> keys{};    // (B * T, A)
  TensorView<const float> values{};  // (B * T, A)
};

/// out (B * R, A) = the heads' softmax(q k^T / sqrt(d)) v, side by side. Takes scratch from activations
/// reserved for T tokens and these heads. Throws Error if shapes disagree.
void attend(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
            TensorView<float> out, const kernels::AttentionKernels& kernels, const Pass& pass);

class Attention {
 public:
  /// qkv (3A, C), rows ordered q, k, v; norm over the concatenated heads (A), if any; proj (C, A). Throws
  /// Error if shapes disagree.
  Attention(Linear qkv, std::optional<LayerNorm> norm, Linear proj, std::size_t num_heads,
            const kernels::AttentionKernels& kernels);

  /// out.add_to += out.scale * proj(attend(qkv(norm(x)))). x (B * T, C), a row for every token; add_to (B *
  /// R, C), the rows of the queries alone, which may be x. Uses activations.normed, .qkv and .heads.
  void forward(const NormedRows& x, const AttentionInput& input, const Residual& out, const Pass& pass) const;

  /// sums (B, T) = for every image the rows of its attention probabilities, averaged over the heads and
  /// weighted by weights (B, T), summed. x as in forward(). Uses activations.normed, .qkv and .heads.
  void sum_probabilities(const NormedRows& x, const AttentionInput& input, TensorView<const double> weights,
                         TensorView<double> sums, const Pass& pass) const;

  std::size_t embed_dim() const noexcept { return proj_.out_features(); }     // C
  std::size_t attention_dim() const noexcept { return proj_.in_features(); }  // A
  std::size_t num_heads() const noexcept { return num_heads_; }

 private:
  /// Keys and values of all rows, queries of those that are, in activations.qkv.
  AttentionRows compute_qkv(const NormedRows& x, const AttentionInput& input, const Pass& pass) const;
  void multiply_qkv(const LinearInput& normed, const AttentionInput& input, TensorView<float> qkv,
                    const Pass& pass) const;

  Linear qkv_;
  std::optional<LayerNorm> norm_;
  Linear proj_;
  std::size_t num_heads_;
  const kernels::AttentionKernels* kernels_;
};

}  // namespace vit::internal
