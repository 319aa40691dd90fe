// Gemma 4's vision tower in the files of transformers, by itself or inside the whole model. Pixels are in [0,
// 1]; the tower itself takes 2 (x - 0.5). Each block has four norms, queries, keys and values are normalized,
// and their products are not scaled; cells of 3 x 3 tokens are averaged, which the library calls
// last_hidden_state. Source: transformers, models/gemma4.
#include <algorithm>
#include <cmath>

#include "vit/weights/families/bounds.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_gemma4 {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embedder.input_proj.weight", Form::pixels},
    {Part::position_table, "patch_embedder.position_embedding_table"},
    {Part::norm1_gamma, "encoder.layers.{}.input_layernorm.*"},
    halved_by_axis(joined(Part::qkv_weight, {0, 3}, "encoder.layers.{}.self_attn.q_proj.linear.*")),
    halved_by_axis(joined(Part::qkv_weight, {1, 3}, "encoder.layers.{}.self_attn.k_proj.linear.*")),
    joined(Part::qkv_weight, {2, 3}, "encoder.layers.{}.self_attn.v_proj.linear.*"),
    halved_by_axis({Part::q_norm_gamma, "encoder.layers.{}.self_attn.q_norm.*"}),
    halved_by_axis({Part::k_norm_gamma, "encoder.layers.{}.self_attn.k_norm.*"}),
    {Part::proj_weight, "encoder.layers.{}.self_attn.o_proj.linear.*"},
    {Part::branch_norm1_gamma, "encoder.layers.{}.post_attention_layernorm.*"},
    {Part::norm2_gamma, "encoder.layers.{}.pre_feedforward_layernorm.*"},
    {Part::gate_weight, "encoder.layers.{}.mlp.gate_proj.linear.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.up_proj.linear.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.down_proj.linear.*"},
    {Part::branch_norm2_gamma, "encoder.layers.{}.post_feedforward_layernorm.*"},
    {Part::merger_shift, "std_bias"},
    {Part::merger_scale, "std_scale"},
    at(Place::outside, {Part::merger_projection_weight, "embed_vision.embedding_projection.*"}),
};
static_assert(is_complete(kRows));

constexpr Row kBounds[] = {
    VIT_BOUNDS(Part::q_clip, "encoder.layers.{}.self_attn.q_proj"),
    VIT_BOUNDS(Part::k_clip, "encoder.layers.{}.self_attn.k_proj"),
    VIT_BOUNDS(Part::v_clip, "encoder.layers.{}.self_attn.v_proj"),
    VIT_BOUNDS(Part::proj_clip, "encoder.layers.{}.self_attn.o_proj"),
    VIT_BOUNDS(Part::gate_clip, "encoder.layers.{}.mlp.gate_proj"),
    VIT_BOUNDS(Part::fc1_clip, "encoder.layers.{}.mlp.up_proj"),
    VIT_BOUNDS(Part::fc2_clip, "encoder.layers.{}.mlp.down_proj"),
};
static_assert(is_sound(kBounds));

