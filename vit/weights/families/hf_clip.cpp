// The image towers of Hugging Face's CLIP, MetaCLIP 2, MLCD, SigLIP and SigLIP 2 NaFlex, bare or inside the
// whole model, and their classifiers. CLIP and MetaCLIP 2, which differ only in their text towers, normalize
// the class token and project it, SigLIP pools by attention; NaFlex cuts patches itself and resamples its
// table for each image. Source: transformers, models/clip, metaclip_2, siglip and siglip2.
#include <cmath>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_clip {
namespace {

constexpr Where kWhere{"hf_clip", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"vision_model.", ""};

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embedding.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embedding.bias"},
    {Part::class_token, "embeddings.class_embedding"},
    {Part::class_angles, "class_pos_emb"},  // MLCD
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm_pre_gamma, "pre_layrnorm.*"},
    {Part::norm1_gamma, "encoder.layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "encoder.layers.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "post_layernorm.*"},  // SigLIP's on the tokens, CLIP's on what was pooled
    {Part::pooled_norm_gamma, "post_layernorm.*"},
    {Part::pool_probe, "head.probe"},
    cut(Part::pool_q_weight, "head.attention.in_proj_*", {0, 3}),
    joined(Part::pool_kv_weight, {0, 2}, "head.attention.in_proj_weight", {1, 3}),
    joined(Part::pool_kv_weight, {1, 2}, "head.attention.in_proj_weight", {2, 3}),
    joined(Part::pool_kv_bias, {0, 2}, "head.attention.in_proj_bias", {1, 3}),
    joined(Part::pool_kv_bias, {1, 2}, "head.attention.in_proj_bias", {2, 3}),
    {Part::pool_proj_weight, "head.attention.out_proj.*"},
    {Part::pool_norm_gamma, "head.layernorm.*"},
    {Part::pool_fc1_weight, "head.mlp.fc1.*"},
    {Part::pool_fc2_weight, "head.mlp.fc2.*"},
    at(Place::outside, {Part::projection_weight, "visual_projection.*"}),
    at(Place::outside, {Part::head_weight, "classifier.*"}),
};
static_assert(is_complete(kRows));

/// NaFlex takes patches that are cut already, pixel by pixel.
constexpr Row kNaFlexPatch[] = {{Part::patch_weight, "embeddings.patch_embedding.weight", Form::pixels}};
static_assert(is_sound(kNaFlexPatch));

constexpr Ignored kIgnored[] = {
    {"embeddings.position_ids", "row numbers of the position table"},
    {"text_model.*", "text tower"},
    {"text_projection.*", "text tower"},
    {"logit_scale", "compares images with texts"},
    {"logit_bias", "compares images with texts"},
};
constexpr Ignored kUnreadNorm[] = {{"post_layernorm.*", "the classifier reads tokens before it"}};
constexpr Ignored kUnreadPool[] = {{"head.*", "the classifier reads the mean of the tokens"}};

bool is_whole_clip(const std::string& type) {
  return type == "clip" || type == "metaclip_2";
}
bool is_mlcd(const std::string& type) {
  return type == "mlcd_vision_model" || type == "mlcd";
}
bool is_clip(const std::string& type) {
  return is_whole_clip(type) || is_mlcd(type) || type == "clip_vision_model" ||
         type == "metaclip_2_vision_model";
}
bool is_naflex(const std::string& type) {
  return type == "siglip2" || type == "siglip2_vision_model";
}
bool is_siglip(const std::string& type) {
  return type == "siglip" || type == "siglip_vision_model" || is_naflex(type);
}

/// The image tower's part of config.json.
Json vision_config(const Json& json) {
  for (const char* key : {"vision_config_dict", "vision_config"}) {  // where both are given, the first wins
    if (const auto nested = json.find(key); nested && nested->is_object()) return *nested;
  }
  return json;
}

void read_classifier(const SourceFiles& files, ModelConfig& c) {
  c.head.num_classes = count_hf_classes(files, "classifier");
  if (c.head.num_classes == 0) return;
  c.head.labels = read_hf_labels(*files.config, c.head.num_classes);
  c.head.pooling = Pooling::patch_mean;
}

