// The vision tower of Inkling 2, bare or inside the whole model: a class token, whose row of the table has a
// name of its own, positions that count from 1, layer scale, no norm after the blocks. Source: transformers,
// models/inkling2.
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_inkling {
namespace {

constexpr std::string_view kAnchor = "embeddings.patch_embedding.weight";
constexpr std::string_view kPrefixes[] = {"model.vision_tower.", "vision_tower.", "model.visual.backbone.",
                                          ""};

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::pixels},
    {Part::class_token, "embeddings.class_embedding"},
    joined(Part::position_table, {0, 2}, "embeddings.cls_position_embedding"),
    joined(Part::position_table, {1, 2}, "embeddings.position_embedding.weight"),
    {Part::norm_pre_gamma, "pre_layernorm.*"},
    {Part::norm1_gamma, "layers.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "layers.{}.self_attn.out_proj.*"},
    {Part::scale1, "layers.{}.lambda_1"},
    {Part::norm2_gamma, "layers.{}.layernorm_after.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
    {Part::scale2, "layers.{}.lambda_2"},
    {Part::merger_fc1_weight, "merger.linear_1.*"},
    {Part::merger_fc2_weight, "merger.linear_2.*"},
};
static_assert(is_complete(kRows));

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  const std::size_t edge = find_tower_size(json, {"posemb_grid_size"}, 32);
  const std::size_t patch = find_tower_size(json, {"patch_size", "native_patch_size"}, 20);
  ParsedModel out{.config = read_tower(files, json,
                                       {.embed_dim = 1024,
                                        .depth = 23,
                                        .patch_size = patch,
                                        .image_size = edge * patch,
                                        .norm_eps = json.find_double("layer_norm_eps").value_or(1e-5)}),
                  .layout = {kRows},
                  .ignored = {kWholeModelIgnored}};
  ModelConfig& c = out.config;
  c.family = "inkling2";
  c.patch.size = patch;
  const double hidden = static_cast<double>(c.embed_dim) * json.find_double("mlp_ratio").value_or(4.0);
  c.mlp.dim = find_tower_size(json, {"intermediate_size"},
                              hidden >= 1 && hidden < 1e6 ? static_cast<std::size_t>(hidden) : 0);
  c.patch.bias = false;
  c.tokens.class_token = true;
  c.encoder.norm_pre = c.encoder.layer_scale = true;
  c.position.added = AddedTable::prefix_and_patches;
  c.position.added_grid = {edge, edge};
  c.position.added_prefix_rows = 1;
  c.position.resampling = TableResampling::bilinear;
  add_tower_rope(json, c);
  c.position.axis_order = AxisOrder::x_then_y;
  c.position.pairing = RopePairing::neighbors;
  c.position.coordinate_offset = 1.0;
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"spatial_merge_size", "adapter_merge_size"}, 2);
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = find_tower_size(json, {"projection_hidden_dim"}, 4096),
                                         .out_dim = find_tower_size(json, {"text_hidden_size"}, 4608),
                                         .bias = json.find_bool("projector_bias").value_or(false),
                                         .activation = c.mlp.activation});
  fit_to_cells(json, c);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"inkling2", "inkling2_vision"})) return std::nullopt;
  return match_tower(files, kAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_inkling

constinit const Family kHfInklingFamily{.name = "hf_inkling",
                                        .anchor = hf_inkling::kAnchor,
                                        .prefixes = hf_inkling::kPrefixes,
                                        .library = "",
                                        .match = hf_inkling::match,
                                        .read = hf_inkling::read};

}  // namespace vit::internal
