#include "vit/model.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <utility>

#include "vit/base/arena.h"
#include "vit/encoder/encoder.h"
#include "vit/head/pooling.h"
#include "vit/kernels/kernels.h"
#include "vit/patch/patch_embed.h"
#include "vit/patch/patchify.h"
#include "vit/position/position.h"
#include "vit/weights/model_weights.h"

namespace vit {
namespace {

constexpr const char* kWhere = "VisionTransformer";

// ------------------------------------------------------------------------------------ weights into layers

Linear make_linear(const LinearWeights& weights, const kernels::KernelTable& kernels) {
  const Tensor<float> weight = weights.weight.load();
  const Tensor<float> bias = weights.bias.load();
  return Linear(weight, bias.flat(), kernels);
}

LayerNorm make_norm(const NormWeights& weights, float eps, const kernels::KernelTable& kernels) {
  return LayerNorm(weights.gamma.load().flat(), weights.beta.load().flat(), eps, kernels);
}

std::optional<LayerNorm> make_optional_norm(const NormWeights& weights, float eps, const kernels::KernelTable& kernels) {
  if (!weights.gamma.present()) return std::nullopt;
  return make_norm(weights, eps, kernels);
}

Attention make_attention(const BlockWeights& block, const ModelConfig& config, const kernels::KernelTable& kernels) {
  const Tensor<float> qkv_weight = block.qkv.weight.load(), qkv_bias = block.qkv.bias.load();
  const Tensor<float> gamma = block.attention_norm.gamma.load(), beta = block.attention_norm.beta.load();
  const Tensor<float> proj_weight = block.proj.weight.load(), proj_bias = block.proj.bias.load();
  return Attention({.qkv_weight = qkv_weight,
                    .qkv_bias = qkv_bias.flat(),
                    .norm_gamma = gamma.flat(),
                    .norm_beta = beta.flat(),
                    .proj_weight = proj_weight,
                    .proj_bias = proj_bias.flat()},
                   config.num_heads, config.norm_eps, kernels);
}

Mlp make_mlp(const LinearWeights& fc1, const NormWeights& norm, const LinearWeights& fc2, Activation activation,
             float eps, const kernels::KernelTable& kernels) {
  const Tensor<float> weight1 = fc1.weight.load(), bias1 = fc1.bias.load();
  const Tensor<float> gamma = norm.gamma.load(), beta = norm.beta.load();
  const Tensor<float> weight2 = fc2.weight.load(), bias2 = fc2.bias.load();
  return Mlp({.fc1_weight = weight1,
              .fc1_bias = bias1.flat(),
              .norm_gamma = gamma.flat(),
              .norm_beta = beta.flat(),
              .fc2_weight = weight2,
              .fc2_bias = bias2.flat()},
             activation, eps, kernels);
}

GatedMlp make_gated_mlp(const BlockWeights& block, const ModelConfig& config, const kernels::KernelTable& kernels) {
  const Tensor<float> gate_weight = block.gate.weight.load(), gate_bias = block.gate.bias.load();
  const Tensor<float> value_weight = block.fc1.weight.load(), value_bias = block.fc1.bias.load();
  const Tensor<float> gamma = block.mlp_norm.gamma.load(), beta = block.mlp_norm.beta.load();
  const Tensor<float> weight2 = block.fc2.weight.load(), bias2 = block.fc2.bias.load();
  return GatedMlp({.gate_weight = gate_weight,
                   .gate_bias = gate_bias.flat(),
                   .value_weight = value_weight,
                   .value_bias = value_bias.flat(),
                   .norm_gamma = gamma.flat(),
                   .norm_beta = beta.flat(),
                   .fc2_weight = weight2,
                   .fc2_bias = bias2.flat()},
                  config.activation, config.norm_eps, kernels);
}

Block make_block(const BlockWeights& block, const ModelConfig& config, const kernels::KernelTable& kernels) {
  const auto mlp = [&]() -> std::variant<Mlp, GatedMlp> {
    if (config.mlp == MlpKind::gated) return make_gated_mlp(block, config, kernels);
    return make_mlp(block.fc1, block.mlp_norm, block.fc2, config.activation, config.norm_eps, kernels);
  };
  return Block(make_norm(block.norm1, config.norm_eps, kernels), make_attention(block, config, kernels),
               block.scale1.load(), make_norm(block.norm2, config.norm_eps, kernels), mlp(), block.scale2.load());
}

Encoder make_encoder(const ModelConfig& config, const ModelWeights& weights, const kernels::KernelTable& kernels) {
  std::vector<Block> blocks;
  blocks.reserve(config.depth);
  for (const BlockWeights& block : weights.blocks) blocks.push_back(make_block(block, config, kernels));
  return Encoder(make_optional_norm(weights.norm_pre, config.norm_eps, kernels), std::move(blocks), config.num_heads);
}

PatchEmbed make_patch_embed(const ModelConfig& config, const ModelWeights& weights, const kernels::KernelTable& kernels) {
  Tensor<float> prefix;
  if (config.num_prefix_tokens() != 0) {
    prefix = Tensor<float>(Shape{config.num_prefix_tokens(), config.embed_dim});
    float* out = prefix.data();
    for (const WeightTensor* part : {&weights.class_token, &weights.distillation_token, &weights.register_tokens}) {
      out = std::ranges::copy(part->load().flat(), out).out;
    }
  }
  return PatchEmbed(make_linear(weights.patch, kernels), std::move(prefix), config.patch_size);
}

position::Position make_position(const ModelConfig& config, const ModelWeights& weights) {
  const Tensor<float> table = weights.position_table.load();
  const Tensor<float> frequencies = weights.rope_frequencies.load();
  const Tensor<float> periods = weights.rope_periods.load();
  return position::Position(config.position,
                            {.embed_dim = config.embed_dim,
                             .depth = config.depth,
                             .num_heads = config.num_heads,
                             .head_dim = config.head_dim()},
                            {.added_table = table, .mixed_frequencies = frequencies, .periods = periods.flat()});
}

std::optional<AttentionPool> make_pool(const ModelConfig& config, const ModelWeights& weights,
                                       const kernels::KernelTable& kernels) {
  if (config.pooling != Pooling::attention) return std::nullopt;
  const AttentionPoolWeights& pool = weights.pool;
  const Tensor<float> probe = pool.probe.load();
  Tensor<float> query(Shape{1, config.embed_dim});  // the projected probe is the same for every image
  make_linear(pool.q, kernels)
      .forward(TensorView<const float>(probe.data(), Shape{1, config.embed_dim}), query, /*threads=*/1);
  return AttentionPool(std::move(query), make_linear(pool.kv, kernels), make_linear(pool.proj, kernels),
                       make_norm(pool.norm, config.norm_eps, kernels),
                       make_mlp(pool.fc1, {}, pool.fc2, config.attention_pool.activation, config.norm_eps, kernels),
                       config.attention_pool.num_heads, kernels);
}

/// Gives `tensor` the shape; keeps its memory where it has that shape already.
void resize(Tensor<float>& tensor, bool wanted, const Shape& shape) {
  if (!wanted) {
    tensor = Tensor<float>();
  } else if (!(tensor.shape() == shape) || tensor.empty()) {
    tensor = Tensor<float>(shape);
  }
}

void check_request(const Request& request, const ModelConfig& config) {
  VIT_CHECK(!request.logits || config.num_classes != 0, kWhere, "logits asked of a model without classifier");
  VIT_CHECK(!request.pooled || config.pooling != Pooling::none, kWhere, "a pooled vector asked of a model without pooling");
  VIT_CHECK(!request.projected || config.projection_dim != 0, kWhere, "a projected vector asked of a model without projection");
  for (const std::vector<std::size_t>* list : {&request.blocks, &request.attention}) {
    for (const std::size_t block : *list) {
      VIT_CHECK(block < config.depth, kWhere, "block ", block, " asked of a model with ", config.depth,
                " blocks (0 to ", config.depth - 1, ")");
    }
  }
}

}  // namespace

// ----------------------------------------------------------------------------------------------- the model

struct ForwardMemory::Parts {
  Workspace workspace;  // what the layers need
  Arena arena;          // what stands between them
};

ForwardMemory::ForwardMemory() : parts_(std::make_unique<Parts>()) {}
ForwardMemory::~ForwardMemory() = default;
ForwardMemory::ForwardMemory(ForwardMemory&&) noexcept = default;
ForwardMemory& ForwardMemory::operator=(ForwardMemory&&) noexcept = default;
void ForwardMemory::measure_stages(StageTimes* times) noexcept { parts_->workspace.stages = times; }
std::size_t ForwardMemory::bytes() const noexcept {
  return parts_->workspace.capacity_bytes() + parts_->arena.capacity_bytes();
}

struct VisionTransformer::Parts {
  Parts(ModelConfig model_config, const ModelWeights& weights, const kernels::KernelTable& table)
      : config(std::move(model_config)),
        kernels(table),
        patch_embed(make_patch_embed(config, weights, table)),
        position(make_position(config, weights)),
        encoder(make_encoder(config, weights, table)),
        norm(make_optional_norm(weights.norm, config.norm_eps, table)),
        pool(make_pool(config, weights, table)),
        pooled_norm(make_optional_norm(weights.pooled_norm, config.norm_eps, table)) {
    if (config.projection_dim != 0) projection.emplace(make_linear(weights.projection, table));
    if (config.num_classes != 0) head.emplace(make_linear(weights.head, table));
    if (config.num_classes != 0 && config.head_input == HeadInput::class_and_distillation) {
      head_distillation.emplace(make_linear(weights.head_distillation, table));
    }
  }

