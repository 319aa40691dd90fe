// The vision tower of MiniMax-M3, bare or inside the whole model: a ViT with rotary positions in time, rows
// and columns, whose pairs are halves of the channels that the three axes share; an image is one step in
// time, of two equal frames. The MLP of the projector precedes its cells. Source: transformers,
// models/minimax_m3_vl.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_minimax {
namespace {

constexpr Row head_rows(Part part, std::uint8_t index, std::string_view name) {
  Row row = joined(part, {index, 3}, name);
  row.form = index < 2 ? Form::halves_of_axes : Form::as_stored;
  return row;
}
/// The library's names.
constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.proj.weight", Form::frames},
    {Part::norm_pre_gamma, "pre_layrnorm.*"},
    {Part::norm1_gamma, "layers.{}.layer_norm1.*"},
    head_rows(Part::qkv_weight, 0, "layers.{}.self_attn.q_proj.*"),
    head_rows(Part::qkv_weight, 1, "layers.{}.self_attn.k_proj.*"),
    head_rows(Part::qkv_weight, 2, "layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "layers.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
    at(Place::outside, {Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"}),
    at(Place::outside, {Part::merger_second_fc1_weight, "patch_merge_mlp.linear_1.*"}),
    at(Place::outside, {Part::merger_second_fc2_weight, "patch_merge_mlp.linear_2.*"}),
};
/// The publisher's names.
constexpr Row kPublished[] = {
    {Part::patch_weight, "embeddings.patch_embedding.weight", Form::frames},
    {Part::norm1_gamma, "encoder.layers.{}.layer_norm1.*"},
    head_rows(Part::qkv_weight, 0, "encoder.layers.{}.self_attn.q_proj.*"),
    head_rows(Part::qkv_weight, 1, "encoder.layers.{}.self_attn.k_proj.*"),
    head_rows(Part::qkv_weight, 2, "encoder.layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "encoder.layers.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
};
static_assert(is_complete(kRows) && is_complete(kPublished));

void set_merger(const SourceFiles& files, const Json& json, ModelConfig& c) {
  const auto rows = [&](std::string_view name, std::size_t fallback) {
    return rows_of_tensor(files, name, Place::outside, fallback);
  };
  const std::size_t text = text_width(files);
  const std::size_t hidden = find_tower_size(*files.config, {"projector_hidden_size"}, 6144);
  MergerConfig& merger = c.merger.emplace();
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = rows("multi_modal_projector.linear_1.weight", hidden),
                                         .out_dim = rows("multi_modal_projector.linear_2.weight", text)});
  merger.add(MergerPlace::later_cells, MergerCells{.size = find_tower_size(json, {"spatial_merge_size"}, 2)});
  merger.add(MergerPlace::second_mlp, MergerMlp{.hidden_dim = rows("patch_merge_mlp.linear_1.weight", hidden),
                                                .out_dim = rows("patch_merge_mlp.linear_2.weight", text)});
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ParsedModel out{
      .config = read_tower(
          files, json, {.image_size = 2016, .norm_eps = json.find_double("layer_norm_eps").value_or(1e-5)}),
      .layout = {kRows},
      .ignored = {kWholeModelIgnored}};
  if (files.find("embeddings.patch_embedding.weight") != nullptr) out.layout.add(kPublished);
  ModelConfig& c = out.config;
  c.family = "minimax";
  c.patch.bias = false;
  c.patch.frames = find_tower_size(json, {"temporal_patch_size"}, 2);
  c.encoder.norm_pre = true;
  c.position.rope = RopeKind::volume_pairs;
  c.position.pairing = RopePairing::halves;
  c.position.theta = read_rope_theta(json, 10000.0);
  if (is_whole_model(*files.config)) set_merger(files, json, c);
  out.notes.push_back("videos are not implemented: an image is one step in time");
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"minimax_m3_vl", "minimax_m3_vl_vision"})) return std::nullopt;
  Match found = match_tower(files, "pre_layrnorm.weight");
  if (found.prefix.starts_with("vision_tower.")) found.outside = "";
  return found;
}

}  // namespace
}  // namespace hf_minimax

constinit const Family kHfMiniMaxFamily{.name = "hf_minimax",
                                        .anchor = "pre_layrnorm.weight",
                                        .library = "",
                                        .match = hf_minimax::match,
                                        .read = hf_minimax::read};

}  // namespace vit::internal
