// TextTransformer: rows of token ids in, vectors of texts out; the forward pass is in
// text_transformer.cpp. Letters: n texts, T = context_length, D = width, E = embedding_dim().
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/encoder/encoder.h"
#include "vit/kernels/kernels.h"
#include "vit/text_config.h"
#include "vit/towers/lanes.h"
#include "vit/weights/text_tower_weights.h"

namespace vit::internal {

/// A text from its tokenizer.
struct TextIds {
  std::span<const std::int32_t> ids;  // (T)
  std::size_t first = 0;              // the first id that is not padding, and
  std::size_t count = 0;              // their number
};

/// The positions of a text that are computed.
struct TextExtent {
  std::size_t begin = 0, count = 1;
  std::size_t pooled = 0;  // of them
  bool is_empty = false;   // a text without tokens, represented by one position
};

/// Working memory of forward passes, grown to the largest one seen; used by one call at a time.
struct TextMemory {
  ForwardMemory passes;
  std::vector<TextExtent> extents;
  std::vector<std::size_t> starts;  // rows at which texts start, and their number
};

/// An immutable text tower: many threads may call forward() at once, each with its own memory.
class TextTransformer {
 public:
  /// Packs the weights for `kernels`, tensor by tensor, except the token table, whose rows are read from
  /// the file that the tower keeps open. Blocks compute in `precision`, all else in float32. Throws Error
  /// if the token table is not stored as one matrix.
  TextTransformer(TextConfig config, const TextTowerWeights& weights, const kernels::KernelTable& kernels,
                  Precision precision = Precision::float32);

  const TextConfig& config() const noexcept { return config_; }
  const kernels::KernelTable& kernels() const noexcept { return *kernels_; }
  Precision precision() const noexcept { return precision_; }

  /// Texts -> out (n, E). Only the positions of a text that its vector depends on are computed. The bits of a
  /// vector depend only on its text, for any number of threads (0 = all). A warm pass allocates nothing.
  /// Throws Error if a row does not have T ids or an id is beyond the token table.
  void forward(std::span<const TextIds> texts, TensorView<float> out, int threads, TextMemory& memory) const;
  /// A text of a tower without pooling -> the vectors of its tokens, out (count, E). As forward() otherwise.
  void forward_tokens(const TextIds& text, TensorView<float> out, int threads, TextMemory& memory) const;
  /// How many of these texts, from the first on, form a group between two progress reports.
  std::size_t count_group(std::span<const TextIds> texts, int threads) const;

 private:
  /// Some texts of a call, one after the other.
  struct Texts;
  void run(const Texts& texts, const Pass& pass) const;
  void embed(const Texts& texts, const Sequences& sequences, TensorView<float> rows, int threads) const;
  /// Rows after the last block, only one of each text if reads_one_row() -> out (texts, E).
  void pool(const Texts& texts, const Sequences& sequences, TensorView<float> rows, const Pass& pass) const;
  /// pooled (texts, D) -> out (texts, E).
  void project(TensorView<float> pooled, TensorView<float> out, const Pass& pass) const;
  TextExtent extent_of(const TextIds& text) const;
  std::size_t pooled_place(std::span<const std::int32_t> ids) const;
  ActivationShape activation_shape(std::size_t num_texts, std::size_t num_rows, int threads) const;
  /// Whether the vector of each text is one of its rows, the last computed one or the first.
  bool reads_one_row() const noexcept;

  TextConfig config_;
  ModelConfig blocks_;
  const kernels::KernelTable* kernels_;
  Precision precision_;
  TensorEntry token_table_;  // (V, D), keeps its file open
  Tensor<float> positions_;  // (first_position + T, D)
  Tensor<float> added_;      // (D): added to each token, if anything is
  std::optional<LayerNorm> token_norm_;
  std::optional<Encoder> encoder_;
  std::optional<LayerNorm> norm_;
  std::optional<Linear> pooler_;
  std::optional<Linear> projection_;
};

}  // namespace vit::internal
