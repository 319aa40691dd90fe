// What a VisionTransformer takes and needs: input sizes, the sequences of its blocks, working memory.
#include <algorithm>
#include <span>

#include "vit/base/check.h"
#include "vit/config/output_table.h"
#include "vit/patch/patchify.h"
#include "vit/position/added_rows.h"
#include "vit/towers/vision_transformer.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"VisionTransformer", ErrorKind::argument};

}  // namespace

GridSize VisionTransformer::grid_for(std::size_t height, std::size_t width) const {
  const ModelConfig& c = config_;
  if (num_windows(height, width) > 1) return c.native_grid();
  VIT_CHECK(!c.image.fixed_size || (height == c.image.height && width == c.image.width), kWhere,
            "this model takes images of ", c.image.height, " x ", c.image.width,
            " (height x width) only, got ", height, " x ", width,
            "; if it was trained at another size, give overrides[\"img_size\"] = \"HxW\"");
  const GridSize grid = c.patch.grid(height, width);
  VIT_CHECK(grid.rows != 0, kWhere, "an image of ", height, " x ", width,
            " (height x width) holds no patch of edge ", c.patch.size);
  const bool is_whole = height % c.patch.size == 0 && width % c.patch.size == 0;
  const bool is_native = height == c.image.height && width == c.image.width;
  VIT_CHECK(is_whole || is_native || c.patch.drops_remainder, kWhere, "an input of ", height, " x ", width,
            " (height x width) is not a multiple of the patch size ", c.patch.size, " x ", c.patch.size, "; ",
            c.library.empty() ? "the model's library" : c.library,
            " refuses such sizes; with the input size \"native\" it becomes ", grid.rows * c.patch.size,
            " x ", grid.columns * c.patch.size);
  AddedRows::check_grid(c.position, grid);
  if (c.merger) Merger::check_grid(*c.merger, grid);
  return grid;
}

std::size_t VisionTransformer::steps_for(std::size_t num_planes) const {
  const ModelConfig& c = config_;
  const std::size_t steps = c.position.added_steps;
  if (num_planes == c.image.num_channels) return std::max<std::size_t>(steps, 1);
  const std::size_t pictures = num_planes / c.image.num_channels;
  VIT_CHECK(c.image.stack != StackRule::none && pictures * c.image.num_channels == num_planes, kWhere,
            "this model takes ", c.image.num_channels, " planes",
            c.image.stack == StackRule::none ? "" : " for each image", ", got ", num_planes);
  VIT_CHECK(pictures != 0 && pictures % c.patch.frames == 0, kWhere, "a clip of ", pictures,
            " frames, which must be a multiple of the ", c.patch.frames, " of a patch");
  VIT_CHECK(steps == 0 || pictures == steps * c.patch.frames, kWhere, "this model takes clips of ",
            steps * c.patch.frames, " frames, or an image that is repeated, got ", pictures, " frames");
  return pictures / c.patch.frames;
}

std::size_t VisionTransformer::num_leading_tokens(const Request& request) const {
  const bool needs_all = needs_all_tokens(request) || (request.has(Output::projected) && layers_.joint_head);
  return needs_all ? 0 : layers_.head.num_leading_tokens();
}

/// The sequences of each block: windows of the images, or images; none where all are images.
std::span<const Sequences> VisionTransformer::sequences_of_blocks(const ImagePass& images,
                                                                  const Sequences& whole) const {
  const position::WindowOrder* const order = images.position.windows();
  if (order == nullptr) return {};
  WindowSequences& memory = images.lane->windows;
  memory.starts.assign(1, 0);
  for (std::size_t image = 0; image < images.count(); ++image) {
    for (std::size_t i = 1; i < order->starts.size(); ++i)
      memory.starts.push_back(image * order->starts.back() + order->starts[i]);
  }
  memory.of_blocks.assign(config_.encoder.depth, Sequences(std::span<const std::size_t>(memory.starts)));
  for (const std::size_t block : config_.attention.windows->global_blocks) memory.of_blocks[block] = whole;
  return memory.of_blocks;
}

ActivationShape VisionTransformer::activation_shape(const ImagePass& images, int threads) const {
  const std::size_t num_images = images.count(), num_patches = images.num_patches();
  const std::size_t planes =
      planes_of_step(images.pixels.dim(1), images.position.num_steps(), config_.image.num_channels);
  const std::optional<AttentionPoolConfig>& pool = config_.head.attention_pool;
  const std::optional<JointHeadConfig>& joint = config_.head.joint;
  const bool has_pool = layers_.head.has_attention_pool();
  const std::optional<WindowConfig>& windows = config_.attention.windows;
  std::size_t bias_axes = 0;
  if (const auto& relative = config_.position.relative; relative && relative->kind == RelativeKind::axes) {
    const GridSize grid = images.position.grid();
    bias_axes = std::max(grid.rows + grid.columns, windows ? 2 * windows->size : 0);
  }
  std::size_t num_cells = 0, map_rows = 0, map_dim = 0;
  if (config_.merger) {
    const GridSize cells = Merger::cells_of(config_.merger->cells, images.position.grid());
    num_cells = Merger::cells_at_once(num_images * cells.rows * cells.columns);
    map_dim = Merger::widest_map(*config_.merger, config_.embed_dim);
    if (map_dim != 0 || config_.head.pools_merged) map_rows = num_images * cells.rows * cells.columns;
  }
  return {.num_images = num_images,
          .num_patches = num_patches,
          .patch_dim = planes * config_.patch.size * config_.patch.size,
          .num_tokens = config_.num_prefix_after(config_.encoder.depth - 1) + num_patches,
          .num_leading = num_leading_tokens(images.request),
          .embed_dim = config_.embed_dim,
          .attention_dim = config_.attention_dim(),
          .num_heads = config_.attention.num_heads,
          .window_keys = windows && windows->pads ? windows->size * windows->size : 0,
          .bias_axes = bias_axes,
          .num_pool_heads = has_pool ? pool->num_heads : 0,
          .pooled_dim = config_.pooled_dim(),
          .hidden_dim = std::max({config_.mlp.dim, has_pool ? pool->mlp_dim : 0, joint ? joint->mlp_dim : 0}),
          .is_differential = config_.attention.differential,
          .clips = config_.encoder.clipped || config_.mlp.limit != 0,
          .is_parallel = config_.encoder.parallel,
          .num_cells = num_cells,
          .cell_dim = config_.merger ? Merger::widest(*config_.merger, config_.embed_dim) : 0,
          .map_rows = map_rows,
          .map_dim = map_dim,
          .merged_dim = config_.head.pools_merged ? config_.pooled_dim() : 0,
          .threads = threads};
}

}  // namespace vit::internal
