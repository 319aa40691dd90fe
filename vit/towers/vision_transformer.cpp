#include "vit/towers/vision_transformer.h"

#include <cmath>
#include <span>
#include <utility>

#include "vit/base/check.h"
#include "vit/encoder/observer.h"
#include "vit/encoder/progress.h"
#include "vit/encoder/rows_between.h"
#include "vit/towers/deepstack.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"VisionTransformer", ErrorKind::argument};

}  // namespace

VisionTransformer::VisionTransformer(ModelConfig config, const ModelWeights& weights,
                                     const kernels::KernelTable& kernels, Precision precision)
    : config_((validate(config), std::move(config))),
      kernels_(&kernels),
      precision_(precision),
      layers_(build_layers(config_, weights, kernels, precision)) {}

void VisionTransformer::forward(TensorView<const float> pixels, const Request& request, int threads,
                                ForwardMemory& memory, Outputs& outputs) const {
  if (needs_head(request)) return forward_maps(pixels, request, threads, memory, outputs);
  VIT_CHECK(pixels.rank() != 4 || num_windows(pixels.dim(2), pixels.dim(3)) == 1, kWhere, "pixels of ",
            pixels.dim(2), " x ", pixels.dim(3), " are computed as windows for maps only; this model takes ",
            config_.image.height, " x ", config_.image.width);
  forward_tokens(pixels, request, {.config = head_config()}, threads, memory, outputs);
}

void VisionTransformer::forward_tokens(TensorView<const float> pixels, const Request& request,
                                       const HeadSizes& head, int threads, ForwardMemory& memory,
                                       Outputs& outputs) const {
  VIT_CHECK(pixels.rank() == 4 && pixels.dim(0) != 0 && pixels.dim(1) != 0, kWhere,
            "pixels must have shape (B, ", config_.image.num_channels, ", H, W) with B > 0, got ",
            pixels.shape().to_string());
  std::size_t num_steps = steps_for(pixels.dim(1));
  const GridSize grid = grid_for(pixels.dim(2), pixels.dim(3));
  OutputWriter(outputs).reserve(request, config_, pixels.dim(0), grid, num_steps, head);
  if (config_.image.stack == StackRule::apart) {  // each step is an image of its own
    const Shape shape{pixels.dim(0) * num_steps, pixels.dim(1) / num_steps, pixels.dim(2), pixels.dim(3)};
    pixels = {pixels.data(), shape, pixels.row_stride()};
    num_steps = 1;
  }
  const auto position = layers_.positions->for_grid(grid, num_steps);
  const auto images = [&](std::size_t first, std::size_t count, ForwardMemory::Lane* lane) -> ImagePass {
    return {pixels.part(first, count), first, request, *position, outputs, lane};
  };
  const std::size_t num_tokens =
      config_.num_prefix_after(config_.encoder.depth - 1) + num_steps * grid.rows * grid.columns;
  Lanes lanes(Sequences(pixels.dim(0), num_tokens), threads, /*rows_per_pass=*/0, memory);
  lanes.run(
      activation_shape(images(0, lanes.count_of(0), nullptr), 1), arithmetic_of(*kernels_, precision_),
      [&](ForwardMemory::Lane& lane) {
        sequences_of_blocks(images(0, lanes.count_of(0), &lane), Sequences(lanes.count_of(0), num_tokens));
      },
      [&](std::size_t first, std::size_t count, const Pass& pass, ForwardMemory::Lane& lane) {
        run(images(first, count, &lane), pass);
      });
}

