#include "vit/towers/vision_transformer.h"

#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/config/output_table.h"
#include "vit/patch/patchify.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"VisionTransformer", ErrorKind::argument};

}  // namespace

struct VisionTransformer::Images {
  TensorView<const float> pixels;  // (B, 3, H, W)
  std::size_t first;               // image 0 of `pixels` is this one of `outputs`
  const Request& request;
  const PositionContext& position;
  Outputs& outputs;

  std::size_t count() const { return pixels.dim(0); }
  TensorView<float> part_of(Output output) const { return outputs.find(output).part(first, count()); }
  HeadOutputs of_head(bool with_projection) const {
    return {.tokens = part_of(Output::tokens),
            .pooled = part_of(Output::pooled),
            .projected = with_projection ? part_of(Output::projected) : TensorView<float>(),
            .logits = part_of(Output::logits)};
  }
};

VisionTransformer::VisionTransformer(ModelConfig config, const ModelWeights& weights,
                                     const kernels::KernelTable& kernels, Precision precision)
    : config_((validate(config), std::move(config))),
      kernels_(&kernels),
      precision_(precision),
      layers_(build_layers(config_, weights, kernels, precision)) {}

GridSize VisionTransformer::grid_for(std::size_t height, std::size_t width) const {
  const ModelConfig& c = config_;
  VIT_CHECK(!c.fixed_size || (height == c.image_height && width == c.image_width), kWhere,
            "this model takes images of ", c.image_height, " x ", c.image_width,
            " (height x width) only, got ", height, " x ", width);
  return patch_grid(height, width, c.patch_size);
}

std::size_t VisionTransformer::num_leading_tokens(const Request& request) const {
  const bool needs_all = needs_all_tokens(request) || (request.has(Output::projected) && layers_.joint_head);
  return needs_all ? 0 : layers_.head.num_leading_tokens();
}

// image -> patches -> tokens -> blocks -> head
void VisionTransformer::run(const Images& images, const Pass& pass) const {
  Activations& a = pass.activations;
  a.reserve(activation_shape(images.request, images.count(), images.position.grid(), pass.threads),
            arithmetic_of(*kernels_, precision_));
  const Sequences sequences(images.count(), a.tokens.dim(1));
  const std::size_t num_leading = num_leading_tokens(images.request);
  Observer observer(images.outputs.tensors(), images.first, images.count());

  layers_.patch_embed.forward(images.pixels, images.position, a.tokens, pass);
  const TensorView<float> tokens = layers_.encoder.forward(
      a.tokens,
      {.sequences = sequences,
       .wanted = num_leading == 0 ? sequences : Sequences(images.count(), num_leading),
       .position = &images.position,
       .num_prefix = config_.num_prefix_tokens()},
      observer, pass);
  layers_.head.forward(tokens, images.of_head(!layers_.joint_head), pass);
  if (layers_.joint_head && images.request.has(Output::projected))
    layers_.joint_head->forward(tokens, images.part_of(Output::projected), pass);
}

ActivationShape VisionTransformer::activation_shape(const Request& request, std::size_t num_images,
                                                    GridSize grid, int threads) const {
  const std::size_t num_patches = grid.rows * grid.columns;
  const bool has_pool = layers_.head.has_attention_pool();
  return {.num_images = num_images,
          .num_patches = num_patches,
          .patch_dim = 3 * config_.patch_size * config_.patch_size,
          .num_tokens = config_.num_prefix_tokens() + num_patches,
          .num_leading = num_leading_tokens(request),
          .embed_dim = config_.embed_dim,
          .attention_dim = config_.attention_dim(),
          .num_heads = config_.num_heads,
          .num_pool_heads = has_pool ? config_.attention_pool.num_heads : 0,
          .hidden_dim = std::max(
              {config_.mlp_dim, has_pool ? config_.attention_pool.mlp_dim : 0, config_.joint_mlp_dim}),
          .threads = threads};
}

void VisionTransformer::forward_tokens(TensorView<const float> pixels, const Request& request, int threads,
                                       ForwardMemory& memory, Outputs& outputs) const {
  VIT_CHECK(pixels.rank() == 4 && pixels.dim(0) != 0 && pixels.dim(1) == 3, kWhere,
            "pixels must have shape (B, 3, H, W) with B > 0, got ", pixels.shape().to_string());
  const std::size_t num_images = pixels.dim(0);
  const GridSize grid = grid_for(pixels.dim(2), pixels.dim(3));
  const auto position = layers_.positions->for_grid(grid);
  outputs.reserve(request, config_, num_images, grid);

  Lanes lanes(Sequences(num_images, config_.num_prefix_tokens() + grid.rows * grid.columns), threads,
              /*rows_per_pass=*/0, memory);
  lanes.run(activation_shape(request, lanes.count_of(0), grid, 1), arithmetic_of(*kernels_, precision_),
            [&](std::size_t first, std::size_t count, const Pass& pass) {
              run({pixels.part(first, count), first, request, *position, outputs}, pass);
            });
}

}  // namespace vit::internal
