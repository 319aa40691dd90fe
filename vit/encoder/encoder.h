// The stack of blocks with an optional LayerNorm in front, and taps on what leaves each block.
// Letters: B images or texts, T tokens, C = embed_dim, R leading rows of an image, H heads.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "vit/encoder/block.h"
#include "vit/outputs.h"
#include "vit/position/position.h"

namespace vit::internal {

/// Where the encoder leaves copies of what passes by: image b of a pass is image first_image + b there.
struct EncoderTaps {
  std::size_t first_image = 0;
  std::span<const std::size_t> blocks{};           // tokens leaving these blocks ...
  std::span<Tensor<float>> block_tokens{};         // ... go here, (B, T, C) each
  std::span<const std::size_t> attention{};        // softmax probabilities of these blocks ...
  std::span<Tensor<float>> probabilities{};        // ... go here, (B, H, T, T) each
  std::span<const AttentionQuery> queries{};       // softmax probabilities of single queries ...
  std::span<Tensor<float>> query_probabilities{};  // ... go here, (B, H, T) each
  std::span<const AttentionQuery> rollout{};       // rollout from these tokens ...
  std::span<Tensor<float>> rollout_rows{};         // ... goes here, (B, T) each
  TensorView<float> embedded{};                    // (B, T, C) entering block 0, after the LayerNorm in front
};

struct EncoderInput {
  std::size_t num_prefix = 0;
  /// Only the first R tokens of every image are wanted; 0 = all. The last block then computes those rows
  /// alone.
  std::size_t num_leading = 0;
  EncoderTaps taps{};
};

/// Texts of a pass.
struct TextInput {
  std::span<const std::size_t> starts{};  // (B + 1) rows at which each begins, and their number
  std::size_t longest = 0;                // tokens
  bool causal = false;                    // a token meets those before it and itself
  bool last_alone = false;                // only the last token of each is wanted
};

class Encoder {
 public:
  Encoder(std::optional<LayerNorm> norm_pre, std::vector<Block> blocks, std::size_t num_heads);

  std::size_t depth() const noexcept { return blocks_.size(); }

  /// Runs tokens (B, T, C) in place. With num_leading = R the result stands in `leading` (B, R, C) and
  /// `tokens` holds what entered the last block; otherwise `leading` is not touched.
  void forward(TensorView<float> tokens, const PositionContext& position, const EncoderInput& input,
               TensorView<float> leading, const Pass& pass) const;
  /// Runs the tokens of texts (rows, C), one behind the other, in place. With last_alone the result stands in
  /// `last` (B, C), the last token of each text, which the last block then computes alone.
  void forward(TensorView<float> rows, const TextInput& input, TensorView<float> last,
               const Pass& pass) const;

 private:
  std::vector<AttentionTap> attention_taps(std::size_t layer, std::size_t num_images,
                                           const EncoderTaps& taps) const;
  /// What attention of a layer works on; all tokens are queries.
  static AttentionInput attention_input(std::size_t layer, std::size_t num_images, std::size_t num_tokens,
                                        const PositionContext& position, const EncoderInput& input);
  /// Rolls the attention back to the first block; entered[l] (B * T, C) is what entered layer l.
  void roll_out(std::span<const Tensor<float>> entered, const PositionContext& position,
                const EncoderInput& input, std::size_t num_images, const Pass& pass) const;

  std::optional<LayerNorm> norm_pre_;
  std::vector<Block> blocks_;
  std::size_t num_heads_;
};

}  // namespace vit::internal
