// Attention whose queries, keys and values come from different rows, and layers made of it. Letters: N rows
// of queries, M of keys and values, D channels, A channels of all heads, H heads.
#pragma once

#include <cstddef>

#include "vit/layers/layer_norm.h"
#include "vit/layers/linear.h"
#include "vit/rings/prompts/prompt_memory.h"

namespace vit::internal {

/// Rows that attention reads.
struct AttentionSources {
  TensorView<const float> queries{};  // (N, D)
  TensorView<const float> keys{};     // (M, D)
  TensorView<const float> values{};   // (M, D)
};

/// A number added to each score of a grid of keys (rows, columns): that of the query and the key's row plus
/// that of the query and its column. The first `skipped` queries have none.
struct GridBias {
  TensorView<const float> of_rows{};     // (N - skipped, rows, H)
  TensorView<const float> of_columns{};  // (N - skipped, columns, H)
  std::size_t skipped = 0;
};

class RowsAttention {
 public:
  /// q, k, v (D -> A), o (A -> D). Throws Error if the heads do not divide A.
  RowsAttention(Linear q, Linear k, Linear v, Linear o, std::size_t num_heads,
                const kernels::Arithmetic& arithmetic, const kernels::LinearKernels& float32);

  /// add_to (N, D) += o(attention of each head). `bias`: null for none.
  void forward(const AttentionSources& sources, TensorView<float> add_to, PromptMemory& memory,
               const GridBias* bias = nullptr) const;
  std::size_t num_heads() const noexcept { return num_heads_; }
  /// out (N, D) = the same without what it had.
  void replace(const AttentionSources& sources, TensorView<float> out, PromptMemory& memory) const;

 private:
  TensorView<float> heads(const AttentionSources& sources, PromptMemory& memory, const GridBias* bias) const;

  Linear q_, k_, v_, o_;
  std::size_t num_heads_;
  const kernels::Arithmetic* arithmetic_;
  const kernels::LinearKernels* float32_;
};

/// out (N, A) = softmax(q k^T / sqrt(A / H) + bias) v of each head, for few queries of many keys: the scores
/// of some queries and one head are there at a time. In float32.
void attend_with_bias(TensorView<const float> queries, TensorView<const float> keys,
                      TensorView<const float> values, std::size_t num_heads, const GridBias& bias,
                      TensorView<float> out, const kernels::LinearKernels& kernels, PromptMemory& memory);

/// fc2(act(fc1 x)).
struct RowsMlp {
  Linear fc1, fc2;
  Activation activation = Activation::relu;

  /// add_to (N, D) += fc2(...) of x (N, D).
  void forward(TensorView<const float> x, TensorView<float> add_to, PromptMemory& memory,
               const kernels::Arithmetic& arithmetic) const;
};

/// x += self(norm1 x), x += cross(norm2 x; keys, values), x += mlp(norm3 x).
class PreNormLayer {
 public:
  PreNormLayer(RowsAttention self, RowsAttention cross, RowsMlp mlp, LayerNorm norm1, LayerNorm norm2,
               LayerNorm norm3, const kernels::Arithmetic& arithmetic);

  /// x (N, D) in place. code (N, D), added to queries and keys of the first attention, may be empty.
  void forward(TensorView<float> x, TensorView<const float> code, TensorView<const float> keys,
               TensorView<const float> values, PromptMemory& memory) const;
  /// The first part of forward(), which does not depend on keys and values, and the rest.
  void attend_to_itself(TensorView<float> x, TensorView<const float> code, PromptMemory& memory) const;
  void attend_to_others(TensorView<float> x, TensorView<const float> keys, TensorView<const float> values,
                        PromptMemory& memory) const;

 private:
  RowsAttention self_, cross_;
  RowsMlp mlp_;
  LayerNorm norm1_, norm2_, norm3_;
  const kernels::Arithmetic* arithmetic_;
};

/// out = a + b; out may be either.
void add_rows(TensorView<const float> a, TensorView<const float> b, TensorView<float> out, int threads);

}  // namespace vit::internal