// image -> patches -> tokens -> blocks -> head
void VisionTransformer::run(const ImagePass& images, const Pass& pass) const {
  pass.activations.reserve(activation_shape(images, pass.threads), arithmetic_of(*kernels_, precision_));
  const EncoderInput input = encoder_input(images);
  const TensorView<float> embedded(pass.activations.tokens.data(),
                                   Shape{images.count(), input.sequences.longest(), config_.embed_dim});
  QueryMasks masks(config_.masked_blocks(), dense_.get(), images, pass.threads);
  DeepStack deepstack(layers_.deepstack, config_.deepstack(), images, input.num_prefix, pass);
  const std::span<const std::size_t> merged_blocks =
      config_.merger ? std::span<const std::size_t>(config_.merger->blocks) : std::span<const std::size_t>();
  EarlyMerger early(layers_.merger ? &*layers_.merger : nullptr, merged_blocks, images, input.num_prefix,
                    pass);
  Observer observer({OutputWriter(images.outputs).tensors(), images.first, images.count(), images.places()},
                    layers_.encoder.blocks(), pass);
  RowsBetween rows(images.position, pass.threads);
  Progress progress(pass.watch, pass.limits, config_.encoder.depth);
  BlockHook* const hooks[] = {&masks, &deepstack, &early, &observer, &rows, &progress};

  layers_.patch_embed.forward(images.pixels, images.position, embedded, pass);
  observer.keep_embedded(embedded);
  const TensorView<float> tokens =
      layers_.late_queries ? layers_.late_queries->forward(embedded, input, layers_.encoder, hooks, pass)
                           : layers_.encoder.forward(embedded, input, hooks, pass);
  run_heads(tokens, images, pass);
}

EncoderInput VisionTransformer::encoder_input(const ImagePass& images) const {
  const std::size_t num_prefix = config_.num_prefix_tokens();
  const std::size_t num_leading = num_leading_tokens(images.request);
  const Sequences sequences(images.count(), num_prefix + images.num_patches());
  const double head_width = static_cast<double>(config_.head_width());
  return {.sequences = sequences,
          .of_blocks = sequences_of_blocks(images, sequences),
          .wanted = num_leading == 0 ? sequences : Sequences(images.count(), num_leading),
          .position = &images.position,
          .num_prefix = num_prefix,
          .attention_factor =
              config_.attention.scale != 0.0 ? config_.attention.scale * std::sqrt(head_width) : 1.0};
}

void VisionTransformer::run_heads(TensorView<float> tokens, const ImagePass& images, const Pass& pass) const {
  const auto part_if = [&](bool wanted, Output output) {
    return wanted ? images.part_of(output) : TensorView<float>();
  };
  const bool has_cells = config_.has_cells_as_tokens();
  layers_.head.forward(tokens,
                       {.tokens = part_if(!has_cells, Output::tokens),
                        .places = images.places(),
                        .pooled = part_if(!layers_.merged_head, Output::pooled),
                        .projected = part_if(!layers_.joint_head, Output::projected),
                        .logits = part_if(!layers_.merged_head, Output::logits)},
                       pass);
  const Request& request = images.request;
  const bool is_early = config_.merger && !config_.merger->blocks.empty();
  const bool pools_merged =
      layers_.merged_head && (request.has(Output::pooled) || request.has(Output::logits));
  if (layers_.merger && !is_early &&
      (request.has(Output::merged) || pools_merged || (has_cells && request.has(Output::tokens))))
    run_merger(tokens, images, pools_merged, pass);
  if (layers_.joint_head && request.has(Output::projected))
    layers_.joint_head->forward(tokens, images.part_of(Output::projected), pass);
}

/// Visual tokens, and what is made of them.
void VisionTransformer::run_merger(TensorView<float> tokens, const ImagePass& images, bool pools,
                                   const Pass& pass) const {
  TensorView<float> merged = images.part_of(Output::merged);
  const TensorView<float> stage =
      config_.has_cells_as_tokens() ? images.part_of(Output::tokens) : TensorView<float>();
  if (pools && merged.empty()) merged = pass.activations.merged;
  layers_.merger->forward(tokens, images.tokens(config_.num_prefix_tokens()),
                          {.merged = merged, .stage = stage}, pass);
  if (!pools) return;
  const std::size_t width = config_.pooled_dim();
  const Shape shape{images.count(), merged.num_elements() / images.count() / width, width};
  layers_.merged_head->forward(
      TensorView<float>(merged.data(), shape),
      {.pooled = images.part_of(Output::pooled), .logits = images.part_of(Output::logits)}, pass);
}

}  // namespace vit::internal