/// CLIP's tower with rotary positions instead of a table; its class token is rotated by angles of its own.
void set_mlcd(const Json& json, ModelConfig& c) {
  c.family = "mlcd";
  add_tower_rope(json, c);
  c.position.class_angles = true;
}

ModelConfig read_clip(const SourceFiles& files) {
  const Json& json = *files.config;
  const bool mlcd = is_mlcd(hf_model_type(files));
  HfDefaults defaults{.patch_size = 32, .norm_eps = 1e-5, .activation = Activation::quick_gelu};
  if (mlcd) {
    defaults = {.hidden_size = 1664,
                .num_layers = 48,
                .num_heads = 16,
                .intermediate_size = 8192,
                .patch_size = 14,
                .image_size = 336,
                .norm_eps = 1e-5};
  }
  ModelConfig c = read_hf_sizes(files, vision_config(json), defaults);
  c.family = "clip";
  c.patch.bias = false;
  c.encoder.norm_pre = true;
  c.encoder.token_norm = false;  // last_hidden_state is not normalized, pooler_output is
  c.head.pooled_norm = true;
  if (mlcd) {
    set_mlcd(vision_config(json), c);
  } else {
    add_hf_table(c, 1);
  }
  read_classifier(files, c);
  if (c.head.num_classes != 0) {
    c.head.pooled_norm = false;
  } else if (is_whole_clip(hf_model_type(files)) || hf_class_contains(json, "WithProjection")) {
    c.head.projection = {.dim = json.find_size("projection_dim").value_or(512)};
  }
  return c;
}

/// The native image is the one that has the table's own grid.
void set_naflex_table(const Json& json, ModelConfig& c) {
  const std::size_t rows = json.find_size("num_patches", {1, 1'000'000}).value_or(256);
  const auto edge = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(rows))));
  VIT_CHECK(edge * edge == rows, kWhere.with(ErrorKind::format), json.where(),
            ": num_patches must be a square, found ", rows);
  c.image.height = c.image.width = edge * c.patch.size;
  add_hf_table(c, 0, TableResampling::bilinear_antialias);
  c.position.reuse = TableReuse::equal_grid;
}

ModelConfig read_siglip(const SourceFiles& files) {
  const Json json = vision_config(*files.config);
  const bool naflex = is_naflex(hf_model_type(files));
  ModelConfig c = read_hf_sizes(files, json,
                                {.norm_eps = 1e-6,
                                 .activation = Activation::gelu_tanh,
                                 .own_override = naflex ? kMaxPatchesOverride : ""});
  c.family = "siglip";
  c.tokens.class_token = false;
  if (naflex) {
    set_naflex_table(json, c);
  } else {
    add_hf_table(c, 0);
  }
  c.head.pooling = json.find_bool("vision_use_head").value_or(true) ? Pooling::attention : Pooling::none;
  c.head.attention_pool = {
      .num_heads = c.attention.num_heads, .mlp_dim = c.mlp.dim, .activation = c.mlp.activation};
  read_classifier(files, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const bool clip = is_clip(hf_model_type(files));
  ParsedModel out{.config = clip ? read_clip(files) : read_siglip(files),
                  .layout = {kRows},
                  .ignored = {kIgnored, kTextTower}};
  if (is_naflex(hf_model_type(files))) {
    out.layout.add(kNaFlexPatch);
    out.notes.push_back(
        "every image keeps its aspect ratio and has its own grid of patches; nothing is padded");
  }
  if (out.config.head.num_classes != 0) {
    if (clip) {
      out.ignored.push_back(kUnreadNorm);
    } else {
      out.ignored.push_back(kUnreadPool);
    }
  }
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (!is_clip(type) && !is_siglip(type)) return std::nullopt;
  const auto found = match_anchor(files, "embeddings.patch_embedding.weight", kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name,
            ": no tensor embeddings.patch_embedding.weight, with or without the prefix vision_model.");
  return found;
}

}  // namespace
}  // namespace hf_clip

constinit const Family kHfClipFamily{.name = "hf_clip",
                                     .anchor = "embeddings.patch_embedding.weight",
                                     .prefixes = hf_clip::kPrefixes,
                                     .library = "",
                                     .head = "classifier",
                                     .head_place = Place::outside,
                                     .match = hf_clip::match,
                                     .read = hf_clip::read};

}  // namespace vit::internal