  /// Positions of a grid, computed once and kept for the grids used last.
  std::shared_ptr<const position::PositionContext> context_for(GridSize grid) const {
    constexpr std::size_t kKept = 8;
    const std::lock_guard lock(contexts_mutex);
    for (auto entry = contexts.begin(); entry != contexts.end(); ++entry) {
      if ((*entry)->grid() != grid) continue;
      contexts.splice(contexts.begin(), contexts, entry);
      return contexts.front();
    }
    contexts.push_front(std::make_shared<const position::PositionContext>(position.build_context(grid)));
    if (contexts.size() > kKept) contexts.pop_back();
    return contexts.front();
  }

  /// Leading tokens that suffice for the request; 0 = all are needed.
  std::size_t leading_tokens(const Request& request) const {
    const bool needs_all = request.tokens || !request.blocks.empty() || !request.attention.empty();
    if (needs_all || config.head_input == HeadInput::class_and_patch_mean) return 0;
    if (config.pooling == Pooling::class_and_distillation || config.head_input == HeadInput::class_and_distillation) {
      return 2;
    }
    return config.pooling == Pooling::class_token ? 1 : 0;
  }

  void pool_tokens(TensorView<const float> tokens, TensorView<float> scratch, TensorView<float> pooled,
                   Workspace& workspace, int threads) const;
  void classify(TensorView<const float> tokens, TensorView<const float> pooled, TensorView<float> scratch,
                TensorView<float> logits, int threads) const;

