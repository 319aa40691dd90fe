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
  for (std::size_t i = 0; i < taps.queries.size(); ++i) {
    if (taps.queries[i].block != layer) continue;
    for (std::size_t image = 0; image < num_images; ++image) {
      const TensorView<float> rows = taps.query_probabilities[i].view()[taps.first_image + image];  // (H, T)
      for (std::size_t head = 0; head < num_heads_; ++head) {
        wanted.push_back({.image = image,
                          .head = head,
                          .first_query = taps.queries[i].token,
                          .probabilities = {rows.row(head), Shape{1, rows.num_columns()}}});
      }
    }
  }
  return wanted;
}

AttentionInput Encoder::attention_input(std::size_t layer, std::size_t num_images, std::size_t num_tokens,
                                        const PositionContext& position, const EncoderInput& input) {
  return {.num_images = num_images,
          .num_tokens = num_tokens,
          .num_queries = num_tokens,
          .rope = position.factors(layer),
          .num_prefix = input.num_prefix,
          .logit_factor = position.logit_factor()};
}

void Encoder::roll_out(std::span<const Tensor<float>> entered, const PositionContext& position,
                       const EncoderInput& input, std::size_t num_images, const Pass& pass) const {
  const EncoderTaps& taps = input.taps;
  for (std::size_t i = 0; i < taps.rollout.size(); ++i) {
    Tensor<float>& out = taps.rollout_rows[i];
    const std::size_t num_tokens = out.view().num_columns();
    // weights (B, T): a row of the product of the layers behind; only products of a row with a matrix are
    // needed, so no (T, T) matrix is kept.
    Tensor<double> weights(Shape{num_images, num_tokens}), sums(Shape{num_images, num_tokens});
    std::ranges::fill(weights.flat(), 0.0);
    for (std::size_t image = 0; image < num_images; ++image)
      weights.view().row(image)[taps.rollout[i].token] = 1.0;
    for (std::size_t layer = taps.rollout[i].block + 1; layer-- > 0;) {
      blocks_[layer].sum_probabilities(entered[layer].view(),
                                       attention_input(layer, num_images, num_tokens, position, input),
                                       weights.view(), sums.view(), pass);
      for (std::size_t k = 0; k < weights.flat().size(); ++k)
        weights.flat()[k] = 0.5 * (weights.flat()[k] + sums.flat()[k]);
    }
    std::ranges::transform(weights.flat(), out.view().part(taps.first_image, num_images).data(),
                           [](double weight) { return static_cast<float>(weight); });
  }
}

void Encoder::forward(TensorView<float> tokens, const PositionContext& position, const EncoderInput& input,
                      TensorView<float> leading, const Pass& pass) const {
  const std::size_t num_images = tokens.dim(0);
  const std::size_t num_tokens = tokens.dim(1);
  const TensorView<float> x(tokens.data(), Shape{num_images * num_tokens, tokens.dim(2)});
  if (norm_pre_) norm_pre_->forward(x, x, pass.threads);
  const EncoderTaps& taps = input.taps;
  const auto keep = [&](TensorView<float> all) {
    std::ranges::copy(tokens.flat(), all.part(taps.first_image, num_images).data());
  };
  if (!taps.embedded.empty()) keep(taps.embedded);

  std::vector<Tensor<float>> entered;  // (B * T, C) of each layer that is rolled back
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    const std::vector<AttentionTap> wanted = attention_taps(layer, num_images, taps);
    AttentionInput attention = attention_input(layer, num_images, num_tokens, position, input);
    attention.taps = wanted;
    if (std::ranges::any_of(taps.rollout, [&](const AttentionQuery& q) { return q.block >= layer; })) {
      entered.emplace_back(x.shape());
      std::ranges::copy(x.flat(), entered.back().data());
    }
    if (input.num_leading != 0 && layer + 1 == blocks_.size()) {
      attention.num_queries = input.num_leading;
      const TensorView<float> rows(leading.data(), Shape{num_images * input.num_leading, tokens.dim(2)});
      blocks_[layer].forward_queries(x, attention, rows, pass);
    } else {
      blocks_[layer].forward(x, attention, pass);
      for (std::size_t i = 0; i < taps.blocks.size(); ++i) {
        if (taps.blocks[i] == layer) keep(taps.block_tokens[i]);
      }
    }
    if (pass.watch) pass.watch->add_block(num_images, layer + 1, blocks_.size());
  }
  roll_out(entered, position, input, num_images, pass);
}

void Encoder::forward(TensorView<float> rows, const TextInput& input, TensorView<float> last,
                      const Pass& pass) const {
  AttentionInput attention{.num_images = input.starts.size() - 1,
                           .num_tokens = input.longest,
                           .num_queries = input.longest,
                           .starts = input.starts,
                           .causal = input.causal};
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    if (!input.last_alone || layer + 1 != blocks_.size()) {
      blocks_[layer].forward(rows, attention, pass);
      continue;
    }
    attention.num_queries = 1;
    blocks_[layer].forward_queries(rows, attention, last, pass);
  }
}

}  // namespace vit::internal
