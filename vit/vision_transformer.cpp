#include "vit/vision_transformer.h"

#include <algorithm>
#include <cmath>
#include <list>
#include <mutex>
#include <utility>

#include "vit/base/arena.h"
#include "vit/base/parallel.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/workspace.h"
#include "vit/vision_transformer_layers.h"
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
  /// What some images need on their way.
  struct Lane {
    Workspace workspace;  // what the layers need
    Arena arena;          // what stands between them
    StageTimes times;
  };
  /// Adds this share of what the lanes measured to `times`; a lane in company had the time of one thread.
  void collect_times(double share) {
    if (!times) return;
    for (Lane& lane : lanes) {
      for (std::size_t i = 0; i < kStageNames.size(); ++i) times->seconds[i] += share * lane.times.seconds[i];
      lane.times = {};
    }
  }

  std::vector<Lane> lanes = std::vector<Lane>(1);
  StageTimes* times = nullptr;
};

ForwardMemory::ForwardMemory() : parts_(std::make_unique<Parts>()) {}
ForwardMemory::~ForwardMemory() = default;
ForwardMemory::ForwardMemory(ForwardMemory&&) noexcept = default;
ForwardMemory& ForwardMemory::operator=(ForwardMemory&&) noexcept = default;
void ForwardMemory::measure_stages(StageTimes* times) noexcept {
  parts_->times = times;
}
std::size_t ForwardMemory::bytes() const noexcept {
  std::size_t bytes = 0;
  for (const Parts::Lane& lane : parts_->lanes) {
    bytes += lane.workspace.capacity_bytes() + lane.arena.capacity_bytes();
  }
  return bytes;
}

namespace {

/// The sizes of one image on its way.
struct PassSizes {
  std::size_t patches;  // N
  std::size_t prefix;
  std::size_t tokens;   // T
  std::size_t leading;  // tokens that the last block computes alone, 0 = it computes all
  std::size_t width;    // C
  std::size_t patch_dim;
};

/// How the images of a pass go to the threads: the first `num_tasks` times `images_per_task` by tasks of one
/// thread each, the rest shared by all. Threads with images of their own never wait for each other and keep
/// what they are at in their own cache.
struct Division {
  Division(std::size_t num_images, std::size_t num_tokens, std::size_t num_threads) {
    constexpr std::size_t kRows = 192;          // with fewer the weights come from memory too often
    constexpr std::size_t kTasksPerThread = 2;  // with fewer a slow core holds up the others
    images_per_task = ceil_div(kRows, num_tokens);
    const std::size_t rounds = num_images / images_per_task / num_threads;
    num_tasks = rounds < kTasksPerThread ? 0 : rounds * num_threads;
    num_shared = num_images - num_tasks * images_per_task;
  }
  std::size_t images_per_task, num_tasks, num_shared;
};

}  // namespace

struct VisionTransformer::Parts {
  using Lane = ForwardMemory::Parts::Lane;

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

  void reserve(Lane& lane, const PassSizes& sizes, std::size_t num_images, int threads) const;
  /// Runs `pixels` (B, 3, H, W); image b is image first_image + b of `outputs`.
  void run_images(TensorView<const float> pixels, std::size_t first_image, const PassSizes& sizes,
                  const position::PositionContext& position, const Request& request, int threads, Lane& lane,
                  Outputs& outputs) const;
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
  VIT_CHECK(pixels.rank() == 4 && pixels.dim(0) != 0 && pixels.dim(1) == 3, kWhere,
            "pixels must have shape (B, 3, H, W) with B > 0, got ", pixels.shape().to_string());
  check_request(request, c);
  const GridSize grid = grid_for(pixels.dim(2), pixels.dim(3));
  const std::shared_ptr<const position::PositionContext> position = model.context_for(grid);

