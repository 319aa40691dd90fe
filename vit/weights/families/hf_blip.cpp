// The image towers of BLIP, BLIP-2 and InstructBLIP, bare or inside the whole model: ViTs of one joined
// projection to queries, keys and values. The final norm is applied twice to the class token. Source:
// transformers, models/blip, blip_2, instructblip and instructblipvideo.
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_blip {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embedding.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embedding.bias"},
    {Part::class_token, "embeddings.class_embedding"},
    {Part::position_table, "embeddings.position_embedding"},
    {Part::norm1_gamma, "encoder.layers.{}.layer_norm1.*"},
    {Part::qkv_weight, "encoder.layers.{}.self_attn.qkv.*"},
    {Part::proj_weight, "encoder.layers.{}.self_attn.projection.*"},
    {Part::norm2_gamma, "encoder.layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "post_layernorm.*"},
    {Part::pooled_norm_gamma, "post_layernorm.*"},
    at(Place::outside, {Part::projection_weight, "visual_projection.*"}),
};
static_assert(is_complete(kRows));

constexpr HfDefaults kFirst{.image_size = 384, .norm_eps = 1e-5};
constexpr HfDefaults kSecond{.hidden_size = 1408,
                             .num_layers = 39,
                             .num_heads = 16,
                             .intermediate_size = 6144,
                             .patch_size = 14,
                             .norm_eps = 1e-6};

bool is_first(const SourceFiles& files) {
  return has_model_type(files, {"blip", "blip_vision_model"});
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ModelConfig c = read_hf_sizes(files, json, is_first(files) ? kFirst : kSecond);
  c.family = "blip";
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  add_hf_table(c, 1);
  c.head.pooled_norm = true;
  if (files.find("visual_projection.weight", Place::outside) != nullptr)
    c.head.projection = {.dim = rows_of_tensor(files, "visual_projection.weight", Place::outside, 512)};
  ParsedModel out{.config = std::move(c), .layout = {kRows}, .ignored = {kWholeModelIgnored}};
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  const bool is_second =
      has_model_type(files, {"blip-2", "blip_2_vision_model", "instructblip", "instructblip_vision_model",
                             "instructblipvideo", "instructblipvideo_vision_model"});
  if (!is_first(files) && !is_second) return std::nullopt;
  return match_tower(files, "embeddings.patch_embedding.weight");
}

}  // namespace
}  // namespace hf_blip

constinit const Family kHfBlipFamily{.name = "hf_blip",
                                     .anchor = "embeddings.patch_embedding.weight",
                                     .library = "",
                                     .match = hf_blip::match,
                                     .read = hf_blip::read};

}  // namespace vit::internal
