#include "vit/config.h"

#include <cmath>

#include "vit/base/check.h"
#include "vit/base/checked.h"
#include "vit/config/fields.h"
#include "vit/position/rope_scaling.h"

namespace vit {
namespace {

constexpr Where kWhere{"validate_config", ErrorKind::argument};
constexpr std::size_t kMaxPatches = std::size_t{1} << 20;  // 16384 x 16384 pixels in patches of 16
constexpr std::size_t kMaxTableEdge = 65536;
constexpr std::size_t kMaxTablePositions = std::size_t{1} << 24;
constexpr std::size_t kMaxRopeFactors = std::size_t{1} << 27;  // half a GiB of float32

void check_range(const char* field, std::size_t value, std::size_t low, std::size_t high) {
  VIT_CHECK(value >= low && value <= high, kWhere, field, " must be ", low, " to ", high, ", got ", value);
}

void validate_relative(const ModelConfig& c) {
  const RelativeConfig& r = *c.position.relative;
  check_range("rows of the relative positions' grid", r.grid.rows, 1, 4096);
  check_range("columns of the relative positions' grid", r.grid.columns, 1, 4096);
  const bool of_axes = r.kind == RelativeKind::axes;
  if (r.kind == RelativeKind::mlp) check_range("mlp_dim of relative positions", r.mlp_dim, 1, 4096);
  VIT_CHECK(c.num_prefix_tokens() <= (of_axes ? 0u : 1u), kWhere, "relative positions and ",
            c.num_prefix_tokens(), " prefix tokens; vectors of axes take none, tables a class token");
  VIT_CHECK(c.attention.windows ? of_axes && c.attention.windows->pads : true, kWhere,
            "relative positions in windows are vectors of axes, and complete windows");
  VIT_CHECK(!of_axes || r.scope == RelativeScope::blocks, kWhere, "vectors of axes are those of each block");
  const GridSize grid = c.native_grid();
  const std::size_t blocks = r.scope == RelativeScope::shared ? 1 : c.encoder.depth;
  const std::size_t of_block = of_axes ? 2 * c.head_width() * (grid.rows + grid.columns)
                                       : 10 * c.attention.num_heads * grid.rows * grid.columns;
  VIT_CHECK(of_block <= kMaxRopeFactors / blocks, kWhere, "relative positions of a native grid of ",
            grid.rows, " x ", grid.columns, " patches need ", of_block, " numbers in each of ", blocks,
            " blocks, at most ", kMaxRopeFactors, " in all are accepted");
  VIT_CHECK(c.image.stack != StackRule::together && !c.tokens.late, kWhere,
            "relative positions are those of one image without late tokens");
}

void validate_table(const ModelConfig& c) {
  const PositionConfig& p = c.position;
  check_range("rows of the position table's grid", p.added_grid.rows, 1, kMaxTableEdge);
  check_range("columns of the position table's grid", p.added_grid.columns, 1, kMaxTableEdge);
  if (p.added != AddedTable::columns_and_rows)
    check_range("positions of the table's grid", p.added_grid.rows * p.added_grid.columns, 1,
                kMaxTablePositions);
  VIT_CHECK(p.table_grid != TableGrid::square ||
                (p.added != AddedTable::prefix_and_patches && p.added_grid.rows == p.added_grid.columns),
            kWhere, "a table that is cut from a square must be square and only of patches");
  check_range("prefix rows of the position table", p.added_prefix_rows, 0, c.num_prefix_tokens());
  const bool is_square = p.added_grid.rows == p.added_grid.columns;
  VIT_CHECK(p.added != AddedTable::columns_and_rows || is_square, kWhere,
            "tables of columns and of rows must have equal length, got ", p.added_grid.columns, " and ",
            p.added_grid.rows);
  VIT_CHECK(p.added == AddedTable::prefix_and_patches || p.added_prefix_rows == 0, kWhere,
            "a table of patch rows cannot have ", p.added_prefix_rows, " prefix rows");
  VIT_CHECK(p.table_grid != TableGrid::swapped || p.added == AddedTable::patches, kWhere,
            "a table that is read by columns has only rows of patches");
  check_range("steps of the position table", p.added_steps, 0, 4096);
  if (p.added_steps != 0)
    check_range("positions of the table's steps", p.added_steps * p.added_grid.rows * p.added_grid.columns, 1,
                kMaxTablePositions);
}

void validate_rotary(const ModelConfig& c) {
  const PositionConfig& p = c.position;
  // Cosine and sine of every patch: for one head for all, or for every head and block (d and C values).
  const GridSize grid = c.native_grid();
  const std::size_t per_patch =
      p.rope == RopeKind::mixed ? c.encoder.depth * c.attention_dim() : c.head_width();
  VIT_CHECK(grid.rows * grid.columns <= kMaxRopeFactors / per_patch, kWhere, "a native grid of ", grid.rows,
            " x ", grid.columns, " patches needs ", per_patch, " rotation factors for each, at most ",
            kMaxRopeFactors, " in all are accepted (image ", c.image.height, " x ", c.image.width,
            ", patch_size ", c.patch.size, ")");
  const bool has_time = p.rope == RopeKind::volume || p.rope == RopeKind::volume_pairs;
  VIT_CHECK(!p.rope_scaling || (!has_time && !p.per_window), kWhere,
            "RoPE scaling is requested, but that of this model's positions is not defined");
  VIT_CHECK(!has_time || c.head_width() >= 6, kWhere, "three axes need heads of at least 6 channels, got ",
            c.head_width());
  VIT_CHECK(p.rope != RopeKind::volume || c.image.fixed_size, kWhere, "three axes need images of one size");
  const std::size_t multiple = p.rope == RopeKind::axial ? 4 : 2;
  VIT_CHECK(c.head_width() % multiple == 0, kWhere, "rotary positions need a head width divisible by ",
            multiple, ", got ", c.head_width(), " (embed_dim ", c.embed_dim, ", num_heads ",
            c.attention.num_heads, ")");
  VIT_CHECK(std::isfinite(p.theta) && p.theta > 0 && p.theta <= 1e12, kWhere,
            "rope theta must be in (0, 1e12], got ", p.theta);
  VIT_CHECK(std::isfinite(p.coordinate_offset) && std::abs(p.coordinate_offset) <= 1e6, kWhere,
            "rope coordinate offset must be finite and small, got ", p.coordinate_offset);
  if (p.coordinates == CoordinateRule::scaled_to_reference || p.coordinates == CoordinateRule::corners) {
    check_range("rows of the rope reference grid", p.reference_grid.rows, 1, 65536);
    check_range("columns of the rope reference grid", p.reference_grid.columns, 1, 65536);
  }
}

void validate_position(const ModelConfig& c) {
  const PositionConfig& p = c.position;
  if (p.added != AddedTable::none) validate_table(c);
  VIT_CHECK(p.added_steps == 0 ||
                (p.added != AddedTable::none && p.added != AddedTable::columns_and_rows &&
                 p.rope == RopeKind::none && !p.relative && !p.between_blocks && !c.attention.windows &&
                 c.image.stack == StackRule::together && c.image.fixed_size),
            kWhere, "a table with steps in time is the only position of clips of one size");
  VIT_CHECK(!p.rope_scaling || p.rope != RopeKind::none, kWhere,
            "RoPE scaling is requested, but the model has no rotary positions");
  if (p.rope_scaling) position::validate(*p.rope_scaling);
  VIT_CHECK(!p.rope_scaling || !p.rope_scaling->truncate || p.rope != RopeKind::mixed, kWhere,
            "RoPE scaling with truncate needs ordered frequencies, but those of this model are learned");
  VIT_CHECK(!p.between_blocks || (c.encoder.depth > 1 && p.added == AddedTable::prefix_and_patches &&
                                  p.added_prefix_rows == c.num_prefix_tokens() && !c.attention.windows),
            kWhere, "tables between blocks have rows for all tokens, as the added one must have");
  if (p.relative) validate_relative(c);
  VIT_CHECK(!p.class_angles || (p.rope == RopeKind::axial && c.tokens.class_token), kWhere,
            "angles of a class token need a class token and axial rotary positions");
  if (p.rope != RopeKind::none) validate_rotary(c);
}

void check_epsilon(const char* norm, float epsilon) {
  VIT_CHECK(std::isfinite(epsilon) && epsilon >= 0 && epsilon < 1, kWhere, "the epsilon of ", norm,
            " must be in [0, 1), got ", epsilon);
}

void validate_attention_pool(const ModelConfig& c) {
  if (c.head.pooling != Pooling::attention) return;
  const AttentionPoolConfig pool = c.head.attention_pool.value_or(AttentionPoolConfig{});
  check_range("heads of the attention pooling", pool.num_heads, 1, 1024);
  check_range("hidden width of the attention pooling", pool.mlp_dim, 1, 1u << 18);
  VIT_CHECK(c.embed_dim % pool.num_heads == 0, kWhere, "embed_dim ", c.embed_dim, " is not divisible by the ",
            pool.num_heads, " heads of the attention pooling");
}

void validate_head(const ModelConfig& c) {
  VIT_CHECK(c.head.logits != LogitKind::joint_space || c.head.num_classes != 0, kWhere,
            "a head that projects must be there");
  VIT_CHECK(c.encoder.norm.kind == NormKind::layer || c.head.pooling != Pooling::attention, kWhere,
            "attention pooling has LayerNorm, and all norms of this model are RMSNorm");
  check_range("num_classes", c.head.num_classes, 0, 1u << 22);
  check_range("projection_dim", c.projection_dim(), c.head.projection ? 1 : 0, 65536);
  if (const auto& joint = c.head.joint) {
    check_range("joint_depth", joint->depth, 1, 1024);
    check_range("joint_mlp_dim", joint->mlp_dim, 1, 1u << 18);
    VIT_CHECK(std::isfinite(joint->norm_eps) && joint->norm_eps >= 0 && joint->norm_eps < 1, kWhere,
              "the epsilon of LayerNorm in the joint head must be in [0, 1), got ", joint->norm_eps);
    VIT_CHECK(c.tokens.class_token && c.projection_dim() == 2 * c.embed_dim, kWhere,
              "a joint head outputs class token and patch mean, ", 2 * c.embed_dim,
              " numbers; projection_dim is ", c.projection_dim());
  }
  VIT_CHECK(c.head.labels.empty() || c.head.labels.size() == c.head.num_classes, kWhere, c.head.labels.size(),
            " class names for ", c.head.num_classes, " classes");
  VIT_CHECK(c.head.label_categories.empty() || c.head.label_categories.size() == c.head.labels.size(), kWhere,
            c.head.label_categories.size(), " categories for ", c.head.labels.size(), " class names");
  const bool reads_class = c.head.pooling == Pooling::class_token ||
                           c.head.pooling == Pooling::class_and_distillation ||
                           c.head.pooling == Pooling::class_and_patch_mean ||
                           (c.head.num_classes != 0 && c.head.input != HeadInput::pooled);
  VIT_CHECK(!reads_class || c.tokens.class_token, kWhere,
            "pooling reads the class token, but the model has none");
  VIT_CHECK(c.head.pooling != Pooling::first_token || !c.tokens.class_token, kWhere,
            "pooling reads the first patch as if it were the class token, but the model has one");
  VIT_CHECK(c.head.pooling != Pooling::prefix_mean || c.num_prefix_tokens() != 0, kWhere,
            "pooling takes the mean of the prefix tokens, but the model has none");
  VIT_CHECK((c.head.pooling == Pooling::prefix_tokens) == !c.head.pooled_tokens.empty(), kWhere,
            c.head.pooled_tokens.size(), " prefix tokens are pooled, which requires pooling prefix_tokens");
  check_range("tokens that are pooled", c.head.pooled_tokens.size(), 0, 64);
  for (const std::size_t token : c.head.pooled_tokens)
    VIT_CHECK(token < c.num_prefix_tokens(), kWhere, "pooling reads prefix token ", token, " of ",
              c.num_prefix_tokens());
  const bool is_one_token =
      c.head.pooling != Pooling::prefix_tokens && c.head.pooling != Pooling::class_and_patch_mean;
  VIT_CHECK(is_one_token || (!c.head.pooled_norm && !c.head.pooler), kWhere,
            "tokens side by side are not normalized, and no pooler follows");
  const bool reads_distillation =
      c.head.pooling == Pooling::class_and_distillation ||
      (c.head.num_classes != 0 && c.head.input == HeadInput::class_and_distillation);
  VIT_CHECK(!reads_distillation || c.tokens.distillation_token, kWhere,
            "the head reads the distillation token, but the model has none");
  VIT_CHECK(!c.head.pools_merged ||
                (c.merger && c.merger->blocks.empty() && c.head.pooling == Pooling::patch_mean &&
                 !c.head.pooler && !c.head.projection && c.head.input == HeadInput::pooled),
            kWhere, "visual tokens are pooled as a mean, and need a merger");
  check_epsilon("the norm of the pooled vector", c.head.pooled_norm_eps);
  VIT_CHECK(c.head.pooled_norm_eps == 0.0f || c.head.pooled_norm, kWhere,
            "an epsilon of the norm of the pooled vector, which is not normalized");
  VIT_CHECK(!c.head.pooler || c.head.pooling != Pooling::none, kWhere, "a pooler follows pooling");
  VIT_CHECK(c.head.pooling != Pooling::none || (c.head.num_classes == 0 || c.head.input != HeadInput::pooled),
            kWhere, "a classifier needs a pooled vector, but pooling is off");
  validate_attention_pool(c);
}

constexpr std::size_t kMaxMergerWidth = 1u << 18;

/// A step by its name in messages.
struct StepCheck {
  MergerPlace place;
  std::size_t width;  // of its input