  const std::size_t num_images = pixels.dim(0);
  const std::size_t num_patches = grid.rows * grid.columns;
  const PassSizes sizes{.patches = num_patches,
                        .prefix = c.num_prefix_tokens(),
                        .tokens = c.num_prefix_tokens() + num_patches,
                        .leading = model.leading_tokens(request),
                        .width = c.embed_dim,
                        .patch_dim = 3 * c.patch_size * c.patch_size};

  // results
  outputs.grid = grid;
  outputs.num_prefix_tokens = sizes.prefix;
  outputs.blocks.resize(request.blocks.size());
  outputs.attention.resize(request.attention.size());
  for (Tensor<float>& tap : outputs.blocks) resize(tap, true, {num_images, sizes.tokens, sizes.width});
  for (Tensor<float>& tap : outputs.attention)
    resize(tap, true, {num_images, c.num_heads, sizes.tokens, sizes.tokens});
  resize(outputs.embedded, request.embedded, {num_images, sizes.tokens, sizes.width});
  resize(outputs.tokens, request.tokens, {num_images, sizes.tokens, sizes.width});
  resize(outputs.pooled, request.pooled, {num_images, sizes.width});
  resize(outputs.projected, request.projected, {num_images, c.projection_dim});
  resize(outputs.logits, request.logits, {num_images, c.num_classes});

  const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
  const Division division(num_images, sizes.tokens, num_threads);
  const std::size_t at_once = division.images_per_task, num_shared = division.num_shared;
  ForwardMemory::Parts& parts = *memory.parts_;
  if (division.num_tasks != 0 && parts.lanes.size() < num_threads) parts.lanes.resize(num_threads);
  for (Parts::Lane& lane : parts.lanes) lane.workspace.stages = parts.times ? &lane.times : nullptr;
  const auto run = [&](std::size_t first, std::size_t count, int helpers, Parts::Lane& lane) {
    model.run_images(pixels.part(first, count), first, sizes, *position, request, helpers, lane, outputs);
  };
  with_team(threads, [&] {
    if (division.num_tasks != 0) {
      // all of them, so that no later pass finds one that was idle in this one
      for (std::size_t i = 0; i < num_threads; ++i) model.reserve(parts.lanes[i], sizes, at_once, 1);
      parallel_for(division.num_tasks, threads, [&](std::size_t task, int thread) {
        run(task * at_once, at_once, 1, parts.lanes[static_cast<std::size_t>(thread)]);
      });
      parts.collect_times(1.0 / static_cast<double>(num_threads));
    }
    if (num_shared != 0) {
      run(num_images - num_shared, num_shared, threads, parts.lanes.front());
      parts.collect_times(1.0);
    }
  });
}

void VisionTransformer::Parts::reserve(Lane& lane, const PassSizes& sizes, std::size_t num_images,
                                       int threads) const {
  lane.workspace.reserve(
      {.num_images = num_images,
       .num_tokens = sizes.tokens,
       .patch_dim = sizes.patch_dim,
       .embed_dim = sizes.width,
       .num_heads = config.num_heads,
       .pool_heads = layers.pool ? config.attention_pool.num_heads : 0,
       .hidden_dim = layers.pool ? std::max(config.mlp_dim, config.attention_pool.mlp_dim) : config.mlp_dim,
       .threads = threads,
       .dtype = dtype},
      kernels);
  lane.arena.reserve(Arena::bytes_for<float>(num_images * sizes.patches * sizes.patch_dim) +
                     Arena::bytes_for<float>(num_images * sizes.tokens * sizes.width) +
                     Arena::bytes_for<float>(num_images * sizes.leading * sizes.width) +
                     Arena::bytes_for<float>(num_images * sizes.width) +
                     Arena::bytes_for<float>(num_images * 2 * sizes.width));
}

