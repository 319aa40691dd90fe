// Llama 4's vision tower, by itself or in the whole model. It takes square tiles of one size. The library
// puts the class token last; here it comes first, which changes nothing, and its row of the table with it.
// What the adapter gives is what the library calls last_hidden_state. Source: transformers, models/llama4.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_llama4 {
namespace {

constexpr Where kWhere{"hf_llama4", ErrorKind::unsupported};

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embedding.linear.weight"},
    {Part::class_token, "class_embedding"},
    {Part::position_table, "positional_embedding_vlm", Form::last_first},
    {Part::norm_pre_gamma, "layernorm_pre.*"},
    {Part::norm1_gamma, "model.layers.{}.input_layernorm.*"},
    joined(Part::qkv_weight, {0, 3}, "model.layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "model.layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "model.layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "model.layers.{}.self_attn.o_proj.*"},
    {Part::norm2_gamma, "model.layers.{}.post_attention_layernorm.*"},
    {Part::fc1_weight, "model.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "model.layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "layernorm_post.*"},
    {Part::merger_fc1_weight, "vision_adapter.mlp.fc1.*"},
    {Part::merger_fc2_weight, "vision_adapter.mlp.fc2.*"},
    at(Place::outside, {Part::merger_projection_weight, "multi_modal_projector.linear_1.*"}),
};
static_assert(is_complete(kRows));

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = 768,
                              .depth = 34,
                              .mlp_dim = 5632,
                              .image_size = 448,
                              .norm_eps = 1e-5});  // whatever norm_eps says
  c.mlp.activation = Activation::gelu;             // whatever hidden_act says
  c.family = "llama4";
  c.patch.bias = false;
  c.tokens.class_token = true;
  c.encoder.norm_pre = true;
  c.encoder.token_norm = true;
  c.image.fixed_size = true;
  c.image.stack = StackRule::apart;  // tiles
  add_tower_rope(json, c);
  c.position.axis_order = AxisOrder::x_then_y;
  c.position.pairing = RopePairing::neighbors;
  c.position.coordinate_offset = 1.0;
  VIT_CHECK(c.patch.size != 0, kWhere.with(ErrorKind::format), json.where(), ".patch_size must not be 0");
  c.position.added = AddedTable::prefix_and_patches;
  c.position.added_grid = c.native_grid();
  c.position.added_prefix_rows = 1;
  const double ratio = json.find_double("pixel_shuffle_ratio").value_or(0.5);
  VIT_CHECK(ratio == 0.5 || ratio == 0.25 || ratio == 1.0, kWhere, json.where(),
            ".pixel_shuffle_ratio must be 1, 0.5 or 0.25, found ", ratio);
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = static_cast<std::size_t>(1.0 / ratio);
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = find_tower_size(json, {"projector_input_dim"}, 4096),
                                         .out_dim = find_tower_size(json, {"projector_output_dim"}, 4096),
                                         .bias = false,
                                         .out_activation = Activation::gelu});
  merger.tokens_after = merger.steps.size();
  if (!is_whole_model(*files.config)) return c;
  merger.add(MergerPlace::projection,
             MergerLinear{.dim = rows_of_tensor(files, "multi_modal_projector.linear_1.weight",
                                                Place::outside, text_width(files))});
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files, tower_config(*files.config)),
                  .layout = {kRows},
                  .ignored = {kWholeModelIgnored}};
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"llama4", "llama4_vision_model"})) return std::nullopt;
  return match_tower(files, "patch_embedding.linear.weight");
}

}  // namespace
}  // namespace hf_llama4

constinit const Family kHfLlama4Family{.name = "hf_llama4",
                                       .anchor = "patch_embedding.linear.weight",
                                       .library = "",
                                       .match = hf_llama4::match,
                                       .read = hf_llama4::read};

}  // namespace vit::internal
