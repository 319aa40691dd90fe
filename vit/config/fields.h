// The fields of the configurations by name, and the names of their values: one list for all code that prints
// or reads them.
#pragma once

#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

#include "vit/config.h"
#include "vit/config/merger_fields.h"
#include "vit/image/preprocess.h"

namespace vit::internal {

/// The names of an enum's values, in their order.
template <typename Enum>
struct EnumNames;

// clang-format off
template <> struct EnumNames<AddedTable> {
  static constexpr std::string_view values[] = {"none", "patches", "prefix_and_patches",
                                                "columns_and_rows"};
};
template <> struct EnumNames<TableResampling> {
  static constexpr std::string_view values[] = {"bicubic_antialias", "bicubic", "bicubic_plus_tenth", "bilinear",
                                                "bilinear_antialias", "bilinear_aligned", "tiled", "bucketed",
                                                "bilinear_plus_tenth", "bilinear_zeros"};
};
template <> struct EnumNames<TableReuse> {
  static constexpr std::string_view values[] = {"equal_grid", "equal_count_and_square", "never"};
};
template <> struct EnumNames<RopeKind> {
  static constexpr std::string_view values[] = {"none", "axial", "mixed", "volume", "volume_pairs"};
};
template <> struct EnumNames<RelativeKind> {
  static constexpr std::string_view values[] = {"table", "mlp", "axes"};
};
template <> struct EnumNames<RelativeScope> {
  static constexpr std::string_view values[] = {"blocks", "shared", "both"};
};
template <> struct EnumNames<RelativeResampling> {
  static constexpr std::string_view values[] = {"bilinear", "geometric"};
};
template <> struct EnumNames<CoordinateRule> {
  static constexpr std::string_view values[] = {"index", "scaled_to_reference", "centered", "corners"};
};
template <> struct EnumNames<AxisOrder> {
  static constexpr std::string_view values[] = {"x_then_y", "y_then_x"};
};
template <> struct EnumNames<AxisFrequencies> {
  static constexpr std::string_view values[] = {"shared", "alternating"};
};
template <> struct EnumNames<NormKind> {
  static constexpr std::string_view values[] = {"layer", "rms"};
};
template <> struct EnumNames<FirstNorm> {
  static constexpr std::string_view values[] = {"none", "token", "cell"};
};
template <> struct EnumNames<CellRule> {
  static constexpr std::string_view values[] = {"side_by_side", "mean"};
};
template <> struct EnumNames<StackRule> {
  static constexpr std::string_view values[] = {"none", "apart", "together"};
};
template <> struct EnumNames<TokenStage> {
  static constexpr std::string_view values[] = {"encoder", "reduced", "merged"};
};
template <> struct EnumNames<RopePairing> {
  static constexpr std::string_view values[] = {"neighbors", "halves"};
};
template <> struct EnumNames<MlpKind> {
  static constexpr std::string_view values[] = {"plain", "gated"};
};
template <> struct EnumNames<Activation> {
  static constexpr std::string_view values[] = {"none", "gelu", "gelu_tanh", "quick_gelu", "silu", "relu"};
};
template <> struct EnumNames<Pooling> {
  static constexpr std::string_view values[] = {"none", "class_token", "class_and_distillation", "patch_mean",
                                                "attention", "cls+mean", "first_token",
                                                "prefix_mean", "prefix_tokens"};
};
template <> struct EnumNames<HeadInput> {
  static constexpr std::string_view values[] = {"pooled", "class_and_patch_mean", "class_and_distillation"};
};
template <> struct EnumNames<Resampler> {
  static constexpr std::string_view values[] = {"pillow", "torchvision_uint8", "torchvision_float"};
};
template <> struct EnumNames<PillowRelease> {
  static constexpr std::string_view values[] = {"up to 12.1", "12.2 and 12.3", "13.0"};
};
template <> struct EnumNames<ResizeFilter> {
  static constexpr std::string_view values[] = {"nearest", "lanczos", "bilinear", "bicubic",
                                                "box",     "hamming", "opencv_cubic", "blurred_bilinear", "near_bilinear"};
};
template <> struct EnumNames<ResizeRule> {
  static constexpr std::string_view values[] = {"none", "squash", "shortest_edge", "shortest_edge_floored", "cover", "contain",
                                                "contain_trunc", "nearer_scale", "patches", "area", "longest", "patch_limit",
                                                "token_count", "box", "tiles"};
};
template <> struct EnumNames<TileCanvas> {
  static constexpr std::string_view values[] = {"least_change", "nearest_ratio", "least_enlarged", "listed", "whole_edges"};
};
template <> struct EnumNames<TileOverview> {
  static constexpr std::string_view values[] = {"last_of_several", "always_first"};
};
template <> struct EnumNames<ShortEdges> {
  static constexpr std::string_view values[] = {"kept", "each", "both"};
};
template <> struct EnumNames<CropRounding> {
  static constexpr std::string_view values[] = {"half_even", "floor"};
};
template <> struct EnumNames<PadRounding> {
  static constexpr std::string_view values[] = {"extra_bottom_right", "extra_top_left"};
};
template <> struct EnumNames<ChannelOrder> {
  static constexpr std::string_view values[] = {"rgb", "bgr"};
};
template <> struct EnumNames<NormalizeRule> {
  static constexpr std::string_view values[] = {"divide_then_normalize", "fused", "rescale_first",
                                                "in_bfloat16"};
};
// clang-format on

template <typename Enum>
constexpr std::string_view enum_name(Enum value) {
  const auto index = static_cast<std::size_t>(value);
  return index < std::size(EnumNames<Enum>::values) ? EnumNames<Enum>::values[index] : "unknown";
}

/// Whether a field is always printed, or only if it is not the default.
enum class Shown { always, unless_default };

/// Calls visit(name, field) for both fields.
template <typename Grid, typename Visit>
void visit_grid(Grid& grid, const Visit& visit) {
  visit("rows", grid.rows);
  visit("columns", grid.columns);
}

/// Calls visit(name, field) for every field, in the order in which they are printed; a visitor of another
/// structure (GridSize, PositionConfig, AttentionPoolConfig) visits its fields in turn.
template <typename Position, typename Visit>
void visit_position(Position& p, const Visit& visit) {
  visit("added", p.added);
  visit("added_grid", p.added_grid);
  visit("added_prefix_rows", p.added_prefix_rows);
  visit("added_steps", p.added_steps, Shown::unless_default);
  visit("resampling", p.resampling);
  visit("reuse", p.reuse);
  visit.flag("square_table", p.table_grid, TableGrid::square);
  visit.flag("swapped_grid", p.table_grid, TableGrid::swapped);
  visit("rope", p.rope);
  visit("coordinates", p.coordinates);
  visit("coordinate_offset", p.coordinate_offset);
  visit("reference_grid", p.reference_grid);
  visit("axis_order", p.axis_order);
  visit("pairing", p.pairing);
  visit("theta", p.theta);
  visit("angle_scale", p.angle_scale);
  AxisFrequencies computed = p.frequencies;
  if (computed == AxisFrequencies::stored) computed = AxisFrequencies::shared;
  visit("frequencies", computed, Shown::unless_default);
  if constexpr (!std::is_const_v<Position>) {
    if (p.frequencies != AxisFrequencies::stored || computed != AxisFrequencies::shared)
      p.frequencies = computed;
  }
  visit("between_blocks", p.between_blocks, Shown::unless_default);
  visit("class_angles", p.class_angles, Shown::unless_default);
  visit("per_window", p.per_window, Shown::unless_default);
  visit.flag("stored_periods", p.frequencies, AxisFrequencies::stored, Shown::always);
  visit("relative", p.relative, Shown::unless_default);
  visit("rope_scaling", p.rope_scaling, Shown::unless_default);
}

template <typename Relative, typename Visit>
void visit_relative(Relative& r, const Visit& visit) {
  visit("kind", r.kind);
  visit("grid", r.grid);
  visit("scope", r.scope);
  visit("resampling", r.resampling);
  visit("mlp_dim", r.mlp_dim, Shown::unless_default);
}

template <typename Pool, typename Visit>
void visit_attention_pool(Pool& pool, const Visit& visit) {
  visit("num_heads", pool.num_heads);
  visit("mlp_dim", pool.mlp_dim);
  visit("activation", pool.activation);
}

template <typename Fields, typename Visit>
void visit_merger(Fields& m, const Visit& visit) {
  visit("size", m.size);
  visit("norm", m.norm);
  visit("norm_kind", m.norm_kind);
  visit("norm_eps", m.norm_eps);
  visit("cells", m.cells, Shown::unless_default);
  visit("pads", m.pads, Shown::unless_default);
  visit("cell_scale", m.cell_scale, Shown::unless_default);
  visit("standardize", m.standardize, Shown::unless_default);
  visit("reduced_dim", m.reduced_dim, Shown::unless_default);
  visit("reduced_bias", m.reduced_bias, Shown::unless_default);
  visit("middle", m.middle, Shown::unless_default);
  visit("middle_norm_eps", m.middle_norm_eps, Shown::unless_default);
  visit("softmax_dim", m.softmax_dim, Shown::unless_default);
  visit("convolution_dim", m.convolution_dim, Shown::unless_default);
  visit("convolution_norms", m.convolution_norms, Shown::unless_default);
  visit("convolution_norm_eps", m.convolution_norm_eps, Shown::unless_default);
  visit("strided_dims", m.strided_dims, Shown::unless_default);
  visit("strided_bias", m.strided_bias, Shown::unless_default);
  visit("hidden_dim", m.hidden_dim);
  visit("out_dim", m.out_dim);
  visit("gated", m.gated, Shown::unless_default);
  visit("mlp_bias", m.mlp_bias);
  visit("activation", m.activation);
  visit("out_activation", m.out_activation, Shown::unless_default);
  visit("mlp_norm", m.mlp_norm, Shown::unless_default);
  visit("later_size", m.later_size, Shown::unless_default);
  visit("later_cells", m.later_cells, Shown::unless_default);
  visit("second_mlp", m.second_mlp, Shown::unless_default);
  visit("second_hidden_dim", m.second_hidden_dim, Shown::unless_default);
  visit("second_out_dim", m.second_out_dim, Shown::unless_default);
  visit("second_norm_missing", m.second_norm_missing, Shown::unless_default);
  visit("mlp_norm_eps", m.mlp_norm_eps, Shown::unless_default);
  visit("projection_dim", m.projection_dim, Shown::unless_default);
  visit("projection_bias", m.projection_bias, Shown::unless_default);
  visit("projection_norm", m.projection_norm, Shown::unless_default);
  visit("projection_norm_eps", m.projection_norm_eps, Shown::unless_default);
  visit("out_norm", m.out_norm, Shown::unless_default);
  visit("out_norm_plain", m.out_norm_plain, Shown::unless_default);
  visit("out_norm_eps", m.out_norm_eps, Shown::unless_default);
  visit("tokens", m.tokens, Shown::unless_default);
  visit("deepstack", m.deepstack, Shown::unless_default);
  visit("blocks", m.blocks, Shown::unless_default);
}

/// Visits the fields of a group that may be absent, which `visit_fields` names: those of an absent one are
/// the defaults, and after reading, the group is there if is_present(fields).
template <typename Group, typename VisitFields, typename IsPresent>
void visit_group(Group& group, const VisitFields& visit_fields, const IsPresent& is_present) {
  auto fields = group.value_or(typename Group::value_type{});
  visit_fields(fields);
  if constexpr (!std::is_const_v<Group>) {
    if (is_present(fields)) {
      group = std::move(fields);
    } else {
      group.reset();
    }
  }
}

/// All fields except the names of model and classes. visit(name, field, shown), visit.norm(name, kind_name,
/// norm) for a norm with a kind of its own, and visit.flag(name, choice, value) for a value of a choice that
/// has a name of its own.
template <typename Config, typename Visit>
void visit_model(Config& c, const Visit& visit) {
  visit("image_height", c.image.height);
  visit("image_width", c.image.width);
  visit("num_channels", c.image.num_channels, Shown::unless_default);
  visit("patch_size", c.patch.size);
  visit("patch_frames", c.patch.frames);
  visit("stack", c.image.stack, Shown::unless_default);
  visit("fixed_size", c.image.fixed_size);
  visit("drops_remainder", c.patch.drops_remainder, Shown::unless_default);
  visit("own_clips", c.patch.own_clips, Shown::unless_default);
  visit("embed_dim", c.embed_dim);
  visit("depth", c.encoder.depth);
  visit("num_heads", c.attention.num_heads);
  visit("head_dim", c.attention.head_dim, Shown::unless_default);
  visit("num_key_heads", c.attention.num_key_heads, Shown::unless_default);
  visit("block_key_heads", c.attention.block_key_heads, Shown::unless_default);
  visit("mlp_dim", c.mlp.dim);
  visit("expert_dim", c.mlp.expert_dim, Shown::unless_default);
  visit("attention_scale", c.attention.scale, Shown::unless_default);
  visit_group(
      c.attention.windows,
      [&](auto& windows) {
        visit("window", windows.size, Shown::unless_default);
        visit("windows_per_side", windows.per_side, Shown::unless_default);
        visit("window_class_tokens", windows.class_tokens, Shown::unless_default);
        visit("global_blocks", windows.global_blocks, Shown::unless_default);
        visit("window_pads", windows.pads, Shown::unless_default);
      },
      [](const WindowConfig& windows) {
        return windows.size != 0 || windows.per_side != 0 || !windows.global_blocks.empty();
      });
  visit.flag("unit_pixels", c.patch.pixels, PixelRule::centered);
  visit.flag("input_norm", c.patch.pixels, PixelRule::stored);
  visit("patch_padding", c.patch.padding, Shown::unless_default);
  visit("patch_row_step", c.patch.step.rows, Shown::unless_default);
  visit("patch_column_step", c.patch.step.columns, Shown::unless_default);
  visit("patch_norm", c.patch.norm, Shown::unless_default);
  visit("patch_bias", c.patch.bias);
  visit("embed_norm", c.patch.embed_norm, Shown::unless_default);
  visit("class_token", c.tokens.class_token);
  visit("distillation_token", c.tokens.distillation_token);
  visit("num_register_tokens", c.tokens.num_registers);
  visit_group(
      c.tokens.late,
      [&](auto& late) {
        visit("num_late_tokens", late.count, Shown::unless_default);
        visit("late_block", late.block, Shown::unless_default);
        visit("masked_blocks", late.masked_blocks, Shown::unless_default);
      },
      [](const LateTokenConfig& late) { return late.count != 0 || !late.masked_blocks.empty(); });
  visit("position", c.position);
  visit("norm_kind", c.encoder.norm.kind, Shown::unless_default);
  visit("norm_eps", c.encoder.norm.eps);
  visit("norm_pre", c.encoder.norm_pre);
  visit("qkv_bias", c.attention.qkv_bias);
  visit("parallel", c.encoder.parallel, Shown::unless_default);
  visit.norm("qk_norm", "qk_norm_kind", c.attention.qk_norm);
  visit("value_norm", c.attention.value_norm, Shown::unless_default);
  visit("differential", c.attention.differential, Shown::unless_default);
  visit("proj_bias", c.attention.proj_bias);
  visit("mlp_bias", c.mlp.bias);
  visit("attention_norm", c.attention.norm);
  visit("mlp", c.mlp.kind);
  visit("activation", c.mlp.activation);
  visit("mlp_norm", c.mlp.norm);
  visit("mlp_limit", c.mlp.limit, Shown::unless_default);
  visit("clipped", c.encoder.clipped, Shown::unless_default);
  visit.flag("branch_norm", c.encoder.block_norms, BlockNorms::before_and_after);
  visit.flag("post_norm", c.encoder.block_norms, BlockNorms::after);
  visit.flag("sum_norm", c.encoder.block_norms, BlockNorms::of_sums);
  visit("layer_scale", c.encoder.layer_scale);
  visit("token_norm", c.encoder.token_norm);
  visit("pooled_norm", c.head.pooled_norm);
  visit("pooled_norm_eps", c.head.pooled_norm_eps, Shown::unless_default);
  visit("pooling", c.head.pooling);
  visit("pools_merged", c.head.pools_merged, Shown::unless_default);
  visit("pooled_tokens", c.head.pooled_tokens, Shown::unless_default);
  visit("pooler", c.head.pooler);
  visit("attention_pool", c.head.attention_pool);
  visit_group(
      c.head.projection,
      [&](auto& projection) {
        visit("projection_dim", projection.dim);
        visit_group(
            c.head.joint,
            [&](auto& joint) {
              visit("joint_depth", joint.depth, Shown::unless_default);
              visit("joint_mlp_dim", joint.mlp_dim, Shown::unless_default);
            },
            [](const JointHeadConfig& joint) { return joint.depth != 0; });
        visit("projection_bias", projection.bias);
      },
      [](const ProjectionConfig& projection) { return projection.dim != 0 || projection.bias; });
  MergerFields merger = merger_fields(c.merger);
  visit("merger", merger, Shown::unless_default);
  if constexpr (!std::is_const_v<Config>) c.merger = merger_of(merger);
  visit("head_input", c.head.input);
  visit("num_classes", c.head.num_classes);
  visit.flag("head_projects", c.head.logits, LogitKind::joint_space);
  visit.flag("multi_label", c.head.logits, LogitKind::tags);
  visit.flag("regression", c.head.logits, LogitKind::values);
}

/// All fields except the source.
template <typename Config, typename Visit>
void visit_preprocess(Config& c, const Visit& visit) {
  visit("resampler", c.resampler);
  visit("pillow", c.pillow);
  visit("filter", c.filter);
  visit("resize", c.resize);
  visit("resize_height", c.resize_height);
  visit("resize_width", c.resize_width);
  visit("longest_edge", c.longest_edge);
  visit("box_unit", c.box_unit, Shown::unless_default);
  visit("size_multiple", c.size_multiple, Shown::unless_default);
  visit("max_patches", c.max_patches, Shown::unless_default);
  visit("patch_size", c.patch_size, Shown::unless_default);
  visit("max_side", c.max_side, Shown::unless_default);
  visit("max_tiles", c.max_tiles, Shown::unless_default);
  visit("min_tiles", c.min_tiles, Shown::unless_default);
  visit("canvas", c.canvas, Shown::unless_default);
  visit("canvases", c.canvases, Shown::unless_default);
  visit("overview", c.overview, Shown::unless_default);
  visit("fills_canvas", c.fills_canvas, Shown::unless_default);
  visit("edge_multiple", c.edge_multiple, Shown::unless_default);
  visit("min_area", c.min_area, Shown::unless_default);
  visit("max_area", c.max_area, Shown::unless_default);
  visit("area_frames", c.area_frames, Shown::unless_default);
  visit("short_edges", c.short_edges, Shown::unless_default);
  visit("pad_at_end", c.pad_at_end, Shown::unless_default);
  visit("crop_pct", c.crop_pct);
  visit("crop", c.crop);
  visit("crop_height", c.crop_height);
  visit("crop_width", c.crop_width);
  visit("crop_multiple", c.crop_multiple);
  visit("opencv_longest_edge", c.opencv_longest_edge, Shown::unless_default);
  visit("pad_multiple", c.pad_multiple, Shown::unless_default);
  visit("pad_normalized", c.pad_normalized, Shown::unless_default);
  visit("windows", c.windows, Shown::unless_default);
  visit("crop_rounding", c.crop_rounding);
  visit("pad_rounding", c.pad_rounding);
  visit("pad_color", c.crop_pad_color);
  visit("normalize", c.normalize);
  visit("rescale", c.rescale);
  visit("rescale_factor", c.rescale_factor);
  visit("subtract_mean", c.subtract_mean);
  visit("mean", c.mean);
  visit("std", c.std);
  visit("apply_orientation", c.apply_orientation);
  visit("alpha_on_white", c.alpha_on_white);
  visit("pad_to_square", c.pad_to_square, Shown::unless_default);
  visit("square_at_corner", c.square_at_corner, Shown::unless_default);
  visit("square_color", c.square_pad_color, Shown::unless_default);
  visit("channels", c.channels, Shown::unless_default);
}

/// Visitor that notes the name of a field whose choice is none of those with a name.
struct ChoiceCheck {
  const char*& unknown;

  template <typename Field>
  void operator()(const char* name, const Field& field, Shown = Shown::always) const {
    if constexpr (std::is_enum_v<Field>) {
      if (static_cast<std::size_t>(field) >= std::size(EnumNames<Field>::values)) unknown = name;
    } else if constexpr (std::is_same_v<Field, PositionConfig>) {
      visit_position(field, *this);
    } else if constexpr (std::is_same_v<Field, MergerFields>) {
      visit_merger(field, *this);
    } else if constexpr (std::is_same_v<Field, std::optional<RelativeConfig>>) {
      if (field) visit_relative(*field, *this);
    } else if constexpr (std::is_same_v<Field, std::optional<AttentionPoolConfig>>) {
      if (field) visit_attention_pool(*field, *this);
    }
  }
  void norm(const char*, const char* kind_name, const std::optional<NormKind>& kind) const {
    if (kind) (*this)(kind_name, *kind);
  }
  template <typename Enum>
  void flag(const char*, Enum, Enum, Shown = Shown::unless_default) const {}
};

}  // namespace vit::internal