  void operator()(const MergerNorm& step) const { check_epsilon(norm_name(), step.norm.eps); }
  void operator()(const MergerAffine&) const { check_place(place == MergerPlace::standardize); }
  void operator()(const MergerGelu&) const { check_place(place == MergerPlace::middle_gelu); }
  void operator()(const MergerSoftmax& softmax) const {
    check_place(place == MergerPlace::middle_softmax);
    check_range("softmax_dim of the merger", softmax.dim, width, kMaxMergerWidth);
  }
  void operator()(const MergerLinear& linear) const {
    check_place(place == MergerPlace::reduce || place == MergerPlace::middle ||
                place == MergerPlace::projection);
    check_range(
        place == MergerPlace::projection ? "projection_dim of the merger" : "reduced_dim of the merger",
        linear.dim, 1, kMaxMergerWidth);
  }
  void operator()(const MergerConvolution& convolution) const {
    check_place(place == MergerPlace::convolution || place == MergerPlace::second_convolution ||
                place == MergerPlace::third_convolution);
    check_range("channels of the merger's convolution", convolution.dim, 1, 65536);
    check_range("stride of the merger's convolution", convolution.stride, 1, 2);
    VIT_CHECK(!convolution.bias || place != MergerPlace::convolution, kWhere,
              "the merger's first convolution has no bias");
  }
  void operator()(const MergerCells& cells) const {
    check_place(place == MergerPlace::later_cells);
    check_range("later_size of the merger", cells.size, 1, 64);
    check_range("width of the merger's later cells",
                cells.rule == CellRule::mean ? width : width * cells.size * cells.size, 1, kMaxMergerWidth);
  }
  void operator()(const MergerMlp& mlp) const {
    check_place(place == MergerPlace::mlp || place == MergerPlace::second_mlp);
    check_range("hidden_dim of the merger", mlp.hidden_dim, 1, kMaxMergerWidth);
    check_range("out_dim of the merger", mlp.out_dim, 1, kMaxMergerWidth);
  }

