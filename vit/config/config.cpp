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
    check_range("prefix rows of the position table", p.added_prefix_rows, 0, c.num_prefix_tokens());
    VIT_CHECK(p.added == AddedTable::prefix_and_patches || p.added_prefix_rows == 0, kWhere,
              "a table of patch rows cannot have ", p.added_prefix_rows, " prefix rows");
  }
  VIT_CHECK(!p.rope_scaling || p.rope != RopeKind::none, kWhere,
            "rope scaling is asked for, but the model has no rotary positions to scale");
  VIT_CHECK(!p.rope_scaling || !p.rope_scaling->truncate || p.rope != RopeKind::mixed, kWhere,
            "rope scaling with truncate rounds places on a ladder of frequencies, but those of this model "
            "are learned");
  if (p.rope == RopeKind::none) return;
  // Cosine and sine of every patch: of one head for all, or of every head and block (d and C numbers).
  const GridSize grid = c.native_grid();
  const std::size_t per_patch = p.rope == RopeKind::mixed ? c.depth * c.attention_dim() : c.head_width();
  VIT_CHECK(grid.rows * grid.columns <= kMaxRopeFactors / per_patch, kWhere, "a native grid of ", grid.rows,
            " x ", grid.columns, " patches needs ", per_patch, " rotation factors for each, at most ",
            kMaxRopeFactors, " in all are accepted (image ", c.image_height, " x ", c.image_width,
            ", patch_size ", c.patch_size, ")");
  const std::size_t multiple = p.rope == RopeKind::axial ? 4 : 2;
  VIT_CHECK(c.head_width() % multiple == 0, kWhere, "rotary positions need a head width divisible by ",
            multiple, ", got ", c.head_width(), " (embed_dim ", c.embed_dim, ", num_heads ", c.num_heads,
            ")");
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
  check_range("num_classes", c.num_classes, 0, 1u << 22);
  check_range("projection_dim", c.projection_dim, 0, 65536);
  check_range("joint_depth", c.joint_depth, 0, 1024);
  if (c.joint_depth != 0) {
    check_range("joint_mlp_dim", c.joint_mlp_dim, 1, 1u << 18);
    VIT_CHECK(std::isfinite(c.joint_norm_eps) && c.joint_norm_eps >= 0 && c.joint_norm_eps < 1, kWhere,
              "the epsilon of LayerNorm in the joint head must be in [0, 1), got ", c.joint_norm_eps);
    VIT_CHECK(c.class_token && c.projection_dim == 2 * c.embed_dim, kWhere,
              "a joint head makes vectors of class token and patch mean, ", 2 * c.embed_dim,
              " numbers; projection_dim is ", c.projection_dim);
  }
  VIT_CHECK(c.labels.empty() || c.labels.size() == c.num_classes, kWhere, c.labels.size(),
            " class names for ", c.num_classes, " classes");
  VIT_CHECK(c.label_categories.empty() || c.label_categories.size() == c.labels.size(), kWhere,
            c.label_categories.size(), " categories for ", c.labels.size(), " class names");
  const bool reads_class =
      c.pooling == Pooling::class_token || c.pooling == Pooling::class_and_distillation ||
      c.pooling == Pooling::class_and_patch_mean || (c.num_classes != 0 && c.head_input != HeadInput::pooled);
  VIT_CHECK(!reads_class || c.class_token, kWhere, "pooling reads the class token, but the model has none");
  VIT_CHECK(c.pooling != Pooling::first_token || !c.class_token, kWhere,
            "pooling reads the first patch as if it were the class token, but the model has one");
  VIT_CHECK(c.pooled_dim() == c.embed_dim || (!c.pooled_norm && !c.pooler), kWhere,
            "class token and patch mean side by side are not normalized, and no pooler follows");
  const bool reads_distillation = c.pooling == Pooling::class_and_distillation ||
                                  (c.num_classes != 0 && c.head_input == HeadInput::class_and_distillation);
  VIT_CHECK(!reads_distillation || c.distillation_token, kWhere,
            "the head reads the distillation token, but the model has none");
  VIT_CHECK(!c.pooler || c.pooling != Pooling::none, kWhere, "a pooler follows pooling");
  VIT_CHECK(c.pooling != Pooling::none || (c.num_classes == 0 || c.head_input != HeadInput::pooled), kWhere,
            "a classifier needs a pooled vector, but pooling is off");
  if (c.pooling == Pooling::attention) {
    check_range("heads of the attention pooling", c.attention_pool.num_heads, 1, 1024);
    check_range("hidden width of the attention pooling", c.attention_pool.mlp_dim, 1, 1u << 18);
    VIT_CHECK(c.embed_dim % c.attention_pool.num_heads == 0, kWhere, "embed_dim ", c.embed_dim,
              " is not divisible by the ", c.attention_pool.num_heads, " heads of the attention pooling");
  }
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
  check_range("num_channels", c.num_channels, 1, kMaxChannels);
  check_range("patch_size", c.patch_size, 1, 1024);
  check_range("image height", c.image_height, c.patch_size, kMaxInputEdge);
  check_range("image width", c.image_width, c.patch_size, kMaxInputEdge);
  check_range("patches of the native grid", c.native_grid().rows * c.native_grid().columns, 1, kMaxPatches);
  check_range("embed_dim", c.embed_dim, 1, 65536);
  check_range("depth", c.depth, 1, 1024);
  check_range("num_heads", c.num_heads, 1, 1024);
  check_range("mlp_dim", c.mlp_dim, 1, 1u << 18);
  check_range("num_register_tokens", c.num_register_tokens, 0, 1024);
  VIT_CHECK(c.head_dim != 0 || c.embed_dim % c.num_heads == 0, kWhere, "embed_dim ", c.embed_dim,
            " is not divisible by num_heads ", c.num_heads);
  VIT_CHECK(c.head_width() <= 512, kWhere, "head width must be at most 512, got ", c.head_width());
  VIT_CHECK(std::isfinite(c.norm_eps) && c.norm_eps >= 0 && c.norm_eps < 1, kWhere,
            "the epsilon of LayerNorm must be in [0, 1), got ", c.norm_eps);
  validate_position(c);
  validate_head(c);
}

}  // namespace vit