  ModelConfig config;
  const kernels::KernelTable& kernels;
  PatchEmbed patch_embed;
  position::Position position;
  Encoder encoder;
  std::optional<LayerNorm> norm;
  std::optional<AttentionPool> pool;
  std::optional<LayerNorm> pooled_norm;
  std::optional<Linear> projection, head, head_distillation;

  mutable std::mutex contexts_mutex;
  mutable std::list<std::shared_ptr<const position::PositionContext>> contexts;  // used last first
};

VisionTransformer::VisionTransformer(ModelConfig config, const ModelWeights& weights,
                                     const kernels::KernelTable& kernels) {
  validate(config);
  parts_ = std::make_unique<const Parts>(std::move(config), weights, kernels);
}
VisionTransformer::~VisionTransformer() = default;
VisionTransformer::VisionTransformer(VisionTransformer&&) noexcept = default;
VisionTransformer& VisionTransformer::operator=(VisionTransformer&&) noexcept = default;

const ModelConfig& VisionTransformer::config() const noexcept { return parts_->config; }
const kernels::KernelTable& VisionTransformer::kernels() const noexcept { return parts_->kernels; }

GridSize VisionTransformer::grid_for(std::size_t height, std::size_t width) const {
  const ModelConfig& c = parts_->config;
  VIT_CHECK(!c.fixed_size || (height == c.image_height && width == c.image_width), kWhere, "this model takes images of ",
            c.image_height, " x ", c.image_width, " (height x width) only, got ", height, " x ", width);
  return patch_grid(height, width, c.patch_size);
}

void VisionTransformer::forward(TensorView<const float> pixels, const Request& request, int threads,
                                ForwardMemory& memory, Outputs& outputs) const {
  const Parts& model = *parts_;
  const ModelConfig& c = model.config;
  VIT_CHECK(pixels.rank() == 4 && pixels.size(0) != 0 && pixels.size(1) == 3, kWhere,
            "pixels must have shape (B, 3, H, W) with B > 0, got ", pixels.shape().to_string());
  check_request(request, c);
  const GridSize grid = grid_for(pixels.size(2), pixels.size(3));
  const std::shared_ptr<const position::PositionContext> position = model.context_for(grid);

  // sizes
  const std::size_t num_images = pixels.size(0);  // B
  const std::size_t num_patches = grid.rows * grid.columns;
  const std::size_t num_prefix = c.num_prefix_tokens();
  const std::size_t num_tokens = num_prefix + num_patches;  // T
  const std::size_t num_leading = model.leading_tokens(request);
  const std::size_t num_final = num_leading != 0 ? num_leading : num_tokens;
  const std::size_t width = c.embed_dim;
  const std::size_t patch_dim = 3 * c.patch_size * c.patch_size;

  // memory
  memory.parts_->workspace.reserve({.num_images = num_images,
                                    .num_tokens = num_tokens,
                                    .embed_dim = width,
                                    .num_heads = c.num_heads,
                                    .pool_heads = model.pool ? c.attention_pool.num_heads : 0,
                                    .hidden_dim = model.pool ? std::max(c.mlp_dim, c.attention_pool.mlp_dim) : c.mlp_dim,
                                    .threads = threads},
                                   model.kernels);
  Workspace& workspace = memory.parts_->workspace;
  Arena& arena = memory.parts_->arena;
  arena.reserve(Arena::bytes_for<float>(num_images * num_patches * patch_dim) +
                Arena::bytes_for<float>(num_images * num_tokens * width) +
                Arena::bytes_for<float>(num_images * num_leading * width) + Arena::bytes_for<float>(num_images * width) +
                Arena::bytes_for<float>(num_images * 2 * width));
  const auto rows = arena.take<float>({num_images, num_patches, patch_dim});
  const auto tokens = arena.take<float>({num_images, num_tokens, width});
  const auto leading = arena.take<float>({num_images, num_leading, width});
  const auto pooled = arena.take<float>({num_images, width});
  const auto scratch = arena.take<float>({num_images, 2 * width});

  // results
  outputs.grid = grid;
  outputs.num_prefix_tokens = num_prefix;
  outputs.blocks.resize(request.blocks.size());
  outputs.attention.resize(request.attention.size());
  for (Tensor<float>& tap : outputs.blocks) resize(tap, true, {num_images, num_tokens, width});
  for (Tensor<float>& tap : outputs.attention) resize(tap, true, {num_images, c.num_heads, num_tokens, num_tokens});
  resize(outputs.embedded, request.embedded, {num_images, num_tokens, width});
  resize(outputs.tokens, request.tokens, {num_images, num_tokens, width});
  resize(outputs.pooled, request.pooled, {num_images, width});
  resize(outputs.projected, request.projected, {num_images, c.projection_dim});
  resize(outputs.logits, request.logits, {num_images, c.num_classes});

  // image -> patches -> tokens -> blocks
  model.patch_embed.forward(pixels, *position, rows, tokens, threads, workspace.stages);
  model.encoder.forward(tokens, *position,
                        {.num_prefix = num_prefix,
                         .num_leading = num_leading,
                         .taps = {.blocks = request.blocks,
                                  .block_tokens = outputs.blocks,
                                  .attention = request.attention,
                                  .probabilities = outputs.attention,
                                  .embedded = outputs.embedded.view()}},
                        leading, workspace, threads);

  // tokens -> head
  const StageTimer timer(workspace.stages, Stage::head);
  const TensorView<float> final_tokens = num_leading != 0 ? leading : tokens;  // (B, R, C) or (B, T, C)
  if (model.norm) {
    const TensorView<float> flat(final_tokens.data(), Shape{num_images * num_final, width});
    model.norm->forward(flat, flat, threads);
  }
  if (request.tokens) std::ranges::copy(final_tokens.flat(), outputs.tokens.data());
  if (!request.pooled && !request.projected && !request.logits) return;
  if (c.pooling != Pooling::none) {
    model.pool_tokens(final_tokens, scratch, pooled, workspace, threads);
    if (model.pooled_norm) model.pooled_norm->forward(pooled, pooled, threads);
    if (request.pooled) std::ranges::copy(pooled.flat(), outputs.pooled.data());
    if (request.projected) model.projection->forward(pooled, outputs.projected, threads);
  }
  if (request.logits) model.classify(final_tokens, pooled, scratch, outputs.logits, threads);
}

void VisionTransformer::Parts::pool_tokens(TensorView<const float> tokens, TensorView<float> scratch,
                                           TensorView<float> pooled, Workspace& workspace, int threads) const {
  const std::size_t num_images = tokens.size(0);
  const std::size_t width = tokens.size(2);
  switch (config.pooling) {
    case Pooling::none: return;
    case Pooling::class_token: return pool_token(tokens, 0, pooled);
    case Pooling::class_and_distillation: return pool_mean(tokens, 0, 2, pooled);
    case Pooling::patch_mean: return pool_mean(tokens, config.num_prefix_tokens(), tokens.size(1), pooled);
    case Pooling::attention: {
      const TensorView<float> queries(scratch.data(), Shape{num_images, width});
      const TensorView<float> heads(scratch.data() + num_images * width, Shape{num_images, width});
      return pool->forward(tokens, queries, heads, pooled, workspace, threads);
    }
  }
}

void VisionTransformer::Parts::classify(TensorView<const float> tokens, TensorView<const float> pooled,
                                        TensorView<float> scratch, TensorView<float> logits, int threads) const {
  const std::size_t num_images = tokens.size(0);
  const std::size_t width = tokens.size(2);
  switch (config.head_input) {
    case HeadInput::pooled: return head->forward(pooled, logits, threads);
    case HeadInput::class_and_patch_mean: {
      const TensorView<float> both(scratch.data(), Shape{num_images, 2 * width});
      pool_token(tokens, 0, TensorView<float>(both.data(), Shape{num_images, width}, 2 * width));
      pool_mean(tokens, config.num_prefix_tokens(), tokens.size(1),
                TensorView<float>(both.data() + width, Shape{num_images, width}, 2 * width));
      return head->forward(both, logits, threads);
    }
    case HeadInput::class_and_distillation: {  // mean of two classifiers, one for each token
      const TensorView<float> row(scratch.data(), Shape{num_images, width});
      pool_token(tokens, 0, row);
      head->forward(row, logits, threads);
      pool_token(tokens, 1, row);
      head_distillation->forward(row, logits, threads, {.residual = logits});
      for (float& logit : logits.flat()) logit *= 0.5f;
      return;
    }
  }
}

}  // namespace vit
