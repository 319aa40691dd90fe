// The core of attention, softmax(q k^T / sqrt(d)) v of each head, for queries, keys and values that are
// there, and the probabilities only. Letters: B = sequences, T = tokens, R = queries of a sequence, H =
// heads, d = width of a head, A = H d, G = K d: K heads of keys and values, each for H / K consecutive query
// heads. If lengths differ, B * T and B * R are the sums.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vit/layers/pass.h"
#include "vit/layers/sequences.h"
#include "vit/position/relative_encoding.h"
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

/// Sequences that are completed by equal keys and values, which no query has.
struct KeyPadding {
  std::size_t keys = 0;          // of each sequence, at least its tokens; 0 = none is completed
  const float* key = nullptr;    // (G)
  const float* value = nullptr;  // (G)
  /// Of all keys of the sequences of an image, tokens first, where keys are rotated.
  position::RopeFactors rope{};
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
  /// Bias of the scores, for the tokens of an image, or of completed windows of it.
  position::RelativeTerms relative{};
  std::size_t image_tokens = 0;  // of relative
  KeyPadding padding{};
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

/// out (B * R, A) = the heads' softmax(q k^T / sqrt(d) + bias) v, concatenated. Takes scratch from
/// activations reserved for T tokens and these heads. Throws Error if shapes disagree.
void attend(const AttentionRows& rows, const AttentionInput& input, std::size_t num_heads,
            TensorView<float> out, const kernels::AttentionKernels& kernels, const Pass& pass);

/// sums (H, B * T) = the rows of the probabilities of each head, weighted by weights (B * T) and summed over
/// the queries of a sequence, which are all of its tokens. Throws Error if shapes disagree.
void sum_probabilities(const AttentionRows& rows, const AttentionInput& input,
                       std::span<const double> weights, TensorView<double> sums,
                       const kernels::AttentionKernels& kernels, const Pass& pass);

}  // namespace vit::internal
