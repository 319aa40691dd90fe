// The tower of LW-DETR: a plain ViT, some of whose blocks attend in as many windows whatever the grid,
// without a norm after the blocks; by itself or in the file of the detector. Source: transformers,
// models/lw_detr.
#include <cmath>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_lw_detr_vit {
namespace {

constexpr Where kWhere{"hf_lw_detr_vit", ErrorKind::unsupported};
constexpr std::string_view kPrefixes[] = {"", "model.backbone.backbone."};
constexpr std::string_view kAnchor = "embeddings.projection.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::convolution},
    {Part::patch_bias, "embeddings.projection.bias"},
    {Part::position_table, "embeddings.position_embeddings", Form::first_dropped},
    {Part::norm1_gamma, "encoder.layer.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.weight"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.weight"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.weight"),
    joined(Part::qkv_bias, {0, 3}, "encoder.layer.{}.attention.attention.query.bias"),
    joined(Part::qkv_bias, {1, 3}, ""),
    joined(Part::qkv_bias, {2, 3}, "encoder.layer.{}.attention.attention.value.bias"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.*"},
    {Part::scale1, "encoder.layer.{}.gamma_1"},
    {Part::norm2_gamma, "encoder.layer.{}.layernorm_after.*"},
    {Part::fc1_weight, "encoder.layer.{}.intermediate.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.intermediate.fc2.*"},
    {Part::scale2, "encoder.layer.{}.gamma_2"},
};
/// Of the tower by itself.
constexpr Row kModules[] = {
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.q_proj.weight"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.k_proj.weight"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.v_proj.weight"),
    joined(Part::qkv_bias, {0, 3}, "encoder.layer.{}.attention.q_proj.bias"),
    joined(Part::qkv_bias, {1, 3}, ""),
    joined(Part::qkv_bias, {2, 3}, "encoder.layer.{}.attention.v_proj.bias"),
    {Part::proj_weight, "encoder.layer.{}.attention.o_proj.*"},
};
static_assert(is_complete(kRows) && is_sound(kModules));

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_hf_sizes(files, json, {.image_size = 256, .norm_eps = 1e-6});
  c.family = "lw_detr";
  set_hf_mlp(json, c);
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.tokens.class_token = false;
  c.encoder.layer_scale = true;
  c.encoder.token_norm = false;
  c.head.pooling = Pooling::none;
  const std::vector<std::size_t> windowed = read_blocks(json, "window_block_indices", {});
  const std::size_t num_windows = json.find_size("num_windows", {1, 4096}).value_or(16);
  WindowConfig windows{.per_side = static_cast<std::size_t>(std::sqrt(static_cast<double>(num_windows)))};
  VIT_CHECK(windows.per_side * windows.per_side == num_windows, kWhere, json.where(), ".num_windows is ",
            num_windows, ", expected a square");
  windows.global_blocks = other_blocks(windowed, c.encoder.depth);
  if (windows.per_side > 1 && windows.global_blocks.size() != c.encoder.depth)
    c.attention.windows = std::move(windows);
  if (json.find_bool("use_absolute_position_embeddings").value_or(true)) {
    const std::size_t edge = find_tower_size(json, {"pretrain_image_size"}, 224) / c.patch.size;
    c.position.added = AddedTable::patches;
    c.position.added_grid = {edge, edge};
    c.position.resampling = TableResampling::bicubic;
    c.position.reuse = TableReuse::equal_grid;
  }
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files, *files.config), .layout = {kRows}};
  if (has_module_names(files)) out.layout.add(kModules);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "lw_detr_vit") return std::nullopt;
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, (Where{"hf_lw_detr_vit", ErrorKind::mismatch}), files.weights_name, ": no tensor ",
            kAnchor, ", with or without the prefix model.backbone.backbone.");
  return found;
}

}  // namespace
}  // namespace hf_lw_detr_vit

constinit const Family kHfLwDetrVitFamily{.name = "hf_lw_detr_vit",
                                          .anchor = hf_lw_detr_vit::kAnchor,
                                          .prefixes = hf_lw_detr_vit::kPrefixes,
                                          .library = "",
                                          .match = hf_lw_detr_vit::match,
                                          .read = hf_lw_detr_vit::read};

}  // namespace vit::internal
