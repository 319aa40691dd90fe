// Builds the layers of a model from its weights, tensor by tensor: each is read, packed and released again.
#include "vit/towers/vision_transformer_layers.h"

#include <algorithm>
#include <utility>

#include "vit/base/parallel.h"
#include "vit/config.h"
#include "vit/head/pooling.h"
#include "vit/towers/layer_builder.h"

namespace vit::internal {
namespace {

/// Builds layers from weights, with one arithmetic for blocks and attention pooling, and float32 elsewhere.
class Builder {
 public:
  Builder(const ModelConfig& config, const ModelWeights& weights, const kernels::KernelTable& kernels,
          Precision precision)
      : config_(config),
        weights_(weights),
        kernels_(kernels),
        precision_(precision),
        layers_(config, kernels, precision) {}

  ModelLayers build() const {
    // Largest tensors first: while one is packed it needs memory twice, next to what is packed already.
    std::optional<Merger> last_merger = merger();
    std::vector<Merger> mergers = deepstack();
    return {.patch_embed = patch_embed(),
            .positions = std::make_unique<const PositionCache>(position()),
            .encoder = encoder(),
            .late_queries = late_queries(),
            .head = config_.head.pools_merged ? head_of_tokens() : Head(config_, head()),
            .merged_head = merged_head(),
            .joint_head = joint_head(),
            .merger = std::move(last_merger),
            .deepstack = std::move(mergers)};
  }

 private:
  PatchEmbed patch_embed() const {
    Tensor<float> prefix;
    if (config_.num_window_tokens() != 0) {  // alike at first
      prefix = Tensor<float>(Shape{config_.num_window_tokens(), config_.embed_dim});
      const Tensor<float> token = weights_.class_token.load();
      float* out = prefix.data();
      for (std::size_t window = 0; window < config_.num_window_tokens(); ++window)
        out = std::ranges::copy(token.flat(), out).out;
    } else if (config_.num_prefix_tokens() != 0) {
      prefix = Tensor<float>(Shape{config_.num_prefix_tokens(), config_.embed_dim});
      float* out = prefix.data();
      for (const WeightTensor* part :
           {&weights_.class_token, &weights_.distillation_token, &weights_.register_tokens}) {
        out = std::ranges::copy(part->load().flat(), out).out;
      }
    }
    return PatchEmbed(projection(weights_.patch, weights_.image_shift), std::move(prefix), config_.patch,
                      {.mean = weights_.pixel_mean.load(),
                       .std = weights_.pixel_std.load(),
                       .pixels = layers_.optional_norm(weights_.patch_norm),
                       .projected = layers_.optional_norm(weights_.embed_norm),
                       .tokens = layers_.optional_norm(weights_.norm_pre)},
                      projection_of_clips());
  }

  /// A layer whose bias has `shift` added, if there is one.
  Linear projection(const LinearWeights& weights, const WeightTensor& shift) const {
    const kernels::LinearKernels& fine = *layers_.arithmetic().fine;
    if (!shift.present()) return layers_.linear(weights, fine);
    Tensor<float> bias = weights.bias.load();
    const Tensor<float> added = shift.load();
    for (std::size_t c = 0; c < bias.num_elements(); ++c) bias.data()[c] += added.data()[c];
    const Tensor<float> weight = weights.weight.load();
    return Linear(weight, bias.flat(), fine);
  }

  std::optional<Linear> projection_of_clips() const {
    if (!config_.has_clips()) return std::nullopt;
    if (config_.patch.own_clips) return projection(weights_.clip, weights_.clip_shift);
    return layers_.linear({.weight = weights_.clip.weight, .bias = weights_.patch.bias},
                          *layers_.arithmetic().fine);
  }

  Position position() const {
    const Tensor<float> table = weights_.position_table.load();
    const Tensor<float> frequencies = weights_.rope_frequencies.load();
    const Tensor<float> periods = weights_.rope_periods.load();
    const Tensor<float> class_angles = weights_.class_angles.load();
    const Tensor<float> between = weights_.between_tables.load();  // (depth - 1, 1, rows, C)
    TensorView<const float> between_tables;
    if (!between.empty())
      between_tables = {between.data(), Shape{between.dim(0), between.dim(2), between.dim(3)}};
    const std::optional<WindowConfig>& windows = config_.attention.windows;
    return Position(config_.position,
                    {.embed_dim = config_.embed_dim,
                     .depth = config_.encoder.depth,
                     .num_heads = config_.attention.num_heads,
                     .head_dim = config_.head_width(),
                     .num_prefix = config_.num_prefix_tokens(),
                     .window = windows ? windows->size : 0,
                     .windows_per_side = windows ? windows->per_side : 0,
                     .windows_have_tokens = windows && windows->class_tokens,
                     .completes_windows = windows && windows->pads,
                     .global_blocks = windows ? std::span<const std::size_t>(windows->global_blocks)
                                              : std::span<const std::size_t>(),
                     .trained_grid = config_.native_grid()},
                    {.added_table = table,
                     .between_tables = between_tables,
                     .mixed_frequencies = frequencies,
                     .periods = periods.flat(),
                     .class_angles = class_angles.flat(),
                     .relative = relative_positions()});
  }

  static RelativeTensors relative(const RelativeWeights& weights) {
    return {.table = weights.table.load(),
            .layers = {.fc1 = weights.fc1.weight.load(),
                       .fc1_bias = weights.fc1.bias.load(),
                       .fc2 = weights.fc2.weight.load(),
                       .fc2_bias = weights.fc2.bias.load()},
            .rows = weights.rows.load(),
            .columns = weights.columns.load()};
  }
  std::shared_ptr<const StoredRelative> relative_positions() const {
    if (!config_.position.relative) return nullptr;
    auto out = std::make_shared<StoredRelative>();
    out->shared = relative(weights_.relative);
    if (config_.position.relative->scope == RelativeScope::shared) return out;
    for (const BlockWeights& block : weights_.blocks) out->blocks.push_back(relative(block.relative));
    return out;
  }

