// The head of a model that is put together by hand, vit/head.h, on the head of the models.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/config.h"
#include "vit/head.h"
#include "vit/head/head.h"
#include "vit/head/pooling.h"
#include "vit/layers/parts.h"

namespace vit {
namespace {

constexpr Where kHead{"Head", ErrorKind::argument};

const internal::kernels::Arithmetic& head_arithmetic() {
  return *internal::kernels::default_kernels().float32;
}

internal::AttentionPool pool_of(const HeadTensors& tensors, const HeadOptions& options) {
  const internal::kernels::Arithmetic& arithmetic = head_arithmetic();
  const std::size_t width = options.embed_dim;
  const auto linear = [&](const LinearTensors& layer, std::size_t in, std::size_t out, const char* name) {
    internal::Linear packed = internal::linear_of(layer, in, name, kHead, *arithmetic.linear);
    VIT_CHECK(packed.out_features() == out, kHead, name, " of attention pooling must have ", out,
              " rows, got ", packed.out_features());
    return packed;
  };
  VIT_CHECK(tensors.probe.size() == width, kHead, "a probe of ", tensors.probe.size(), " numbers for ", width,
            " channels");
  VIT_CHECK(options.num_heads != 0 && width % options.num_heads == 0, kHead, width,
            " channels cannot be divided into ", options.num_heads, " heads");
  Tensor<float> query(Shape{1, width});  // the same for every image
  internal::Activations none;            // float32 converts no rows
  linear(tensors.q, width, width, "q")
      .forward({tensors.probe.data(), Shape{1, width}}, query, {.activations = none});
  const std::size_t hidden = tensors.fc1.weight.rank() == 2 ? tensors.fc1.weight.dim(0) : 0;
  internal::Mlp mlp({.fc1 = linear(tensors.fc1, width, hidden, "fc1")}, std::nullopt,
                    linear(tensors.fc2, hidden, width, "fc2"), options.activation);
  return internal::AttentionPool(std::move(query), linear(tensors.kv, width, 2 * width, "kv"),
                                 linear(tensors.proj, width, width, "proj"),
                                 internal::norm_of(tensors.pool_norm, width, "pool_norm", kHead),
                                 std::move(mlp), options.num_heads, arithmetic.attention);
}

/// Least number of tokens that the pooling reads.
std::size_t fewest_tokens(const HeadOptions& options) {
  switch (options.pooling) {
    case Pooling::class_and_distillation: return 2;
    case Pooling::patch_mean:
    case Pooling::class_and_patch_mean: return options.num_prefix + 1;
    case Pooling::prefix_mean: return options.num_prefix;
    default: return 1;
  }
}

/// Least number of prefix tokens that the pooling is defined for.
std::size_t needed_prefix(Pooling pooling) {
  switch (pooling) {
    case Pooling::class_and_distillation: return 2;
    case Pooling::class_token:
    case Pooling::prefix_mean:
    case Pooling::class_and_patch_mean: return 1;
    default: return 0;
  }
}

void check_options(const HeadOptions& options) {
  VIT_CHECK(options.embed_dim != 0, kHead, "embed_dim is 0");
  check_choice(kHead, "pooling", options.pooling, Pooling::prefix_tokens);
  check_choice(kHead, "activation", options.activation, Activation::relu);
  VIT_CHECK(options.pooling != Pooling::prefix_tokens, kHead, "Pooling::prefix_tokens is of models only");
  const std::size_t needed = needed_prefix(options.pooling);
  VIT_CHECK(options.num_prefix >= needed, kHead, "this pooling reads ", needed,
            " prefix tokens at least; num_prefix is ", options.num_prefix);
}

}  // namespace

void pool_mean(TensorView<const float> tokens, std::size_t first, TensorView<float> out) {
  VIT_CHECK(tokens.rank() == 3 && !tokens.empty() && out.rank() == 2 && !out.empty() &&
                out.dim(0) == tokens.dim(0) && out.dim(1) == tokens.dim(2),
            (Where{"pool_mean", ErrorKind::argument}), "tokens (B, T, C) of ", tokens.shape().to_string(),
            " to ", out.shape().to_string());
  internal::check_rows_apart(out, Where{"pool_mean", ErrorKind::argument});
  internal::pool_mean(tokens, first, tokens.dim(1), out);
}

struct Head::Parts {
  HeadOptions options;
  std::size_t hidden_dim = 0, pooled_dim = 0, num_classes = 0;
  internal::Head head;
};

Head::Head(const HeadTensors& tensors, const HeadOptions& options) {
  check_options(options);
  const std::size_t width = options.embed_dim;
  ModelConfig config;
  config.embed_dim = width;
  config.head.pooling = options.pooling;
  config.tokens = {.class_token = false, .num_registers = options.num_prefix};
  internal::HeadLayers layers{.norm = internal::optional_norm(tensors.norm, width, "norm", kHead)};
  std::size_t hidden = 0;
  VIT_CHECK(options.pooling == Pooling::attention ||
                (tensors.probe.empty() && tensors.q.weight.empty() && tensors.kv.weight.empty() &&
                 tensors.proj.weight.empty() && tensors.pool_norm.gamma.empty() &&
                 tensors.fc1.weight.empty() && tensors.fc2.weight.empty()),
            kHead, "tensors of attention pooling, and options.pooling is another one");
  if (options.pooling == Pooling::attention) {
    layers.pool.emplace(pool_of(tensors, options));
    hidden = tensors.fc1.weight.dim(0);
  }
  const std::size_t pooled = options.pooling == Pooling::none ? 0 : config.pooled_dim();
  layers.pooled_norm = internal::optional_norm(tensors.pooled_norm, pooled, "pooled_norm", kHead);
  std::size_t classes = 0;
  VIT_CHECK(!tensors.classifier.weight.empty() || tensors.classifier.bias.empty(), kHead,
            "classifier: a bias without weight");
  if (!tensors.classifier.weight.empty()) {
    VIT_CHECK(pooled != 0, kHead, "a classifier needs a pooled vector");
    layers.classifier.emplace(
        internal::linear_of(tensors.classifier, pooled, "classifier", kHead, *head_arithmetic().linear));
    classes = layers.classifier->out_features();
  }
  parts_ = std::make_unique<const Parts>(Parts{.options = options,
                                               .hidden_dim = hidden,
                                               .pooled_dim = pooled,
                                               .num_classes = classes,
                                               .head = internal::Head(config, std::move(layers))});
}
Head::~Head() = default;
Head::Head(Head&&) noexcept = default;
Head& Head::operator=(Head&&) noexcept = default;

std::size_t Head::pooled_dim() const noexcept {
  return parts_ ? parts_->pooled_dim : 0;
}

std::size_t Head::num_classes() const noexcept {
  return parts_ ? parts_->num_classes : 0;
}

void Head::forward(TensorView<float> tokens, TensorView<float> pooled, TensorView<float> logits,
                   Workspace& memory, int threads) const {
  const Parts& parts = internal::parts_of(parts_, kHead);
  const std::size_t width = parts.options.embed_dim, least = fewest_tokens(parts.options);
  internal::check_threads(threads, kHead);
  VIT_CHECK(tokens.rank() == 3 && tokens.dim(2) == width && tokens.is_contiguous() && !tokens.empty() &&
                tokens.dim(0) != 0 && tokens.dim(1) >= least,
            kHead, "tokens must have shape (B, T, ", width, ") without gaps, B > 0 and T >= ", least,
            ", got ", tokens.describe());
  const auto check = [&](const TensorView<float>& out, std::size_t columns, const char* name) {
    VIT_CHECK(
        out.empty() || (columns != 0 && out.shape() == Shape{tokens.dim(0), columns} && out.is_contiguous()),
        kHead, name, " must have shape (", tokens.dim(0), ", ", columns, ") without gaps, got ",
        out.describe());
  };
  check(pooled, parts.pooled_dim, "pooled");
  check(logits, parts.num_classes, "logits");
  const bool attends = parts.options.pooling == Pooling::attention;
  internal::Activations& activations = memory.parts().activations;
  activations.reserve({.num_images = tokens.dim(0),
                       .num_tokens = tokens.dim(1),
                       .num_rows = attends ? 0 : tokens.dim(0),  // none of the results of a block
                       .embed_dim = width,
                       .attention_dim = width,
                       .num_pool_heads = attends ? parts.options.num_heads : 0,
                       .pooled_dim = parts.pooled_dim,
                       .hidden_dim = parts.hidden_dim,
                       .threads = threads},
                      head_arithmetic());
  parts.head.forward(tokens, {.pooled = pooled, .logits = logits},
                     {.activations = activations, .threads = threads});
}

}  // namespace vit
