// Encoders of transformers that are ViTs but for the names of their tensors: the towers of Molmo 2 and of
// GLM-Image, and MGP-STR, which reads text in scenes. Source: transformers, models/molmo2, glm_image and
// mgp_str.
#include <cmath>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_renamed {
namespace {

constexpr Where kWhere{"hf_renamed", ErrorKind::format};

constexpr Row kMolmo[] = {
    {Part::patch_weight, "patch_embedding.weight", Form::pixels},
    {Part::patch_bias, "patch_embedding.bias"},
    {Part::position_table, "positional_embedding"},
    {Part::norm1_gamma, "layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "layers.{}.self_attn.o_proj.*"},
    {Part::norm2_gamma, "layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
};
constexpr Row kGlmImage[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
};
constexpr Row kMgpStr[] = {
    {Part::patch_weight, "embeddings.proj.weight", Form::convolution},
    {Part::patch_bias, "embeddings.proj.bias"},
    {Part::class_token, "embeddings.cls_token"},
    {Part::position_table, "embeddings.pos_embed"},
    {Part::norm1_gamma, "encoder.blocks.{}.norm1.*"},
    {Part::qkv_weight, "encoder.blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "encoder.blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "encoder.blocks.{}.norm2.*"},
    {Part::fc1_weight, "encoder.blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.blocks.{}.mlp.fc2.*"},
};
static_assert(is_complete(kMolmo) && is_complete(kGlmImage) && is_complete(kMgpStr));

/// What the three have in common: no final norm.
void finish(ModelConfig& c, const char* family, Pooling pooling) {
  c.family = family;
  c.encoder.token_norm = false;
  c.head.pooling = pooling;
}

void set_molmo(const Json& json, ModelConfig& c) {
  c.tokens.class_token = false;
  c.image.fixed_size = true;
  if (const std::size_t width = find_tower_size(json, {"head_dim"}, 72);
      width * c.attention.num_heads != c.embed_dim)
    c.attention.head_dim = width;
  const std::size_t heads = find_tower_size(json, {"num_key_value_heads"}, 16);
  if (heads != c.attention.num_heads) c.attention.num_key_heads = heads;
  c.attention.qkv_bias = c.attention.proj_bias = json.find_bool("attention_bias").value_or(true);
  add_hf_table(c, 0);
  finish(c, "molmo2", Pooling::patch_mean);
}

void set_glm_image(const SourceFiles& files, const Json& json, ModelConfig& c) {
  c.encoder.depth = find_tower_size(json, {"depth"}, 40);
  c.attention.num_heads = find_tower_size(json, {"num_heads"}, 16);
  c.tokens.class_token = false;
  c.attention.qkv_bias = c.attention.proj_bias = json.find_bool("attention_bias").value_or(true);
  add_hf_table(c, 0, TableResampling::bilinear);
  c.position.reuse = TableReuse::equal_grid;
  VIT_CHECK(find_tower_size(json, {"spatial_merge_size"}, 1) == 1, kWhere.with(ErrorKind::unsupported),
            files.config_name(), ": a spatial_merge_size other than 1 is not implemented for GLM-Image");
  finish(c, "glm-image", Pooling::none);
}

void set_mgp_str(const Json& json, ModelConfig& c) {
  VIT_CHECK(!json.find_bool("distilled").value_or(false), kWhere.with(ErrorKind::unsupported), json.where(),
            ".distilled is not implemented");
  const double hidden = static_cast<double>(c.embed_dim) * json.find_double("mlp_ratio").value_or(4.0);
  VIT_CHECK(hidden >= 1 && hidden <= 1e6, kWhere, json.where(), ".mlp_ratio gives a hidden width of ",
            hidden);
  c.mlp.dim = static_cast<std::size_t>(hidden);
  if (!json.find("image_size")) c.image.height = 32, c.image.width = 128;
  c.image.fixed_size = true;
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  add_hf_table(c, 1);
  finish(c, "mgp-str", Pooling::none);
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  const bool molmo = has_model_type(files, {"molmo2", "molmo2_vision"});
  const bool glm = has_model_type(files, {"glm_image", "glm_image_vision"});
  const HfDefaults defaults = molmo ? HfDefaults{.hidden_size = 1152,
                                                 .num_layers = 25,
                                                 .num_heads = 16,
                                                 .intermediate_size = 4304,
                                                 .patch_size = 14,
                                                 .image_size = 378,
                                                 .norm_eps = 1e-6,
                                                 .activation = Activation::gelu_tanh}
                              : glm ? HfDefaults{.hidden_size = 1536,
                                                 .num_heads = 16,
                                                 .intermediate_size = 6144,
                                                 .image_size = 2048,
                                                 .norm_eps = 1e-6}
                                    : HfDefaults{.patch_size = 4, .norm_eps = 1e-5};
  std::span<const Row> rows = kMgpStr;
  if (molmo) rows = kMolmo;
  if (glm) rows = kGlmImage;
  ParsedModel out{
      .config = read_hf_sizes(files, json, defaults), .layout = {rows}, .ignored = {kWholeModelIgnored}};
  if (molmo) {
    set_molmo(json, out.config);
  } else if (glm) {
    set_glm_image(files, json, out.config);
  } else {
    set_mgp_str(json, out.config);
  }
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (has_model_type(files, {"molmo2", "molmo2_vision"})) {
    constexpr std::string_view kTowers[] = {"model.vision_tower.", "model.vision_backbone.image_vit.", ""};
    return match_tower(files, "patch_embedding.weight", kTowers);
  }
  if (has_model_type(files, {"glm_image", "glm_image_vision"}))
    return match_tower(files, "patch_embed.proj.weight");
  if (!has_model_type(files, {"mgp-str"})) return std::nullopt;
  constexpr std::string_view kModels[] = {"mgp_str.", ""};
  return match_tower(files, "embeddings.proj.weight", kModels);
}

}  // namespace
}  // namespace hf_renamed

constinit const Family kHfRenamedFamily{.name = "hf_renamed",
                                        .anchor = "embeddings.proj.weight",
                                        .library = "",
                                        .match = hf_renamed::match,
                                        .read = hf_renamed::read};

}  // namespace vit::internal