  Encoder encoder() const { return Encoder(layers_.blocks(weights_.blocks)); }

  std::optional<LateQueries> late_queries() const {
    if (!config_.tokens.late) return std::nullopt;
    return LateQueries(config_.tokens.late->block, weights_.late_tokens.load());
  }

  AttentionPool pool() const {
    const AttentionPoolWeights& pool = weights_.pool;
    const Tensor<float> probe = pool.probe.load();
    Tensor<float> query(Shape{1, config_.embed_dim});  // the projected probe is the same for every image
    Activations none;
    layers_.linear(pool.q, layers_.float32())
        .forward(TensorView<const float>(probe.data(), Shape{1, config_.embed_dim}), query,
                 {.activations = none});
    Mlp mlp({.fc1 = layers_.linear(pool.fc1)}, {}, layers_.linear(pool.fc2),
            config_.head.attention_pool->activation);
    return AttentionPool(std::move(query), layers_.linear(pool.kv), layers_.linear(pool.proj),
                         layers_.norm(pool.norm), std::move(mlp), config_.head.attention_pool->num_heads,
                         layers_.arithmetic().attention);
  }

  HeadLayers head() const {
    HeadLayers head{.norm = layers_.optional_norm(weights_.norm)};
    if (config_.head.pooling == Pooling::attention) head.pool.emplace(pool());
    head.pooled_norm = layers_.optional_norm(weights_.pooled_norm);
    if (config_.head.pooled_norm_eps != 0.0f)
      head.pooled_norm = layers_.norm(weights_.pooled_norm, config_.head.pooled_norm_eps);
    if (config_.head.pooler) head.pooler.emplace(layers_.linear(weights_.pooler, layers_.float32()));
    if (config_.head.projection && !config_.head.joint)
      head.projection.emplace(layers_.linear(weights_.projection, layers_.float32()));
    if (config_.head.num_classes == 0) return head;
    head.classifier.emplace(layers_.linear(weights_.head, layers_.float32()));
    if (config_.head.input == HeadInput::class_and_distillation)
      head.classifier_distillation.emplace(layers_.linear(weights_.head_distillation, layers_.float32()));
    return head;
  }

  /// Of a model whose visual tokens are pooled: only the norm of its own.
  Head head_of_tokens() const {
    ModelConfig config = config_;
    config.head = HeadConfig();
    config.head.pooling = Pooling::none;
    return Head(config, {.norm = layers_.optional_norm(weights_.norm)});
  }

  std::optional<Head> merged_head() const {
    if (!config_.head.pools_merged) return std::nullopt;
    ModelConfig config = config_;
    config.tokens = {.class_token = false};
    HeadLayers layers = head();
    layers.norm.reset();
    return Head(config, std::move(layers));
  }

  std::optional<JointHead> joint_head() const {
    if (!config_.head.joint) return std::nullopt;
    const ModelConfig config = joint_head_blocks(config_);
    const LayerBuilder layers(config, kernels_, precision_);
    return JointHead(Encoder(layers.blocks(weights_.joint_blocks)), layers.norm(weights_.joint_norm),
                     config_.num_prefix_tokens());
  }

  std::optional<Merger> merger() const {
    if (!config_.merger) return std::nullopt;
    return Merger(*config_.merger, layers_.merger(*config_.merger, weights_.merger));
  }

  /// The mergers between blocks normalize cells, independent of the last one.
  std::vector<Merger> deepstack() const {
    std::vector<Merger> mergers;
    for (const MergerWeights& weights : weights_.deepstack) {
      const MergerConfig config = deepstack_merger(*config_.merger);
      mergers.emplace_back(config, layers_.merger(config, weights));
    }
    return mergers;
  }

  const ModelConfig& config_;
  const ModelWeights& weights_;
  const kernels::KernelTable& kernels_;
  const Precision precision_;
  const LayerBuilder layers_;
};

}  // namespace

ModelLayers build_layers(const ModelConfig& config, const ModelWeights& weights,
                         const kernels::KernelTable& kernels, Precision precision) {
  std::optional<ModelLayers> layers;
  with_team(/*threads=*/0, [&] { layers.emplace(Builder(config, weights, kernels, precision).build()); });
  return std::move(*layers);
}

JointHead::JointHead(Encoder encoder, LayerNorm norm, std::size_t num_prefix)
    : encoder_(std::move(encoder)), norm_(std::move(norm)), num_prefix_(num_prefix) {}

// Source: facebookresearch/dinov3, dinov3/eval/text/vision_tower.py.
void JointHead::forward(TensorView<float> tokens, TensorView<float> out, const Pass& pass) const {
  encoder_.forward(tokens, {.sequences = Sequences(tokens.dim(0), tokens.dim(1))}, {},
                   {.activations = pass.activations, .threads = pass.threads, .times = pass.times});
  const TensorView<float> rows(tokens.data(), Shape{tokens.num_rows(), tokens.num_columns()});
  norm_.forward(rows, rows, pass.threads);
  const std::size_t num_images = tokens.dim(0), width = tokens.dim(2);
  pool_token(tokens, 0, TensorView<float>(out.data(), Shape{num_images, width}, 2 * width));
  pool_mean(tokens, num_prefix_, tokens.dim(1),
            TensorView<float>(out.data() + width, Shape{num_images, width}, 2 * width));
}

}  // namespace vit::internal