void VisionTransformer::Parts::run_images(TensorView<const float> pixels, std::size_t first_image,
                                          const PassSizes& sizes, const position::PositionContext& position,
                                          const Request& request, int threads, Lane& lane,
                                          Outputs& outputs) const {
  const std::size_t num_images = pixels.dim(0);  // B
  const std::size_t num_final = sizes.leading != 0 ? sizes.leading : sizes.tokens;
  const std::size_t width = sizes.width;
  const auto part_of = [&](Tensor<float>& all) { return all.view().part(first_image, num_images); };

  reserve(lane, sizes, num_images, threads);
  Workspace& workspace = lane.workspace;
  const auto rows = lane.arena.take<float>({num_images, sizes.patches, sizes.patch_dim});
  const auto tokens = lane.arena.take<float>({num_images, sizes.tokens, width});
  const auto leading = lane.arena.take<float>({num_images, sizes.leading, width});
  const auto pooled = lane.arena.take<float>({num_images, width});
  const auto scratch = lane.arena.take<float>({num_images, 2 * width});

  // image -> patches -> tokens -> blocks
  layers.patch_embed.forward(pixels, position, rows, tokens, workspace.quantised, threads, workspace.stages);
  layers.encoder.forward(tokens, position,
                         {.num_prefix = sizes.prefix,
                          .num_leading = sizes.leading,
                          .taps = {.first_image = first_image,
                                   .blocks = request.blocks,
                                   .block_tokens = outputs.blocks,
                                   .attention = request.attention,
                                   .probabilities = outputs.attention,
                                   .embedded = outputs.embedded.view()}},
                         leading, workspace, threads);

  // tokens -> head
  const StageTimer timer(workspace.stages, Stage::head);
  const TensorView<float> final_tokens = sizes.leading != 0 ? leading : tokens;  // (B, R, C) or (B, T, C)
  if (layers.norm) {
    const TensorView<float> flat(final_tokens.data(), Shape{num_images * num_final, width});
    layers.norm->forward(flat, flat, threads);
  }
  if (request.tokens) std::ranges::copy(final_tokens.flat(), part_of(outputs.tokens).data());
  if (!request.pooled && !request.projected && !request.logits) return;
  if (config.pooling != Pooling::none) {
    pool_tokens(final_tokens, scratch, pooled, workspace, threads);
    if (layers.pooled_norm) layers.pooled_norm->forward(pooled, pooled, threads);
    if (layers.pooler) {
      const TensorView<float> before(scratch.data(), pooled.shape());
      std::ranges::copy(pooled.flat(), before.data());
      layers.pooler->forward(before, pooled, threads);
      for (float& value : pooled.flat()) value = std::tanh(value);
    }
    if (request.pooled) std::ranges::copy(pooled.flat(), part_of(outputs.pooled).data());
    if (request.projected) layers.projection->forward(pooled, part_of(outputs.projected), threads);
  }
  if (request.logits) classify(final_tokens, pooled, scratch, part_of(outputs.logits), threads);
}

void VisionTransformer::Parts::pool_tokens(TensorView<const float> tokens, TensorView<float> scratch,
                                           TensorView<float> pooled, Workspace& workspace,
                                           int threads) const {
  const std::size_t num_images = tokens.dim(0);
  const std::size_t width = tokens.dim(2);
  switch (config.pooling) {
    case Pooling::none: return;
    case Pooling::class_token: return pool_token(tokens, 0, pooled);
    case Pooling::class_and_distillation: return pool_mean(tokens, 0, 2, pooled);
    case Pooling::patch_mean: return pool_mean(tokens, config.num_prefix_tokens(), tokens.dim(1), pooled);
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
  const std::size_t num_images = tokens.dim(0);
  const std::size_t width = tokens.dim(2);
  switch (config.head_input) {
    case HeadInput::pooled: return layers.head->forward(pooled, logits, threads);
    case HeadInput::class_and_patch_mean: {
      const TensorView<float> both(scratch.data(), Shape{num_images, 2 * width});
      pool_token(tokens, 0, TensorView<float>(both.data(), Shape{num_images, width}, 2 * width));
      pool_mean(tokens, config.num_prefix_tokens(), tokens.dim(1),
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
