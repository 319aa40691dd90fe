// The image encoders of Pix2Struct and Kosmos-2.5, by themselves or in the whole model: patches of any grid,
// a row of a table for the column of a patch and one for its row, counted from 1; RMSNorm, gated MLPs, no
// biases. Pix2Struct's scores are not scaled. Source: transformers, models/pix2struct and kosmos2_5.
#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_pix2struct {
namespace {

constexpr Where kWhere{"hf_pix2struct", ErrorKind::format};

constexpr Row table(Share part, std::string_view source) {
  Row row = joined(Part::position_table, part, source);
  row.form = Form::after_first;
  return row;
}

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_projection.weight", Form::pixels},
    {Part::patch_bias, "embeddings.patch_projection.bias"},
    table({0, 2}, "embeddings.column_embedder.weight"),
    table({1, 2}, "embeddings.row_embedder.weight"),
    {Part::norm1_gamma, "encoder.layer.{}.pre_attention_layer_norm.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.query.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.key.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.value.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.*"},
    {Part::norm2_gamma, "encoder.layer.{}.pre_mlp_layer_norm.*"},
    {Part::gate_weight, "encoder.layer.{}.mlp.wi_0.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.wi_1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.wo.*"},
    {Part::norm_gamma, "layernorm.*"},
};
static_assert(is_complete(kRows));

constexpr HfDefaults kDefaults{
    .intermediate_size = 2048, .norm_eps = 1e-6, .activation = Activation::gelu_tanh};
constexpr HfDefaults kKosmos{.hidden_size = 1536,
                             .num_layers = 18,
                             .num_heads = 24,
                             .intermediate_size = 3968,
                             .norm_eps = 1e-6,
                             .activation = Activation::gelu_tanh};

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  const bool kosmos = has_model_type(files, {"kosmos-2.5", "kosmos_2_5_vision_model"});
  ModelConfig c = read_hf_sizes(files, json, kosmos ? kKosmos : kDefaults);
  c.family = kosmos ? "kosmos-2.5" : "pix2struct";
  c.mlp.activation = read_hf_activation(json, Activation::gelu_tanh, "dense_act_fn");
  c.mlp.dim = find_tower_size(json, {"d_ff", "intermediate_size"}, c.mlp.dim);
  const std::size_t values = find_tower_size(json, {"patch_embed_hidden_size"}, 768);
  c.patch.size = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(values) / 3.0)));
  VIT_CHECK(c.patch.size != 0 && 3 * c.patch.size * c.patch.size == values, kWhere, json.where(),
            ".patch_embed_hidden_size ", values, " is not that of square patches of three channels");
  c.attention.head_dim = find_tower_size(json, {"d_kv", "head_dim"}, 64);
  if (c.attention.head_dim * c.attention.num_heads == c.embed_dim) c.attention.head_dim = 0;
  if (!kosmos) c.attention.scale = 1.0;
  c.attention.qkv_bias = c.attention.proj_bias = c.mlp.bias = false;
  c.encoder.norm.kind = NormKind::rms;
  c.mlp.kind = MlpKind::gated;
  c.tokens.class_token = false;
  c.head.pooling = Pooling::none;
  const std::size_t rows = find_tower_size(json, {"seq_len", "max_num_patches"}, 4096);
  VIT_CHECK(rows > 1, kWhere, json.where(), ": tables of ", rows, " rows have none for a patch");
  c.position.added = AddedTable::columns_and_rows;
  c.position.added_grid = {rows - 1, rows - 1};
  const auto edge = static_cast<std::size_t>(std::sqrt(static_cast<double>(rows)));
  c.image.height = c.image.width = std::clamp<std::size_t>(edge, 1, rows - 1) * c.patch.size;
  ParsedModel out{.config = std::move(c), .layout = {kRows}, .ignored = {kWholeModelIgnored}};
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files,
                      {"pix2struct", "pix2struct_vision_model", "kosmos-2.5", "kosmos_2_5_vision_model"}))
    return std::nullopt;
  return match_tower(files, "embeddings.patch_projection.weight");
}

}  // namespace
}  // namespace hf_pix2struct

constinit const Family kHfPix2StructFamily{.name = "hf_pix2struct",
                                           .anchor = "embeddings.patch_projection.weight",
                                           .library = "",
                                           .match = hf_pix2struct::match,
                                           .read = hf_pix2struct::read};

}  // namespace vit::internal
