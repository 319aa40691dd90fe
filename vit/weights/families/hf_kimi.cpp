// MoonViT, the vision tower of Kimi-VL, Kimi K2.5 and K2.6, in the whole model or by itself. Its stored pairs
// of channels are rotated by column and row in turn; loading sorts them by axis. Trap: norm1 and fc1 are the
// second of a pair that counts from 0. Source: transformers, models/kimi_k25 and its conversion; vLLM,
// moonvit.py.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_kimi {
namespace {

constexpr Where kWhere{"hf_kimi", ErrorKind::unsupported};

/// A third of wqkv, sorted by axis.
constexpr Row sorted(Share third, std::string_view source) {
  Row row = joined(Part::qkv_weight, third, source, third);
  row.form = Form::pairs_by_axis;
  return row;
}

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::position_table, "patch_embed.pos_emb.weight", Form::grid},
    {Part::norm1_gamma, "encoder.blocks.{}.norm0.*"},
    sorted({0, 3}, "encoder.blocks.{}.wqkv.*"),
    sorted({1, 3}, "encoder.blocks.{}.wqkv.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.blocks.{}.wqkv.*", {2, 3}),
    {Part::proj_weight, "encoder.blocks.{}.wo.*"},
    {Part::norm2_gamma, "encoder.blocks.{}.norm1.*"},
    {Part::fc1_weight, "encoder.blocks.{}.mlp.fc0.*"},
    {Part::fc2_weight, "encoder.blocks.{}.mlp.fc1.*"},
    {Part::norm_gamma, "encoder.final_layernorm.*"},
    at(Place::outside, {Part::merger_norm_gamma, "mm_projector.pre_norm.*"}),
    at(Place::outside, {Part::merger_fc1_weight, "mm_projector.proj.0.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "mm_projector.proj.2.*"}),
};
constexpr Row kKimiVlProjector[] = {
    at(Place::outside, {Part::merger_norm_gamma, "multi_modal_projector.pre_norm.*"}),
    at(Place::outside, {Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"}),
};
// What save_pretrained of transformers makes of these names.
constexpr Row kSavedPatch[] = {
    {Part::patch_weight, "encoder.patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "encoder.patch_embed.proj.bias"},
};
constexpr Row kSavedNorm[] = {at(Place::outside, {Part::merger_norm_gamma, "model.mm_projector.pre_norm.*"})};
// The tower by itself, as transformers saves it.
constexpr Row alone(Share third, std::string_view source) {
  Row row = joined(Part::qkv_weight, third, source);
  row.form = Form::halves_in_turn;
  return row;
}
constexpr Row kAlone[] = {
    {Part::position_table, "patch_embed.pos_emb.position_embeddings", Form::grid},
    {Part::norm1_gamma, "layers.{}.norm1.*"},
    alone({0, 3}, "layers.{}.attn.q_proj.*"),
    alone({1, 3}, "layers.{}.attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.attn.v_proj.*"),
    {Part::proj_weight, "layers.{}.attn.proj.*"},
    {Part::norm2_gamma, "layers.{}.norm2.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "final_layernorm.*"},
};
constexpr std::string_view kAloneAnchor = "patch_embed.pos_emb.position_embeddings";
static_assert(is_sound(kAlone));
static_assert(is_complete(kRows) && is_sound(kKimiVlProjector) && is_sound(kSavedPatch) &&
              is_sound(kSavedNorm));

constexpr Ignored kTime[] = {{"patch_embed.pos_emb.time_weight", "positions of the frames of a clip"}};

bool is_kimi_vl(const SourceFiles& files) {
  return has_model_type(files, {"kimi_vl", "moonvit"});
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = 1152,
                              .depth = 27,
                              .mlp_dim = 4304,
                              .norm_eps = 1e-5,
                              .activation = Activation::gelu_tanh});
  c.family = "kimi";
  c.encoder.token_norm = true;
  PositionConfig& position = c.position;
  position.rope = RopeKind::axial;
  position.axis_order = AxisOrder::x_then_y;
  const bool is_alone = files.has_weights && files.find(kAloneAnchor) != nullptr;
  position.pairing = is_alone ? RopePairing::halves : RopePairing::neighbors;
  position.theta = read_rope_theta(json, 10000.0);
  position.added = AddedTable::patches;
  position.added_grid = {find_tower_size(json, {"pos_emb_height", "init_pos_emb_height"}, 64),
                         find_tower_size(json, {"pos_emb_width", "init_pos_emb_width"}, 64)};
  VIT_CHECK(is_kimi_vl(files) || position.added_grid.rows == position.added_grid.columns, kWhere,
            json.where(), ": a table of positions of ", position.added_grid.rows, " x ",
            position.added_grid.columns, " is not implemented: the library reads it as a square");
  position.resampling = TableResampling::bicubic;
  if (!is_whole_model(*files.config)) return c;
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"merge_kernel_size"}, 2);
  fit_to_cells(json, c);
  merger.cells.token_norm = {
      .eps = static_cast<float>(files.config->find_double("projection_layer_norm_eps").value_or(1e-5))};
  MergerMlp mlp{.hidden_dim = merger.cell_width(c.embed_dim)};
  for (const char* last : {"mm_projector.proj.2.weight", "multi_modal_projector.linear_2.weight"}) {
    if (mlp.out_dim == 0) mlp.out_dim = rows_of_tensor(files, last, Place::outside, 0);
  }
  if (mlp.out_dim == 0) mlp.out_dim = text_width(files);
  merger.add(MergerPlace::mlp, mlp);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files, tower_config(*files.config)),
                  .layout = {kRows},
                  .ignored = {kTime, kWholeModelIgnored}};
  if (files.find("multi_modal_projector.linear_1.weight", Place::outside) != nullptr)
    out.layout.add(kKimiVlProjector);
  if (files.find("encoder.patch_embed.proj.weight") != nullptr) out.layout.add(kSavedPatch);
  if (files.find("model.mm_projector.pre_norm.weight", Place::outside) != nullptr) out.layout.add(kSavedNorm);
  if (files.find(kAloneAnchor) != nullptr) out.layout.add(kAlone);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"kimi_k25", "kimi_k25_vision", "kimi_vl", "moonvit"})) return std::nullopt;
  if (files.has_weights && files.tensors.find(kAloneAnchor) != nullptr) return Match{};
  return match_tower(files, "patch_embed.pos_emb.weight");
}

}  // namespace
}  // namespace hf_kimi

constinit const Family kHfKimiFamily{.name = "hf_kimi",
                                     .anchor = "patch_embed.pos_emb.weight",
                                     .library = "",
                                     .match = hf_kimi::match,
                                     .read = hf_kimi::read};

}  // namespace vit::internal
