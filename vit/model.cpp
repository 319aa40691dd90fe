#include "vit/model.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <utility>

#include "vit/base/arena.h"
#include "vit/base/parallel.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/workspace.h"
#include "vit/model_layers.h"
#include "vit/patch/patchify.h"

namespace vit {
namespace {

constexpr const char* kWhere = "VisionTransformer";

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
  VIT_CHECK(!request.pooled || config.pooling != Pooling::none, kWhere,
            "a pooled vector asked of a model without pooling");
  VIT_CHECK(!request.projected || config.projection_dim != 0, kWhere,
            "a projected vector asked of a model without projection");
  for (const std::vector<std::size_t>* list : {&request.blocks, &request.attention}) {
    for (const std::size_t block : *list) {
      VIT_CHECK(block < config.depth, kWhere, "block ", block, " asked of a model with ", config.depth,
                " blocks (0 to ", config.depth - 1, ")");
    }
  }
}

}  // namespace

// ---------------------------------------------------------------------------------------------- the model

struct ForwardMemory::Parts {
  Workspace workspace;  // what the layers need
  Arena arena;          // what stands between them
};

ForwardMemory::ForwardMemory() : parts_(std::make_unique<Parts>()) {}
ForwardMemory::~ForwardMemory() = default;
ForwardMemory::ForwardMemory(ForwardMemory&&) noexcept = default;
ForwardMemory& ForwardMemory::operator=(ForwardMemory&&) noexcept = default;
void ForwardMemory::measure_stages(StageTimes* times) noexcept {
  parts_->workspace.stages = times;
}
std::size_t ForwardMemory::bytes() const noexcept {
  return parts_->workspace.capacity_bytes() + parts_->arena.capacity_bytes();
}

struct VisionTransformer::Parts {
  /// Positions of a grid, computed once and kept for the grids used last.
  std::shared_ptr<const position::PositionContext> context_for(GridSize grid) const {
    constexpr std::size_t kKept = 8;
    const std::lock_guard lock(contexts_mutex);
    for (auto entry = contexts.begin(); entry != contexts.end(); ++entry) {
      if ((*entry)->grid() != grid) continue;
      contexts.splice(contexts.begin(), contexts, entry);
      return contexts.front();
    }
    contexts.push_front(
        std::make_shared<const position::PositionContext>(layers.position.build_context(grid)));
    if (contexts.size() > kKept) contexts.pop_back();
    return contexts.front();
  }

