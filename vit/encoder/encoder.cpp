#include "vit/encoder/encoder.h"

#include <algorithm>
#include <cstring>

#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

/// x (B * T, C) in memory for B * (T + Q) rows -> the late tokens in front of those of each image.
TensorView<float> with_late_tokens(TensorView<float> x, std::size_t images, TensorView<const float> late) {
  const std::size_t width = x.num_columns(), before = x.num_rows() / images, count = late.num_rows();
  const TensorView<float> out(x.data(), Shape{images * (before + count), width});
  for (std::size_t image = images; image-- > 0;) {
    float* const to = out.row(image * (before + count));
    std::memmove(to + count * width, x.row(image * before), before * width * sizeof(float));
    std::ranges::copy(late.flat(), to);
  }
  return out;
}

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

/// x (B * T, C) += rows (T, C) of every image.
void add_rows(TensorView<const float> rows, TensorView<float> x, int threads) {
  if (rows.empty()) return;
  const std::size_t tokens = rows.num_rows(), width = rows.num_columns();
  parallel_for(x.num_rows(), threads, [&](std::size_t row, int) {
    const float* const from = rows.row(row % tokens);
    float* const to = x.row(row);
    for (std::size_t c = 0; c < width; ++c) to[c] += from[c];
  });
}

}  // namespace

TensorView<float> Encoder::forward(TensorView<float> tokens, const EncoderInput& given, Observer& observer,
                                   const Pass& pass) const {
  TensorView<float> x(tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()});
  TensorView<float> result = tokens;
  EncoderInput input = given;
  KeyMask mask;
  if (norm_pre_) norm_pre_->forward(x, x, pass.threads);
  observer.before_blocks(x);
  for (std::size_t layer = 0; layer < blocks_.size(); ++layer) {
    if (!input.late.tokens.empty() && layer == input.late.block) {
      const std::size_t images = input.sequences.size(), count = input.late.tokens.num_rows();
      x = with_late_tokens(x, images, input.late.tokens);
      input.sequences = input.wanted = Sequences(images, input.sequences.longest() + count);
      input.num_prefix += count;
      result = {x.data(), Shape{images, input.sequences.longest(), x.num_columns()}};
    }
    if (input.late.hider != nullptr && layer >= input.late.block)
      mask = input.late.hider->before_block(layer, x).value_or(mask);
    AttentionInput attention = attention_of(layer, input);
    attention.mask = mask;
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
    if (input.position != nullptr) add_rows(input.position->rows_after(layer), x, pass.threads);
    if (pass.watch != nullptr) pass.watch->add_block(layer + 1, blocks_.size());
  }
  observer.after_blocks(blocks_, pass);
  return result;
}

}  // namespace vit::internal