void set_merger(const SourceFiles& files, const Json& json, ModelConfig& c) {
  MergerConfig& merger = c.merger.emplace();
  merger.cells = {.size = find_tower_size(json, {"pooling_kernel_size"}, 3),
                  .rule = CellRule::mean,
                  .scale = static_cast<float>(std::sqrt(static_cast<double>(c.embed_dim)))};
  if (json.find_bool("standardize").value_or(false)) merger.add(MergerPlace::standardize, MergerAffine{});
  merger.tokens_after = merger.steps.size();
  if (!is_whole_model(*files.config)) return;
  merger.add(MergerPlace::projection_norm,
             MergerNorm{.norm = {.kind = NormKind::rms, .eps = c.encoder.norm.eps}, .has_weights = false});
  merger.add(MergerPlace::projection,
             MergerLinear{.dim = rows_of_tensor(files, "embed_vision.embedding_projection.weight",
                                                Place::outside, text_width(files))});
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  const TowerDefaults defaults{.embed_dim = 768,
                               .depth = 16,
                               .num_heads = 12,
                               .mlp_dim = 3072,
                               .patch_size = 16,
                               .norm_eps = json.find_double("rms_norm_eps").value_or(1e-6)};
  const ModelConfig sizes = read_tower(files, json, defaults);  // refuses other channels and overrides
  ModelConfig c = gemma4_config(json, defaults);
  c.architecture = sizes.architecture;
  c.library = sizes.library;
  c.attention.head_dim = find_tower_size(json, {"head_dim"}, 64);
  c.encoder.clipped = json.find_bool("use_clipped_linears").value_or(false);
  set_merger(files, json, c);
  // about as many visual tokens as the processor makes: 16 x 16 of them
  const std::size_t cells = std::min<std::size_t>(
      16,
      std::max<std::size_t>(c.position.added_grid.rows / std::max<std::size_t>(c.merger->cells.size, 1), 1));
  c.image.height = c.image.width = cells * c.merger->cells.size * c.patch.size;
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files, tower_config(*files.config)),
                  .layout = {kRows, kBounds},
                  .ignored = {kWholeModelIgnored}};
  if (!out.config.encoder.clipped) out.ignored.push_back(kUnusedBounds);
  out.notes.push_back(
      "patches are read pixel by pixel, as in transformers; timm 1.0.31 reads the same weights channel by "
      "channel, and its numbers differ");
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"gemma4", "gemma4_vision"})) return std::nullopt;
  return match_tower(files, "patch_embedder.input_proj.weight");
}

}  // namespace
}  // namespace hf_gemma4

ModelConfig gemma4_config(const Json& json, const TowerDefaults& defaults) {
  ModelConfig c;
  c.family = "gemma4";
  c.embed_dim = find_tower_size(json, {"hidden_size", "embed_dim"}, defaults.embed_dim);
  c.encoder.depth = find_tower_size(json, {"num_hidden_layers", "depth"}, defaults.depth);
  c.attention.num_heads = find_tower_size(json, {"num_attention_heads", "num_heads"}, defaults.num_heads);
  c.mlp.dim = find_tower_size(json, {"intermediate_size"}, defaults.mlp_dim);
  c.patch.size = find_tower_size(json, {"patch_size"}, defaults.patch_size);
  c.encoder.norm.eps = static_cast<float>(json.find_double("norm_eps").value_or(defaults.norm_eps));
  c.mlp.activation = Activation::gelu_tanh;
  if (const auto name = json.find("hidden_activation")) {
    c.mlp.activation = read_choice<Activation>(*name, {{"gelu_pytorch_tanh", Activation::gelu_tanh},
                                                       {"gelu", Activation::gelu},
                                                       {"silu", Activation::silu}});
  }
  const std::size_t key_heads =
      find_tower_size(json, {"num_key_value_heads", "num_kv_heads"}, c.attention.num_heads);
  if (key_heads != c.attention.num_heads) c.attention.num_key_heads = key_heads;
  c.encoder.norm.kind = NormKind::rms;
  c.patch.bias = c.mlp.bias = c.attention.qkv_bias = c.attention.proj_bias =
      false;  // whatever attention_bias says
  c.attention.qk_norm = NormKind::rms;
  c.attention.value_norm = true;
  c.encoder.block_norms = BlockNorms::before_and_after;
  c.attention.scale = 1.0;
  c.patch.pixels = PixelRule::centered;
  c.mlp.kind = MlpKind::gated;
  c.tokens.class_token = false;
  c.head.pooling = Pooling::none;
  c.encoder.token_norm = false;
  add_tower_rope(json, c, 100.0);
  c.position.axis_order = AxisOrder::x_then_y;
  c.position.added = AddedTable::columns_and_rows;
  const std::size_t length = find_tower_size(json, {"position_embedding_size"}, 10240);
  c.position.added_grid = {length, length};
  c.image.height = c.image.width = 768;
  return c;
}

constinit const Family kHfGemma4Family{.name = "hf_gemma4",
                                       .anchor = "patch_embedder.input_proj.weight",
                                       .library = "",
                                       .match = hf_gemma4::match,
                                       .read = hf_gemma4::read};

}  // namespace vit::internal
