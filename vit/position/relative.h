// Clipped relative distances as learned or fixed vectors on keys and values: an attention of its own, in
// plain form.
// Letters: B = images, H = heads, L = tokens, d = channels of a head, R = largest distance told apart.
#pragma once

#include <cstddef>

#include "vit/base/error.h"
#include "vit/base/tensor.h"

namespace vit::position {

/// Row of the tables for every query i and key j, (L, L): clip(j - i, -R, R) + R.
VIT_API Tensor<std::size_t> relative_index(std::size_t num_tokens, std::size_t max_distance);

/// NEZHA's fixed table (2R + 1, d), for keys and values alike (Wei et al. 2019): row r, which
/// belongs to the distance r - R, holds sin(r 10000^(-2i/d)) at channel 2i and the cosine at 2i + 1. T is
/// double or float.
template <typename T>
VIT_API Tensor<T> nezha_table(std::size_t max_distance, std::size_t head_dim);

/// Both tables are (2R + 1, d).
template <typename T>
struct RelativeTables {
  TensorView<const T> keys;
  TensorView<const T> values;
};

/// Settings of relative_attention.
struct RelativeAttentionOptions {
  double scale = 0.0;  // of the scores; 0 means 1 / sqrt(d)
  int threads = 1;     // 0 = all that the machine offers; results do not depend on it
};

/// Output of relative_attention, and what it was averaged with.
template <typename T>
struct RelativeAttentionResult {
  Tensor<T> out;            // (B, H, L, d)
  Tensor<T> probabilities;  // (B, H, L, L)
};

/// Attention of Shaw et al. 2018, with a_ij the table rows of relative_index:
///   score_ij = scale * q_i . (k_j + a^K_ij),  probabilities = softmax_j,  out_i = sum_j p_ij (v_j + a^V_ij)
/// q, k, v are (B, H, L, d); T is double or float, sums are taken in double. Throws Error naming the shapes
/// that do not fit.
template <typename T>
VIT_API RelativeAttentionResult<T> relative_attention(TensorView<const T> q, TensorView<const T> k,
                                                      TensorView<const T> v, const RelativeTables<T>& tables,
                                                      const RelativeAttentionOptions& options = {});

}  // namespace vit::position
