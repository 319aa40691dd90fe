#include "vit/config.h"

#include <cmath>

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit {
namespace {

constexpr Where kWhere{"validate_config", ErrorKind::argument};
constexpr std::size_t kMaxPatches = std::size_t{1} << 20;      // 16384 x 16384 pixels in patches of 16
constexpr std::size_t kMaxRopeFactors = std::size_t{1} << 27;  // half a GiB of float32

void check_range(const char* field, std::size_t value, std::size_t low, std::size_t high) {
  VIT_CHECK(value >= low && value <= high, kWhere, field, " must be ", low, " to ", high, ", got ", value);
}

void validate_position(const ModelConfig& c) {
  const PositionConfig& p = c.position;
  if (p.added != AddedTable::none) {
    check_range("rows of the position table's grid", p.added_grid.rows, 1, 4096);
    check_range("columns of the position table's grid", p.added_grid.columns, 1, 4096);
    VIT_CHECK(
        !p.square_table || (p.added == AddedTable::patches && p.added_grid.rows == p.added_grid.columns),
        kWhere, "a table that is cut from a square must be square and only of patches");
    check_range("prefix rows of the position table", p.added_prefix_rows, 0, c.num_prefix_tokens());
    const bool is_square = p.added_grid.rows == p.added_grid.columns;
    VIT_CHECK(p.added != AddedTable::columns_and_rows || is_square, kWhere,
              "tables of columns and of rows must have equal length, got ", p.added_grid.columns, " and ",
              p.added_grid.rows);
    VIT_CHECK(p.added == AddedTable::prefix_and_patches || p.added_prefix_rows == 0, kWhere,
              "a table of patch rows cannot have ", p.added_prefix_rows, " prefix rows");
  }
  VIT_CHECK(!p.rope_scaling || p.rope != RopeKind::none, kWhere,
            "RoPE scaling is requested, but the model has no rotary positions");
  VIT_CHECK(!p.rope_scaling || !p.rope_scaling->truncate || p.rope != RopeKind::mixed, kWhere,
            "RoPE scaling with truncate needs ordered frequencies, but those of this model "
            "are learned");
  VIT_CHECK(
      !p.between_blocks || (c.encoder.depth > 1 && p.added == AddedTable::prefix_and_patches &&
                            p.added_prefix_rows == c.num_prefix_tokens() && c.attention.windows.size == 0),
      kWhere, "tables between blocks have rows for all tokens, as the added one must have");
  VIT_CHECK(!p.class_angles || (p.rope == RopeKind::axial && c.tokens.class_token), kWhere,
            "angles of a class token need a class token and axial rotary positions");
  if (p.rope == RopeKind::none) return;
  // Cosine and sine of every patch: for one head for all, or for every head and block (d and C values).
  const GridSize grid = c.native_grid();
  const std::size_t per_patch =
      p.rope == RopeKind::mixed ? c.encoder.depth * c.attention_dim() : c.head_width();
  VIT_CHECK(grid.rows * grid.columns <= kMaxRopeFactors / per_patch, kWhere, "a native grid of ", grid.rows,
            " x ", grid.columns, " patches needs ", per_patch, " rotation factors for each, at most ",
            kMaxRopeFactors, " in all are accepted (image ", c.image.height, " x ", c.image.width,
            ", patch_size ", c.patch.size, ")");
  VIT_CHECK(!p.rope_scaling || (p.rope != RopeKind::volume && !p.per_window), kWhere,
            "RoPE scaling is requested, but this model takes images of one size");
  VIT_CHECK(p.rope != RopeKind::volume || (c.image.fixed_size && c.head_width() >= 6), kWhere,
            "three axes need images of one size and heads of at least 6 channels");
  const std::size_t multiple = p.rope == RopeKind::axial ? 4 : 2;
  VIT_CHECK(c.head_width() % multiple == 0, kWhere, "rotary positions need a head width divisible by ",
            multiple, ", got ", c.head_width(), " (embed_dim ", c.embed_dim, ", num_heads ",
            c.attention.num_heads, ")");
  VIT_CHECK(std::isfinite(p.theta) && p.theta > 0 && p.theta <= 1e12, kWhere,
            "rope theta must be in (0, 1e12], got ", p.theta);
  VIT_CHECK(std::isfinite(p.coordinate_offset) && std::abs(p.coordinate_offset) <= 1e6, kWhere,
            "rope coordinate offset must be finite and small, got ", p.coordinate_offset);
  if (p.coordinates == CoordinateRule::scaled_to_reference) {
    check_range("rows of the rope reference grid", p.reference_grid.rows, 1, 65536);
    check_range("columns of the rope reference grid", p.reference_grid.columns, 1, 65536);
  }
}

void validate_head(const ModelConfig& c) {
  check_range("num_classes", c.head.num_classes, 0, 1u << 22);
  check_range("projection_dim", c.head.projection.dim, 0, 65536);
  check_range("joint_depth", c.head.joint.depth, 0, 1024);
  if (c.head.joint.depth != 0) {
    check_range("joint_mlp_dim", c.head.joint.mlp_dim, 1, 1u << 18);
    VIT_CHECK(std::isfinite(c.head.joint.norm_eps) && c.head.joint.norm_eps >= 0 && c.head.joint.norm_eps < 1,
              kWhere, "the epsilon of LayerNorm in the joint head must be in [0, 1), got ",
              c.head.joint.norm_eps);
    VIT_CHECK(c.tokens.class_token && c.head.projection.dim == 2 * c.embed_dim, kWhere,
              "a joint head outputs class token and patch mean, ", 2 * c.embed_dim,
              " numbers; projection_dim is ", c.head.projection.dim);
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
  const bool is_one_token = c.pooled_dim() == c.embed_dim && c.head.pooling != Pooling::prefix_tokens;
  VIT_CHECK(is_one_token || (!c.head.pooled_norm && !c.head.pooler), kWhere,
            "tokens side by side are not normalized, and no pooler follows");
  const bool reads_distillation =
      c.head.pooling == Pooling::class_and_distillation ||
      (c.head.num_classes != 0 && c.head.input == HeadInput::class_and_distillation);
  VIT_CHECK(!reads_distillation || c.tokens.distillation_token, kWhere,
            "the head reads the distillation token, but the model has none");
  VIT_CHECK(!c.head.pooler || c.head.pooling != Pooling::none, kWhere, "a pooler follows pooling");
  VIT_CHECK(c.head.pooling != Pooling::none || (c.head.num_classes == 0 || c.head.input != HeadInput::pooled),
            kWhere, "a classifier needs a pooled vector, but pooling is off");
  if (c.head.pooling == Pooling::attention) {
    check_range("heads of the attention pooling", c.head.attention_pool.num_heads, 1, 1024);
    check_range("hidden width of the attention pooling", c.head.attention_pool.mlp_dim, 1, 1u << 18);
    VIT_CHECK(c.embed_dim % c.head.attention_pool.num_heads == 0, kWhere, "embed_dim ", c.embed_dim,
              " is not divisible by the ", c.head.attention_pool.num_heads,
              " heads of the attention pooling");
  }
}

void check_epsilon(const char* norm, float epsilon) {
  VIT_CHECK(std::isfinite(epsilon) && epsilon >= 0 && epsilon < 1, kWhere, "the epsilon of ", norm,
            " must be in [0, 1), got ", epsilon);
}

void validate_merger(const ModelConfig& c) {
  const MergerConfig& m = c.merger;
  check_range("cells of the merger", m.size, 0, 64);
  if (m.size == 0) {
    VIT_CHECK(m.deepstack.empty() && m.width(1) == 0, kWhere,
              "a merger with cells of size 0 cannot have layers");
    return;
  }
  check_epsilon("the merger's norm", m.norm_eps);
  check_epsilon("the merger's middle norm", m.middle_norm_eps);
  check_epsilon("the norms of the merger's MLPs", m.mlp_norm_eps);
  check_epsilon("the merger's last norm", m.projection_norm_eps);
  check_epsilon("the norm of the merger's output", m.out_norm_eps);
  VIT_CHECK(std::isfinite(m.cell_scale), kWhere, "the scale of the merger's cells must be finite, got ",
            m.cell_scale);
  constexpr std::size_t kMost = 1u << 18;
  check_range("width of the merger's cells", m.cell_width(c.embed_dim), 1, kMost);
  check_range("reduced_dim of the merger", m.reduced_dim, m.middle ? 1 : 0, kMost);
  check_range("hidden_dim of the merger", m.hidden_dim, 0, kMost);
  check_range("out_dim of the merger", m.out_dim, m.hidden_dim != 0 ? 1 : 0, kMost);
  check_range("projection_dim of the merger", m.projection_dim, m.out_norm ? 1 : 0, kMost);
  VIT_CHECK(m.hidden_dim != 0 || !(m.mlp_norm || m.second_mlp), kWhere,
            "what follows the merger's MLP needs a hidden_dim");
  VIT_CHECK(m.norm != MergerNorm::cell || !m.pads, kWhere, "cells padded with zeros cannot be normalized");
  for (const std::size_t block : m.deepstack) {
    VIT_CHECK(block < c.encoder.depth, kWhere, "a merger reads the tokens after block ", block, " of ",
              c.encoder.depth);
    VIT_CHECK(m.hidden_dim != 0, kWhere, "mergers between blocks need a hidden_dim");
  }
  if (m.pads) return;
  const GridSize grid = c.native_grid();
  VIT_CHECK(grid.rows % m.size == 0 && grid.columns % m.size == 0, kWhere, "the native grid of ", grid.rows,
            " x ", grid.columns, " patches cannot be cut into cells of ", m.size, " x ", m.size);
}

void validate_windows(const ModelConfig& c) {
  check_range("window", c.attention.windows.size, 0, 4096);
  VIT_CHECK(c.attention.windows.size != 0 || c.attention.windows.global_blocks.empty(), kWhere,
            "global blocks in a model without windows");
  VIT_CHECK(c.attention.windows.size == 0 || c.num_prefix_tokens() == 0, kWhere,
            "windows contain only patches, but the model has ", c.num_prefix_tokens(), " prefix tokens");
  VIT_CHECK(!c.position.per_window || (c.attention.windows.size != 0 && c.position.rope == RopeKind::axial),
            kWhere, "positions in windows need windows and axial rotary positions");
  for (const std::size_t block : c.attention.windows.global_blocks)
    VIT_CHECK(block < c.encoder.depth, kWhere, "global block ", block, " of ", c.encoder.depth, " blocks");
}

void validate_late_tokens(const ModelConfig& c) {
  check_range("num_late_tokens", c.tokens.late.count, 0, 4096);
  VIT_CHECK(c.tokens.late.count != 0 || c.tokens.late.masked_blocks.empty(), kWhere,
            "masked blocks without late tokens");
  if (c.tokens.late.count == 0) return;
  check_range("late_block", c.tokens.late.block, 0, c.encoder.depth - 1);
  VIT_CHECK(c.attention.windows.size == 0 && c.merger.size == 0 && c.head.joint.depth == 0 &&
                c.head.pooling == Pooling::none && c.head.num_classes == 0,
            kWhere, "tokens that enter late go without windows, mergers, pooled vectors and classifiers");
  for (const std::size_t block : c.tokens.late.masked_blocks)
    VIT_CHECK(block >= c.tokens.late.block && block < c.encoder.depth, kWhere, "masked block ", block,
              " of blocks ", c.tokens.late.block, " to ", c.encoder.depth - 1);
}

}  // namespace

void validate(const ModelConfig& config, const std::string& file) {
  try {
    validate(config);
  } catch (const Error& error) {
    fail(Where(error.where(), ErrorKind::format), file, ": ", error.message());
  }
}

void validate(const ModelConfig& c) {
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
  VIT_CHECK(c.head_width() <= 512, kWhere, "head width must be at most 512, got ", c.head_width());
  VIT_CHECK(!c.head.projects || c.head.num_classes != 0, kWhere, "a head that projects must be there");
  VIT_CHECK(c.encoder.norm.kind == NormKind::layer || c.head.pooling != Pooling::attention, kWhere,
            "attention pooling has LayerNorm, and all norms of this model are RMSNorm");
  VIT_CHECK(std::isfinite(c.mlp.limit) && c.mlp.limit >= 0, kWhere, "mlp_limit must be 0 or positive, got ",
            c.mlp.limit);
  VIT_CHECK(c.mlp.limit == 0 || (c.mlp.kind == MlpKind::gated && !c.encoder.clipped), kWhere,
            "mlp_limit requires a gated MLP without clipped layers");
  VIT_CHECK(!c.encoder.clipped || (c.encoder.branch_norm && c.mlp.kind == MlpKind::gated), kWhere,
            "clipped layers require branch norms and a gated MLP");
  check_range("patch_frames", c.patch.frames, 1, 16);
  check_range("expert_dim", c.mlp.expert_dim, 0, c.embed_dim - 1);
  check_range("patch_padding", c.patch.padding, 0, (c.patch.size - 1) / 2);
  VIT_CHECK(c.patch.padding == 0 || (c.image.fixed_size && c.image.height % c.patch.size == 0 &&
                                     c.image.width % c.patch.size == 0),
            kWhere, "patches with padding require one size of whole patches, got ", c.image.height, " x ",
            c.image.width);
  VIT_CHECK(std::isfinite(c.attention.scale) && c.attention.scale >= 0, kWhere,
            "attention_scale must be finite and positive, got ", c.attention.scale);
  check_epsilon("the norms", c.encoder.norm.eps);
  validate_position(c);
  validate_windows(c);
  validate_late_tokens(c);
  validate_head(c);
  validate_merger(c);
}

}  // namespace vit
