#include "vit/encoder/encoder.h"

#include <algorithm>
#include <utility>

namespace vit::internal {

Encoder::Encoder(std::optional<LayerNorm> norm_pre, std::vector<Block> blocks, std::size_t num_heads)
    : norm_pre_(std::move(norm_pre)), blocks_(std::move(blocks)), num_heads_(num_heads) {}

std::vector<AttentionTap> Encoder::attention_taps(std::size_t layer, std::size_t num_images,
                                                  const EncoderTaps& taps) const {
  std::vector<AttentionTap> wanted;
  for (std::size_t i = 0; i < taps.attention.size(); ++i) {
    if (taps.attention[i] != layer) continue;
    for (std::size_t image = 0; image < num_images; ++image) {
      for (std::size_t head = 0; head < num_heads_; ++head) {
        wanted.push_back({.image = image,
                          .head = head,
                          .probabilities = taps.probabilities[i].view()[taps.first_image + image][head]});
      }
    }
  }
  return wanted;
}

void Encoder::forward(TensorView<float> tokens, const position::PositionContext& position,
                      const EncoderInput& input, TensorView<float> leading, const Pass& pass) const {
  const std::size_t num_images = tokens.dim(0);
  const std::size_t num_tokens = tokens.dim(1);
  const TensorView<float> x(tokens.data(), Shape{num_images * num_tokens, tokens.dim(2)});
  if (norm_pre_) norm_pre_->forward(x, x, pass.threads);
  const EncoderTaps& taps = input.taps;
  const auto keep = [&](TensorView<float> all) {
    std::ranges::copy(tokens.flat(), all.part(taps.first_image, num_images).data());
  };
  if (!taps.embedded.empty()) keep(taps.embedded);

  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const std::vector<AttentionTap> wanted = attention_taps(layer, num_images, taps);
    AttentionInput attention{.num_images = num_images,
                             .num_tokens = num_tokens,
                             .num_queries = num_tokens,
                             .rope = position.factors(layer),
                             .num_prefix = input.num_prefix,
                             .taps = wanted};
    if (input.num_leading != 0 && layer + 1 == blocks_.size()) {
      attention.num_queries = input.num_leading;
      const TensorView<float> rows(leading.data(), Shape{num_images * input.num_leading, tokens.dim(2)});
      blocks_[layer].forward_leading(x, attention, rows, pass);
      continue;
    }
    blocks_[layer].forward(x, attention, pass);
    for (std::size_t i = 0; i < taps.blocks.size(); ++i) {
      if (taps.blocks[i] == layer) keep(taps.block_tokens[i]);
    }
  }
}

}  // namespace vit::internal
