#include "vit/encoder/encoder.h"

namespace vit::internal {
namespace {

AttentionInput attention_of(std::size_t layer, const EncoderInput& input) {
  AttentionInput attention{.sequences = input.of_blocks.empty() ? input.sequences : input.of_blocks[layer],
                           .causal = input.causal,
                           .logit_factor = input.attention_factor};
  if (input.position == nullptr) return attention;
  attention.rope = input.position->factors(layer);
  attention.num_prefix = input.position->turns_prefix() ? 0 : input.num_prefix;
  attention.logit_factor *= input.position->logit_factor();
  return attention;
}

}  // namespace

TensorView<float> Encoder::forward(TensorView<float> tokens, const EncoderInput& input, Observer& observer,
                                   const Pass& pass) const {
  const TensorView<float> x(tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()});
  TensorView<float> result = tokens;
  if (norm_pre_) norm_pre_->forward(x, x, pass.threads);
  observer.before_blocks(x);
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    AttentionInput attention = attention_of(layer, input);
    observer.before_block(layer, x, attention);
    if (layer + 1 == blocks_.size() && input.wanted.rows() != x.num_rows()) {
      attention.queries = input.wanted;
      attention.queries_last = input.wanted_last;
      result = pass.activations.leading;
      blocks_[layer].forward_queries(x, attention,
                                     {result.data(), Shape{result.num_rows(), result.num_columns()}}, pass);
    } else {
      blocks_[layer].forward(x, attention, pass);
    }
    observer.after_block(layer, x);
    if (pass.watch != nullptr) pass.watch->add_block(layer + 1, blocks_.size());
  }
  observer.after_blocks(blocks_, pass);
  return result;
}

}  // namespace vit::internal
