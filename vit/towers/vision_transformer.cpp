#include "vit/towers/vision_transformer.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "vit/base/check.h"
#include "vit/config/output_table.h"
#include "vit/patch/patchify.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"VisionTransformer", ErrorKind::argument};

}  // namespace

struct VisionTransformer::Images {
  TensorView<const float> pixels;  // (B, planes, H, W)
  std::size_t first;               // image 0 of `pixels` is this one of `outputs`
  const Request& request;
  const PositionContext& position;
  Outputs& outputs;
  WindowSequences* windows = nullptr;  // memory for them
  MaskMemory* masks = nullptr;

  std::size_t count() const { return pixels.dim(0); }
  std::size_t num_patches() const {
    return position.num_steps() * position.grid().rows * position.grid().columns;
  }
  TensorView<float> part_of(const OutputKey& key) const { return outputs.find(key).part(first, count()); }
  std::span<const std::uint32_t> places() const {
    if (position.windows() == nullptr) return {};
    return position.windows()->places;
  }
  HeadOutputs of_head(bool with_projection, bool with_tokens) const {
    return {.tokens = with_tokens ? part_of(Output::tokens) : TensorView<float>(),
            .places = places(),
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
  if (num_windows(height, width) > 1) return c.native_grid();
  VIT_CHECK(!c.image.fixed_size || (height == c.image.height && width == c.image.width), kWhere,
            "this model takes images of ", c.image.height, " x ", c.image.width,
            " (height x width) only, got ", height, " x ", width,
            "; if it was trained at another size, give overrides[\"img_size\"] = \"HxW\"");
  const GridSize grid = patch_grid(height, width, c.patch.size);
  const bool is_whole = height % c.patch.size == 0 && width % c.patch.size == 0;
  const bool is_native = height == c.image.height && width == c.image.width;
  VIT_CHECK(is_whole || is_native || c.patch.drops_remainder, kWhere, "an input of ", height, " x ", width,
            " (height x width) is not a multiple of the patch size ", c.patch.size, " x ", c.patch.size, "; ",
            c.library.empty() ? "the model's library" : c.library,
            " refuses such sizes; with the input size \"native\" it becomes ", grid.rows * c.patch.size,
            " x ", grid.columns * c.patch.size);
  if (c.merger.size != 0) Merger::cells_of(c.merger, grid);
  return grid;
}

std::size_t VisionTransformer::steps_for(std::size_t num_planes) const {
  const ModelConfig& c = config_;
  if (num_planes == c.image.num_channels) return 1;
  const std::size_t pictures = num_planes / c.image.num_channels;
  VIT_CHECK(c.image.stack != StackRule::none && pictures * c.image.num_channels == num_planes, kWhere,
            "this model takes ", c.image.num_channels, " planes",
            c.image.stack == StackRule::none ? "" : " for each image", ", got ", num_planes);
  VIT_CHECK(pictures != 0 && pictures % c.patch.frames == 0, kWhere, "a clip of ", pictures,
            " frames, which must be a multiple of the ", c.patch.frames, " of a patch");
  return pictures / c.patch.frames;
}

std::size_t VisionTransformer::num_leading_tokens(const Request& request) const {
  const bool needs_all = needs_all_tokens(request) || (request.has(Output::projected) && layers_.joint_head);
  return needs_all ? 0 : layers_.head.num_leading_tokens();
}

/// Passes the outputs of some blocks to their mergers.
class VisionTransformer::DeepStack final : public BlockReader {
 public:
  DeepStack(const VisionTransformer& model, const Images& images, const TokenGrid& grid, const Pass& pass)
      : model_(model), images_(images), grid_(grid), pass_(pass) {}

  void read(std::size_t layer, TensorView<const float> x) override {
    for (const OutputKey& key : images_.request.indexed()) {
      if (key.output != Output::deepstack || model_.config_.merger.deepstack[key.index] != layer) continue;
      const TensorView<const float> tokens(
          x.data(), Shape{images_.count(), x.num_rows() / images_.count(), x.num_columns()});
      model_.layers_.deepstack[key.index].forward(tokens, grid_, {.merged = images_.part_of(key)}, pass_);
    }
  }

 private:
  const VisionTransformer& model_;
  const Images& images_;
  const TokenGrid& grid_;
  const Pass& pass_;
};

/// Makes the masks by which queries read patches, of the tokens that enter a block.
class VisionTransformer::Masks final : public KeyHider {
 public:
  Masks(const VisionTransformer& model, std::size_t num_images, GridSize grid, int threads,
        MaskMemory& memory)
      : model_(model), num_images_(num_images), grid_(grid), threads_(threads), memory_(memory) {}

  std::optional<KeyMask> before_block(std::size_t layer, TensorView<const float> x) override {
    if (std::ranges::find(model_.config_.tokens.late.masked_blocks, layer) ==
        model_.config_.tokens.late.masked_blocks.end())
      return std::nullopt;
    const MaskHead& head = *model_.dense_->mask_head();
    const std::size_t queries = head.num_queries(), patches = grid_.rows * grid_.columns;
    const std::size_t tokens = x.num_rows() / num_images_;
    const Shape shape = head.output_shape(0, grid_);
    if (memory_.masks.empty() || !(memory_.masks.shape() == shape)) memory_.masks = Tensor<float>(shape);
    memory_.hidden.resize(num_images_ * queries * patches);
    for (std::size_t image = 0; image < num_images_; ++image) {
      head.forward({x.row(image * tokens), Shape{tokens, x.num_columns()}}, grid_, memory_.masks, {},
                   threads_, memory_.maps);
      for (std::size_t q = 0; q < queries; ++q)
        hide_patches(memory_.masks.view()[q], memory_.hidden.data() + (image * queries + q) * patches);
    }
    return KeyMask{.hidden = memory_.hidden.data(), .queries = queries, .keys = patches};
  }

 private:
  /// A mask, interpolated with its edges aligned: patches where it is not positive are hidden.
  void hide_patches(TensorView<const float> mask, std::uint8_t* hidden) const {
    struct Place {
      std::size_t first, second;
      float t;
    };
    const auto place = [](std::size_t i, std::size_t out, std::size_t in) -> Place {
      const float scale = static_cast<float>(in) / static_cast<float>(out);
      const float at = std::max(scale * (static_cast<float>(i) + 0.5f) - 0.5f, 0.0f);
      const auto first = static_cast<std::size_t>(at);
      return {first, std::min(first + 1, in - 1), at - static_cast<float>(first)};
    };
    for (std::size_t y = 0; y < grid_.rows; ++y) {
      const Place row = place(y, grid_.rows, mask.dim(0));
      const float* const above = mask.row(row.first);
      const float* const below = mask.row(row.second);
      for (std::size_t x = 0; x < grid_.columns; ++x) {
        const auto [left, right, t] = place(x, grid_.columns, mask.dim(1));
        const float value = (1.0f - row.t) * ((1.0f - t) * above[left] + t * above[right]) +
                            row.t * ((1.0f - t) * below[left] + t * below[right]);
        *hidden++ = value > 0.0f ? 0 : 1;
      }
    }
  }

  const VisionTransformer& model_;
  std::size_t num_images_;
  GridSize grid_;
  int threads_;
  MaskMemory& memory_;
};

/// The sequences of each block: windows of the images, or images; none where all are images.
std::span<const Sequences> VisionTransformer::sequences_of_blocks(const Images& images,
                                                                  const Sequences& whole) const {
  const position::WindowOrder* const order = images.position.windows();
  if (order == nullptr) return {};
  WindowSequences& memory = *images.windows;
  memory.starts.assign(1, 0);
  for (std::size_t image = 0; image < images.count(); ++image) {
    for (std::size_t i = 1; i < order->starts.size(); ++i)
      memory.starts.push_back(image * order->patches.size() + order->starts[i]);
  }
  memory.of_blocks.assign(config_.encoder.depth, Sequences(std::span<const std::size_t>(memory.starts)));
  for (const std::size_t block : config_.attention.windows.global_blocks) memory.of_blocks[block] = whole;
  return memory.of_blocks;
}

// image -> patches -> tokens -> blocks -> head
void VisionTransformer::run(const Images& images, const Pass& pass) const {
  const Request& request = images.request;
  Activations& a = pass.activations;
  a.reserve(activation_shape(images, pass.threads), arithmetic_of(*kernels_, precision_));
  const Sequences sequences(images.count(), config_.num_prefix_tokens() + images.num_patches());
  const TensorView<float> embedded(  // those that enter late come in front of them
      a.tokens.data(), Shape{images.count(), sequences.longest(), config_.embed_dim});
  const std::size_t num_leading = num_leading_tokens(request), num_prefix = config_.num_prefix_tokens();
  const TokenGrid grid{.grid = images.position.grid(), .num_prefix = num_prefix, .places = images.places()};
  Observer observer(images.outputs.tensors(), images.first, images.count());
  observer.set_places(images.places());
  DeepStack deepstack(*this, images, grid, pass);
  if (request.has_any(Output::deepstack)) observer.set_reader(&deepstack);
  const double head_width = static_cast<double>(config_.head_width());

  Masks masks(*this, images.count(), grid.grid, pass.threads, *images.masks);
  layers_.patch_embed.forward(images.pixels, images.position, embedded, pass);
  const TensorView<float> tokens = layers_.encoder.forward(
      embedded,
      {.sequences = sequences,
       .of_blocks = sequences_of_blocks(images, sequences),
       .wanted = num_leading == 0 ? sequences : Sequences(images.count(), num_leading),
       .position = &images.position,
       .num_prefix = num_prefix,
       .attention_factor =
           config_.attention.scale != 0.0 ? config_.attention.scale * std::sqrt(head_width) : 1.0,
       .late = {.block = config_.tokens.late.block,
                .tokens = layers_.late_tokens,
                .hider = config_.tokens.late.masked_blocks.empty() ? nullptr : &masks}},
      observer, pass);
  const bool has_cells = config_.merger.tokens != TokenStage::encoder;
  layers_.head.forward(tokens, images.of_head(!layers_.joint_head, !has_cells), pass);
  if (layers_.merger && (request.has(Output::merged) || (has_cells && request.has(Output::tokens))))
    layers_.merger->forward(tokens, grid,
                            {.merged = images.part_of(Output::merged),
                             .stage = has_cells ? images.part_of(Output::tokens) : TensorView<float>()},
                            pass);
  if (layers_.joint_head && request.has(Output::projected))
    layers_.joint_head->forward(tokens, images.part_of(Output::projected), pass);
}

ActivationShape VisionTransformer::activation_shape(const Images& images, int threads) const {
  const std::size_t num_images = images.count(), num_patches = images.num_patches();
  const std::size_t planes = images.pixels.dim(1) / images.position.num_steps();
  const bool has_pool = layers_.head.has_attention_pool();
  const bool has_cells = config_.merger.size != 0;
  std::size_t num_cells = 0;
  if (has_cells) {
    const GridSize cells = Merger::cells_of(config_.merger, images.position.grid());
    num_cells = Merger::cells_at_once(num_images * cells.rows * cells.columns);
  }
  return {.num_images = num_images,
          .num_patches = num_patches,
          .patch_dim = planes * config_.patch.size * config_.patch.size,
          .num_tokens = config_.num_prefix_after(config_.encoder.depth - 1) + num_patches,
          .num_leading = num_leading_tokens(images.request),
          .embed_dim = config_.embed_dim,
          .attention_dim = config_.attention_dim(),
          .num_heads = config_.attention.num_heads,
          .num_pool_heads = has_pool ? config_.head.attention_pool.num_heads : 0,
          .pooled_dim = config_.pooled_dim(),
          .hidden_dim = std::max({config_.mlp.dim, has_pool ? config_.head.attention_pool.mlp_dim : 0,
                                  config_.head.joint.mlp_dim}),
          .clips = config_.encoder.clipped || config_.mlp.limit != 0,
          .is_parallel = config_.encoder.parallel,
          .num_cells = num_cells,
          .cell_dim = has_cells ? Merger::widest(config_.merger, config_.embed_dim) : 0,
          .threads = threads};
}

void VisionTransformer::forward_tokens(TensorView<const float> pixels, const Request& request, int threads,
                                       ForwardMemory& memory, Outputs& outputs) const {
  VIT_CHECK(pixels.rank() == 4 && pixels.dim(0) != 0 && pixels.dim(1) != 0, kWhere,
            "pixels must have shape (B, ", config_.image.num_channels, ", H, W) with B > 0, got ",
            pixels.shape().to_string());
  const std::size_t num_steps = steps_for(pixels.dim(1));
  const GridSize grid = grid_for(pixels.dim(2), pixels.dim(3));
  outputs.reserve(request, config_, pixels.dim(0), grid, num_steps);
  const bool are_apart = config_.image.stack == StackRule::apart;
  if (are_apart && num_steps > 1) {  // each step is an image of its own
    const Shape shape{pixels.dim(0) * num_steps, pixels.dim(1) / num_steps, pixels.dim(2), pixels.dim(3)};
    pixels = {pixels.data(), shape, pixels.row_stride()};
  }
  const std::size_t num_images = pixels.dim(0);
  const auto position = layers_.positions->for_grid(grid, are_apart ? 1 : num_steps);
  const std::size_t num_tokens =
      config_.num_prefix_after(config_.encoder.depth - 1) + position->num_steps() * grid.rows * grid.columns;

  Lanes lanes(Sequences(num_images, num_tokens), threads, /*rows_per_pass=*/0, memory);
  const auto images = [&](std::size_t first, std::size_t count, ForwardMemory::Lane* lane) -> Images {
    return {pixels.part(first, count),
            first,
            request,
            *position,
            outputs,
            lane != nullptr ? &lane->windows : nullptr,
            lane != nullptr ? &lane->masks : nullptr};
  };
  lanes.run(
      activation_shape(images(0, lanes.count_of(0), nullptr), 1), arithmetic_of(*kernels_, precision_),
      [&](ForwardMemory::Lane& lane) {
        sequences_of_blocks(images(0, lanes.count_of(0), &lane), Sequences(lanes.count_of(0), num_tokens));
      },
      [&](std::size_t first, std::size_t count, const Pass& pass, ForwardMemory::Lane& lane) {
        run(images(first, count, &lane), pass);
      });
}

}  // namespace vit::internal