  /// Leading tokens that suffice for the request; 0 = all are needed.
  std::size_t leading_tokens(const Request& request) const {
    const bool needs_all = request.tokens || !request.blocks.empty() || !request.attention.empty();
    if (needs_all || config.head_input == HeadInput::class_and_patch_mean) return 0;
    if (config.pooling == Pooling::class_and_distillation ||
        config.head_input == HeadInput::class_and_distillation) {
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
  Dtype dtype;
  ModelLayers layers;

  mutable std::mutex contexts_mutex{};
  mutable std::list<std::shared_ptr<const position::PositionContext>> contexts{};  // used last first
};

VisionTransformer::VisionTransformer(ModelConfig config, const ModelWeights& weights,
                                     const kernels::KernelTable& kernels, Dtype dtype) {
  validate(config);
  ModelLayers layers = build_layers(config, weights, kernels, dtype);
  parts_ = std::unique_ptr<const Parts>(new Parts{
      .config = std::move(config), .kernels = kernels, .dtype = dtype, .layers = std::move(layers)});
}
VisionTransformer::~VisionTransformer() = default;
VisionTransformer::VisionTransformer(VisionTransformer&&) noexcept = default;
VisionTransformer& VisionTransformer::operator=(VisionTransformer&&) noexcept = default;

const ModelConfig& VisionTransformer::config() const noexcept {
  return parts_->config;
}
const kernels::KernelTable& VisionTransformer::kernels() const noexcept {
  return parts_->kernels;
}
Dtype VisionTransformer::dtype() const noexcept {
  return parts_->dtype;
}

GridSize VisionTransformer::grid_for(std::size_t height, std::size_t width) const {
  const ModelConfig& c = parts_->config;
  VIT_CHECK(!c.fixed_size || (height == c.image_height && width == c.image_width), kWhere,
            "this model takes images of ", c.image_height, " x ", c.image_width,
            " (height x width) only, got ", height, " x ", width);
  return patch_grid(height, width, c.patch_size);
}

std::size_t VisionTransformer::num_leading_tokens(const Request& request) const {
  return parts_->leading_tokens(request);
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
  memory.parts_->workspace.reserve(
      {.num_images = num_images,
       .num_tokens = num_tokens,
       .embed_dim = width,
       .num_heads = c.num_heads,
       .pool_heads = model.layers.pool ? c.attention_pool.num_heads : 0,
       .hidden_dim = model.layers.pool ? std::max(c.mlp_dim, c.attention_pool.mlp_dim) : c.mlp_dim,
       .threads = threads,
       .dtype = model.dtype},
      model.kernels);
  Workspace& workspace = memory.parts_->workspace;
  Arena& arena = memory.parts_->arena;
  arena.reserve(Arena::bytes_for<float>(num_images * num_patches * patch_dim) +
                Arena::bytes_for<float>(num_images * num_tokens * width) +
                Arena::bytes_for<float>(num_images * num_leading * width) +
                Arena::bytes_for<float>(num_images * width) +
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
  for (Tensor<float>& tap : outputs.attention)
    resize(tap, true, {num_images, c.num_heads, num_tokens, num_tokens});
  resize(outputs.embedded, request.embedded, {num_images, num_tokens, width});
  resize(outputs.tokens, request.tokens, {num_images, num_tokens, width});
  resize(outputs.pooled, request.pooled, {num_images, width});
  resize(outputs.projected, request.projected, {num_images, c.projection_dim});
  resize(outputs.logits, request.logits, {num_images, c.num_classes});

  with_team(threads, [&] {
    // image -> patches -> tokens -> blocks
    model.layers.patch_embed.forward(pixels, *position, rows, tokens, threads, workspace.stages);
    model.layers.encoder.forward(tokens, *position,
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
    if (model.layers.norm) {
      const TensorView<float> flat(final_tokens.data(), Shape{num_images * num_final, width});
      model.layers.norm->forward(flat, flat, threads);
    }
    if (request.tokens) std::ranges::copy(final_tokens.flat(), outputs.tokens.data());
    if (!request.pooled && !request.projected && !request.logits) return;
    if (c.pooling != Pooling::none) {
      model.pool_tokens(final_tokens, scratch, pooled, workspace, threads);
      if (model.layers.pooled_norm) model.layers.pooled_norm->forward(pooled, pooled, threads);
      if (request.pooled) std::ranges::copy(pooled.flat(), outputs.pooled.data());
      if (request.projected) model.layers.projection->forward(pooled, outputs.projected, threads);
    }
    if (request.logits) model.classify(final_tokens, pooled, scratch, outputs.logits, threads);
  });
}

void VisionTransformer::Parts::pool_tokens(TensorView<const float> tokens, TensorView<float> scratch,
                                           TensorView<float> pooled, Workspace& workspace,
                                           int threads) const {
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
      return layers.pool->forward(tokens, queries, heads, pooled, workspace, threads);
    }
  }
}

void VisionTransformer::Parts::classify(TensorView<const float> tokens, TensorView<const float> pooled,
                                        TensorView<float> scratch, TensorView<float> logits,
                                        int threads) const {
  const std::size_t num_images = tokens.size(0);
  const std::size_t width = tokens.size(2);
  switch (config.head_input) {
    case HeadInput::pooled: return layers.head->forward(pooled, logits, threads);
    case HeadInput::class_and_patch_mean: {
      const TensorView<float> both(scratch.data(), Shape{num_images, 2 * width});
      pool_token(tokens, 0, TensorView<float>(both.data(), Shape{num_images, width}, 2 * width));
      pool_mean(tokens, config.num_prefix_tokens(), tokens.size(1),
                TensorView<float>(both.data() + width, Shape{num_images, width}, 2 * width));
      return layers.head->forward(both, logits, threads);
    }
    case HeadInput::class_and_distillation: {  // mean of two classifiers, one for each token
      const TensorView<float> row(scratch.data(), Shape{num_images, width});
      pool_token(tokens, 0, row);
      layers.head->forward(row, logits, threads);
      pool_token(tokens, 1, row);
      layers.head_distillation->forward(row, logits, threads, {.residual = logits});
      for (float& logit : logits.flat()) logit *= 0.5f;
      return;
    }
  }
}

}  // namespace vit
