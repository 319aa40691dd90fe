#include "vit/head/head.h"

#include "vit/config.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vit::internal {

Head::Head(const ModelConfig& config, HeadLayers layers)
    : pooling_(config.head.pooling),
      pooled_tokens_(config.head.pooled_tokens),
      input_(config.head.input),
      num_prefix_(config.num_prefix_tokens()),
      layers_(std::move(layers)) {}

std::size_t Head::num_leading_tokens() const noexcept {
  if (input_ == HeadInput::class_and_patch_mean) return 0;
  if (pooling_ == Pooling::class_and_distillation || input_ == HeadInput::class_and_distillation) return 2;
  if (pooling_ == Pooling::prefix_mean || pooling_ == Pooling::prefix_tokens) return num_prefix_;
  return pooling_ == Pooling::class_token || pooling_ == Pooling::first_token ? 1 : 0;
}

void Head::forward(TensorView<float> tokens, const HeadOutputs& out, const Pass& pass) const {
  const StageTimer timer(pass.times, Stage::head);
  if (layers_.norm) {
    const TensorView<float> rows(tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()});
    layers_.norm->forward(rows, rows, pass.threads);
  }
  if (!out.tokens.empty() && out.places.empty()) std::ranges::copy(tokens.flat(), out.tokens.data());
  for (std::size_t row = 0; !out.tokens.empty() && !out.places.empty() && row < tokens.num_rows(); ++row) {
    const std::size_t token = row % out.places.size();
    std::copy_n(tokens.row(row - token + out.places[token]), tokens.num_columns(), out.tokens.row(row));
  }
  if (out.pooled.empty() && out.projected.empty() && out.logits.empty()) return;
  const TensorView<float> pooled = pass.activations.pooled;
  if (pooling_ != Pooling::none) {
    pool(tokens, pooled, pass);
    if (!out.pooled.empty()) std::ranges::copy(pooled.flat(), out.pooled.data());
    if (!out.projected.empty()) layers_.projection->forward(pooled, out.projected, pass);
  }
  if (!out.logits.empty()) classify(tokens, pooled, out.logits, pass);
}

void Head::pool(TensorView<const float> tokens, TensorView<float> pooled, const Pass& pass) const {
  switch (pooling_) {
    case Pooling::none: return;
    case Pooling::class_token:
    case Pooling::first_token: pool_token(tokens, 0, pooled); break;
    case Pooling::class_and_patch_mean: pool_both(tokens, pooled.data()); break;
    case Pooling::class_and_distillation: pool_mean(tokens, 0, 2, pooled); break;
    case Pooling::patch_mean: pool_mean(tokens, num_prefix_, tokens.dim(1), pooled); break;
    case Pooling::prefix_mean: pool_mean(tokens, 0, num_prefix_, pooled); break;
    case Pooling::prefix_tokens: pool_prefix(tokens, pooled); break;
    case Pooling::attention: layers_.pool->forward(tokens, pooled, pass); break;
  }
  if (layers_.pooled_norm) layers_.pooled_norm->forward(pooled, pooled, pass.threads);
  if (!layers_.pooler) return;
  const TensorView<float> before(pass.activations.head_row.data(), pooled.shape());
  std::ranges::copy(pooled.flat(), before.data());
  layers_.pooler->forward(before, pooled, pass);
  for (float& value : pooled.flat()) value = static_cast<float>(std::tanh(double{value}));
}

void Head::pool_prefix(TensorView<const float> tokens, TensorView<float> pooled) const {
  const Shape one{tokens.dim(0), tokens.dim(2)};
  for (std::size_t i = 0; i < pooled_tokens_.size(); ++i) {
    float* const out = pooled.data() + i * tokens.dim(2);
    pool_token(tokens, pooled_tokens_[i], TensorView<float>(out, one, pooled.num_columns()));
  }
}

void Head::pool_both(TensorView<const float> tokens, float* out) const {
  const std::size_t width = tokens.dim(2);
  const Shape half{tokens.dim(0), width};
  pool_token(tokens, 0, TensorView<float>(out, half, 2 * width));
  pool_mean(tokens, num_prefix_, tokens.dim(1), TensorView<float>(out + width, half, 2 * width));
}

void Head::classify(TensorView<const float> tokens, TensorView<const float> pooled, TensorView<float> logits,
                    const Pass& pass) const {
  const std::size_t num_images = tokens.dim(0);
  const std::size_t width = tokens.dim(2);
  float* const scratch = pass.activations.head_row.data();
  switch (input_) {
    case HeadInput::pooled: return layers_.classifier->forward(pooled, logits, pass);
    case HeadInput::class_and_patch_mean: {
      const TensorView<float> both(scratch, Shape{num_images, 2 * width});
      pool_both(tokens, scratch);
      return layers_.classifier->forward(both, logits, pass);
    }
    case HeadInput::class_and_distillation: {  // mean of two classifiers, one for each token
      const TensorView<float> row(scratch, Shape{num_images, width});
      pool_token(tokens, 0, row);
      layers_.classifier->forward(row, logits, pass);
      pool_token(tokens, 1, row);
      layers_.classifier_distillation->forward(row, logits, pass, {.residual = logits});
      for (float& logit : logits.flat()) logit *= 0.5f;
      return;
    }
  }
}

}  // namespace vit::internal