 private:
  static void check_place(bool fits) {
    VIT_CHECK(fits, kWhere, "a step of the merger has the place of another kind");
  }
  const char* norm_name() const {
    switch (place) {
      case MergerPlace::cell_norm: return "the merger's norm";
      case MergerPlace::middle_norm: return "the merger's middle norm";
      case MergerPlace::neck_norm:
      case MergerPlace::convolution_norm: return "the norms of the merger's convolution";
      case MergerPlace::mlp_norm:
      case MergerPlace::second_norm: return "the norms of the merger's MLPs";
      case MergerPlace::projection_norm: return "the merger's last norm";
      case MergerPlace::out_norm: return "the norm of the merger's output";
      default: check_place(false); return "";
    }
  }
};

void validate_merger(const ModelConfig& c) {
  if (!c.merger) return;
  const MergerConfig& m = *c.merger;
  VIT_CHECK(m.cells.size != 0, kWhere, "a merger with cells of size 0 cannot have layers");
  check_range("cells of the merger", m.cells.size, 1, 64);
  if (m.cells.token_norm) check_epsilon("the merger's norm", m.cells.token_norm->eps);
  VIT_CHECK(std::isfinite(m.cells.scale), kWhere, "the scale of the merger's cells must be finite, got ",
            m.cells.scale);
  check_range("width of the merger's cells", m.cell_width(c.embed_dim), 1, kMaxMergerWidth);
  for (std::size_t i = 0; i < m.steps.size(); ++i) {
    const MergerPlace place = m.steps[i].place;
    VIT_CHECK(i == 0 || m.steps[i - 1].place < place, kWhere, "the steps of the merger are not in order");
    VIT_CHECK(place != MergerPlace::cell_norm || !m.cells.pads, kWhere,
              "cells padded with zeros cannot be normalized");
    VIT_CHECK(place != MergerPlace::cell_norm || !m.cells.token_norm, kWhere,
              "a merger normalizes tokens or cells, not both");
    std::visit(StepCheck{place, m.width_after(i, c.embed_dim)}, m.steps[i].layer);
  }
  const bool has_cells = m.find<MergerCells>(MergerPlace::later_cells) != nullptr;
  const bool has_map = has_cells || m.find<MergerConvolution>(MergerPlace::convolution) != nullptr ||
                       m.find<MergerConvolution>(MergerPlace::second_convolution) != nullptr;
  VIT_CHECK(!has_map || (!m.tokens_after && m.deepstack.empty()), kWhere,
            "a merger with convolutions or later cells has no other outputs");
  VIT_CHECK(!has_cells || (m.cells.size == 1 && !m.cells.pads), kWhere,
            "later cells are cells of single tokens");
  VIT_CHECK(!m.tokens_after || *m.tokens_after <= m.steps.size(), kWhere, "the tokens are those after step ",
            m.tokens_after.value_or(0), " of the ", m.steps.size(), " of the merger");
  check_range("blocks that the merger reads", m.blocks.size(), 0, 64);
  for (const std::size_t block : m.blocks)
    VIT_CHECK(block < c.encoder.depth, kWhere, "the merger reads the tokens after block ", block, " of ",
              c.encoder.depth);
  VIT_CHECK(m.blocks.empty() || !m.tokens_after, kWhere, "a merger between the blocks gives no tokens");
  VIT_CHECK(m.blocks.size() < 2 || !m.cells.token_norm, kWhere,
            "tokens of several blocks are not normalized");
  for (const std::size_t block : m.deepstack) {
    VIT_CHECK(block < c.encoder.depth, kWhere, "a merger reads the tokens after block ", block, " of ",
              c.encoder.depth);
    VIT_CHECK(m.find<MergerMlp>(MergerPlace::mlp) != nullptr, kWhere,
              "mergers between blocks need a hidden_dim");
  }
  if (m.cells.pads) return;
  const GridSize grid = c.native_grid();
  const std::size_t edge = m.cell_edge();
  VIT_CHECK(grid.rows % edge == 0 && grid.columns % edge == 0, kWhere, "the native grid of ", grid.rows,
            " x ", grid.columns, " patches cannot be cut into cells of ", edge, " x ", edge);
}

/// Windows of equal size, whatever the grid.
void validate_counted_windows(const ModelConfig& c) {
  const WindowConfig& windows = *c.attention.windows;
  check_range("windows to a side", windows.per_side, 1, 64);
  VIT_CHECK(windows.size == 0 && !windows.pads && c.position.rope == RopeKind::none && !c.position.relative &&
                !c.merger,
            kWhere,
            "windows that are counted are divided evenly, without rotary and relative positions and mergers");
  const bool has_class_tokens =
      c.tokens.class_token && !c.tokens.distillation_token && c.tokens.num_registers == 0;
  VIT_CHECK(windows.class_tokens ? has_class_tokens && c.head.pooling == Pooling::none &&
                                       !c.encoder.norm_pre && c.position.added_prefix_rows <= 1
                                 : c.num_prefix_tokens() == 0,
            kWhere,
            windows.class_tokens ? "a class token of each window is the only token before the patches"
                                 : "windows contain only patches, but the model has prefix tokens");
}

void validate_windows(const ModelConfig& c) {
  VIT_CHECK(!c.position.per_window || (c.attention.windows && c.position.rope == RopeKind::axial), kWhere,
            "positions in windows need windows and axial rotary positions");
  if (!c.attention.windows) return;
  const WindowConfig& windows = *c.attention.windows;
  for (const std::size_t block : windows.global_blocks)
    VIT_CHECK(block < c.encoder.depth, kWhere, "global block ", block, " of ", c.encoder.depth, " blocks");
  if (windows.per_side != 0) return validate_counted_windows(c);
  VIT_CHECK(windows.size != 0, kWhere, "global blocks in a model without windows");
  VIT_CHECK(!windows.class_tokens, kWhere, "class tokens of windows require a number of windows to a side");
  check_range("window", windows.size, 1, 4096);
  const bool counts_in_windows = c.position.rope == RopeKind::axial && c.position.per_window;
  VIT_CHECK(
      !windows.pads || (windows.size <= 256 && (c.position.rope == RopeKind::none || counts_in_windows)),
      kWhere, "windows of ", windows.size, " that are completed; 256 are accepted, without rotary positions");
  VIT_CHECK(c.num_prefix_tokens() == 0, kWhere, "windows contain only patches, but the model has ",
            c.num_prefix_tokens(), " prefix tokens");
}

void validate_late_tokens(const ModelConfig& c) {
  if (!c.tokens.late) return;
  const LateTokenConfig& late = *c.tokens.late;
  VIT_CHECK(late.count != 0, kWhere, "masked blocks without late tokens");
  check_range("num_late_tokens", late.count, 1, 4096);
  check_range("late_block", late.block, 0, c.encoder.depth - 1);
  VIT_CHECK(!c.attention.windows && !c.merger && !c.head.joint && c.head.pooling == Pooling::none &&
                c.head.num_classes == 0,
            kWhere, "tokens that enter late go without windows, mergers, pooled vectors and classifiers");
  for (const std::size_t block : late.masked_blocks)
    VIT_CHECK(block >= late.block && block < c.encoder.depth, kWhere, "masked block ", block, " of blocks ",
              late.block, " to ", c.encoder.depth - 1);
}

void validate_attention(const ModelConfig& c) {
  VIT_CHECK(c.attention.num_key_heads == 0 || (c.attention.num_heads % c.attention.num_key_heads == 0 &&
                                               c.position.rope != RopeKind::mixed),
            kWhere, c.attention.num_key_heads, " key heads cannot be shared by ", c.attention.num_heads,
            " heads of queries");
  VIT_CHECK(c.attention.block_key_heads.empty() || (c.attention.block_key_heads.size() == c.encoder.depth &&
                                                    c.position.rope != RopeKind::mixed && !c.encoder.clipped),
            kWhere, c.attention.block_key_heads.size(), " numbers of key heads for ", c.encoder.depth,
            " blocks");
  for (const std::size_t heads : c.attention.block_key_heads)
    VIT_CHECK(heads != 0 && c.attention.num_heads % heads == 0, kWhere, heads,
              " key heads cannot be shared by ", c.attention.num_heads, " heads of queries");
  VIT_CHECK(!c.attention.differential || (c.head_width() % 2 == 0 && c.attention.num_key_heads == 0 &&
                                          !c.attention.windows && c.attention.block_key_heads.empty() &&
                                          c.position.rope == RopeKind::none && !c.position.relative),
            kWhere, "differential attention with heads of ", c.head_width(),
            " channels, which must be even, without rotary or relative positions, windows and shared keys");
  VIT_CHECK(std::isfinite(c.attention.scale) && c.attention.scale >= 0, kWhere,
            "attention_scale must be finite and positive, got ", c.attention.scale);
}

void validate_patches(const ModelConfig& c) {
  check_range("patch_frames", c.patch.frames, 1, 16);
  VIT_CHECK(!c.patch.own_clips || (c.has_clips() && c.patch.bias && !c.patch.norm), kWhere,
            "own_clips requires patches of several frames, with a bias and no norm of their pixels");
  check_range("patch_padding", c.patch.padding, 0, (c.patch.size - 1) / 2);
  VIT_CHECK(c.patch.padding == 0 || (c.image.fixed_size && c.image.height % c.patch.size == 0 &&
                                     c.image.width % c.patch.size == 0),
            kWhere, "patches with padding require one size of whole patches, got ", c.image.height, " x ",
            c.image.width);
  check_range("patch_row_step", c.patch.step.rows, 0, c.patch.size);
  check_range("patch_column_step", c.patch.step.columns, 0, c.patch.size);
  VIT_CHECK(!c.patch.overlaps() || (c.image.fixed_size && c.patch.padding == 0 && c.patch.frames == 1 &&
                                    !c.merger && !c.attention.windows),
            kWhere,
            "patches that overlap require one size of images, without padding, clips, mergers, windows");
}

void validate_blocks(const ModelConfig& c) {
  VIT_CHECK(std::isfinite(c.mlp.limit) && c.mlp.limit >= 0, kWhere, "mlp_limit must be 0 or positive, got ",
            c.mlp.limit);
  VIT_CHECK(c.mlp.limit == 0 || (c.mlp.kind == MlpKind::gated && !c.encoder.clipped), kWhere,
            "mlp_limit requires a gated MLP without clipped layers");
  const BlockNorms norms = c.encoder.block_norms;
  VIT_CHECK(!c.encoder.clipped || (norms == BlockNorms::before_and_after && c.mlp.kind == MlpKind::gated),
            kWhere, "clipped layers require branch norms and a gated MLP");
  VIT_CHECK(!c.encoder.parallel || norms == BlockNorms::before || norms == BlockNorms::before_and_after,
            kWhere, "post_norm and sum_norm are those of branches one after the other");
  check_range("expert_dim", c.mlp.expert_dim, 0, c.embed_dim - 1);
  check_epsilon("the norms", c.encoder.norm.eps);
}

void validate_choices(const ModelConfig& c) {
  const char* unknown = nullptr;
  internal::visit_model(c, internal::ChoiceCheck{unknown});
  VIT_CHECK(unknown == nullptr, kWhere, unknown, " is an undefined number");
  check_choice(kWhere, "table_grid", c.position.table_grid, TableGrid::swapped);
  check_choice(kWhere, "frequencies", c.position.frequencies, AxisFrequencies::stored);
  check_choice(kWhere, "pixels", c.patch.pixels, PixelRule::stored);
  check_choice(kWhere, "block_norms", c.encoder.block_norms, BlockNorms::of_sums);
  check_choice(kWhere, "logits", c.head.logits, LogitKind::joint_space);
}

}  // namespace

void validate(const ModelConfig& c) {
  validate_choices(c);
  check_range("num_channels", c.image.num_channels, 1, kMaxChannels);
  check_range("patch_size", c.patch.size, 1, 1024);
  check_range("image height", c.image.height, c.patch.size, kMaxInputEdge);
  check_range("image width", c.image.width, c.patch.size, kMaxInputEdge);
  check_range("patches of the native grid", c.native_grid().rows * c.native_grid().columns, 1, kMaxPatches);
  check_range("embed_dim", c.embed_dim, 1, 65536);
  check_range("depth", c.encoder.depth, 1, 1024);
  check_range("num_heads", c.attention.num_heads, 1, 1024);
  check_range("mlp_dim", c.mlp.dim, 1, 1u << 18);
  check_range("num_register_tokens", c.tokens.num_registers, 0, 1024);
  VIT_CHECK(c.attention.head_dim != 0 || c.embed_dim % c.attention.num_heads == 0, kWhere, "embed_dim ",
            c.embed_dim, " is not divisible by num_heads ", c.attention.num_heads);
  VIT_CHECK(c.head_width() <= 512, kWhere, "head width must be at most 512, got ", c.head_width());
  validate_attention(c);
  validate_patches(c);
  validate_blocks(c);
  validate_position(c);
  validate_windows(c);
  validate_late_tokens(c);
  validate_head(c);
  validate_merger(c);
}

MergerConfig deepstack_merger(const MergerConfig& config) {
  MergerConfig out{.cells = config.cells};
  MergerNorm norm{.norm = config.cells.token_norm.value_or(NormConfig{})};
  if (const auto* own = config.find<MergerNorm>(MergerPlace::cell_norm)) norm = *own;
  out.cells.token_norm.reset();
  out.add(MergerPlace::cell_norm, norm);
  if (const auto* mlp = config.find<MergerMlp>(MergerPlace::mlp)) {
    out.add(MergerPlace::mlp, *mlp);
    std::get<MergerMlp>(out.steps.back().layer).gated = false;
  }
  return out;
}

}  // namespace vit
