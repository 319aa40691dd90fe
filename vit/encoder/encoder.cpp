#include "vit/encoder/encoder.h"

namespace vit::internal {
namespace {

TensorView<float> rows_of(TensorView<float> tokens) {
  return {tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()}};
}

}  // namespace

AttentionInput Encoder::attention_of(std::size_t layer, const EncoderInput& input) const {
  AttentionInput attention{.sequences = input.of_blocks.empty() ? input.sequences : input.of_blocks[layer],
                           .causal = input.causal,
                           .logit_factor = input.attention_factor};
  if (layer + 1 == depth() && input.wanted.rows() != attention.sequences.rows()) {
    attention.queries = input.wanted;
    attention.queries_last = input.wanted_last;
  }
  if (input.position == nullptr) return attention;
  attention.rope = input.position->factors(layer);
  attention.relative = input.position->relative(layer);
  attention.image_tokens = input.sequences.longest();
  attention.padding.keys = input.position->window_keys(layer);
  if (attention.padding.keys != 0) attention.padding.rope = input.position->window_factors();
  attention.num_prefix = input.position->turns_prefix() ? 0 : input.num_prefix;
  attention.logit_factor *= input.position->logit_factor();
  return attention;
}

TensorView<float> Encoder::forward(TensorView<float> tokens, const EncoderInput& input, BlockRange range,
                                   BlockHooks hooks, const Pass& pass) const {
  const TensorView<float> x = rows_of(tokens);
  for (std::size_t layer = range.first; layer < range.last; ++layer) {
    AttentionInput attention = attention_of(layer, input);
    for (BlockHook* const hook : hooks) hook->before(layer, x, attention);
    if (attention.all_are_queries()) {
      blocks_[layer].forward(x, attention, pass);
    } else {
      tokens = pass.activations.leading;
      blocks_[layer].forward_queries(x, attention, rows_of(tokens), pass);
    }
    for (BlockHook* const hook : hooks) hook->after(layer, x);
  }
  return tokens;
}

}  // namespace vit::internal
