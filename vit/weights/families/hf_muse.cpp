// The vision towers of Muse Glimmer and Muse Spark, bare or inside the whole model: windows as large as the
// table, around which there are zeros where it is resampled, and whose rows lie in the order of columns. What
// the library calls last_hidden_state are cells of the tokens, without further layers. Source: transformers,
// models/muse_glimmer and muse_spark.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_muse {
namespace {

constexpr Where kWhere{"hf_muse", ErrorKind::unsupported};
constexpr std::string_view kAnchor = "patch_embedder.patch_embedding.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::inputs_added},  // of two equal frames
    {Part::clip_weight, kAnchor},
    {Part::position_table, "patch_embedder.position_embedding_table.weight"},
    {Part::norm_pre_gamma, "ln_pre.*"},
    {Part::norm1_gamma, "layers.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.attn.v_proj.*"),
    {Part::proj_weight, "layers.{}.attn.proj.*"},
    {Part::norm2_gamma, "layers.{}.norm2.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "ln_post.*"},
    at(Place::outside, {Part::merger_fc1_weight, "vision_adapter.fc1.weight", Form::cells}),
    at(Place::outside, {Part::merger_fc2_weight, "vision_adapter.fc2.weight"}),
    at(Place::outside, {Part::merger_projection_weight, "vision_projection.weight"}),
};
static_assert(is_complete(kRows));

/// What the whole model has after the tower.
void set_merger(const SourceFiles& files, const Json& json, ModelConfig& c) {
  const Json& whole = *files.config;
  const std::size_t width = rows_of_tensor(files, "vision_adapter.fc1.weight", Place::outside,
                                           find_tower_size(whole, {"projector_hidden_size"}, 4096));
  const Activation activation = read_hf_activation(whole, Activation::gelu, "projector_hidden_act");
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"merge_size"}, 2);
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = width,
                                         .out_dim = width,
                                         .bias = false,
                                         .activation = activation,
                                         .out_activation = activation});
  merger.add(MergerPlace::projection, MergerLinear{.dim = rows_of_tensor(files, "vision_projection.weight",
                                                                         Place::outside, text_width(files))});
  const auto text = whole.find("text_config");
  const double eps = text && text->is_object() ? text->find_double("rms_norm_eps").value_or(1e-6) : 1e-6;
  merger.add(
      MergerPlace::out_norm,
      MergerNorm{.norm = {.kind = NormKind::rms, .eps = static_cast<float>(eps)}, .has_weights = false});
  fit_to_cells(json, c);
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ParsedModel out{
      .config = read_tower(files, json, {.embed_dim = 1536, .depth = 50, .mlp_dim = 8960, .norm_eps = 1e-5}),
      .layout = {kRows},
      .ignored = {kWholeModelIgnored}};
  ModelConfig& c = out.config;
  c.family = "muse";
  VIT_CHECK(json.find_double("layer_norm_eps").value_or(1e-5) == 1e-5, kWhere, json.where(),
            ".layer_norm_eps other than 1e-5, which the blocks have, is not implemented");
  c.patch.bias = false;
  c.patch.frames = find_tower_size(json, {"patch_temporal"}, 2);
  VIT_CHECK(c.patch.frames == 2, kWhere, json.where(), ".patch_temporal other than 2 is not implemented");
  c.image.stack = StackRule::apart;
  c.encoder.norm_pre = c.encoder.token_norm = true;
  const std::size_t edge = find_tower_size(json, {"pos_emb_height"}, 32);
  VIT_CHECK(edge == find_tower_size(json, {"pos_emb_width"}, 32), kWhere, json.where(),
            ": a table that is not square is not implemented");
  c.position.added = AddedTable::patches;
  c.position.added_grid = {edge, edge};
  c.position.resampling = TableResampling::bilinear_zeros;
  c.position.table_grid = TableGrid::swapped;
  add_tower_rope(json, c);
  c.position.axis_order = AxisOrder::x_then_y;
  c.position.coordinate_offset = 1.0;
  WindowConfig& windows = c.attention.windows.emplace(WindowConfig{.size = edge});
  const auto types = json.find("layer_types");
  for (std::size_t block = 0; block < c.encoder.depth; ++block) {
    const bool is_full =
        types ? types->is_array() && block < types->size() && (*types)[block].as_string() == "full_attention"
              : (block + 1) % 4 == 0 || block + 1 == c.encoder.depth;
    if (is_full) windows.global_blocks.push_back(block);
  }
  if (is_whole_model(*files.config)) set_merger(files, json, c);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"muse_glimmer", "muse_glimmer_vision", "muse_spark", "muse_spark_vision"}))
    return std::nullopt;
  return match_tower(files, kAnchor);
}

}  // namespace
}  // namespace hf_muse

constinit const Family kHfMuseFamily{.name = "hf_muse",
                                     .anchor = hf_muse::kAnchor,
                                     .library = "",
                                     .match = hf_muse::match,
                                     .read = hf_muse::read};

}  // namespace vit::internal
