// The image towers of Hugging Face's CLIP, MetaCLIP 2, MLCD, SigLIP and SigLIP 2 NaFlex, and those that other
// models have of these by other names, bare or inside the whole model, and their classifiers. CLIP and those
// that differ only in their text towers normalize the class token and project it, SigLIP pools by attention;
// NaFlex cuts patches itself and resamples its table for each image. Source: transformers, models/clip,
// metaclip_2, mlcd, altclip, chinese_clip, clipseg, git, kosmos2, siglip, siglip2, idefics2, idefics3,
// smolvlm, phi4_multimodal and janus.
#include <algorithm>
#include <cmath>
#include <iterator>

#include "vit/base/check.h"
#include "vit/weights/families/hf_clip.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_clip {
namespace {

constexpr Where kWhere{"hf_clip", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"vision_model.", "model.", ""};

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

constexpr Row kOwl[] = {{Part::norm_pre_gamma, "pre_layernorm.*"}};
static_assert(is_sound(kOwl));
constexpr Row kJanus[] = {{Part::proj_weight, "encoder.layers.{}.self_attn.projection_layer.*"}};
static_assert(is_sound(kJanus));

/// AltCLIP as release 5.24 saves the whole model.
constexpr Row kAltBlocks[] = {
    {Part::norm1_gamma, "encoder.layer.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "encoder.layer.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "encoder.layer.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.fc2.*"},
};
static_assert(is_sound(kAltBlocks));

/// NaFlex takes patches that are cut already, pixel by pixel.
constexpr Row kNaFlexPatch[] = {{Part::patch_weight, "embeddings.patch_embedding.weight", Form::pixels}};
static_assert(is_sound(kNaFlexPatch));

constexpr Ignored kIgnored[] = {
    {"embeddings.position_ids", "row numbers of the position table"},
    {"text_model.*", "text tower"},
    {"text_projection.*", "text tower"},
    {"logit_scale", "compares images with texts"},
    {"logit_bias", "compares images with texts"},
    {"connector.*", "between Granite Docling's tower and its language model, which is not implemented"},
};
constexpr Ignored kDecoder[] = {{"decoder.*", "decoder of masks, which is not implemented", Place::outside}};
constexpr Ignored kUnpooled[] = {{"post_layernorm.*", "of a vector that the language model does not read"},
                                 {"head.*", "of a vector that the language model does not read"}};
constexpr Ignored kUnreadNorm[] = {{"post_layernorm.*", "the classifier reads tokens before it"}};
constexpr Ignored kUnreadPool[] = {{"head.*", "the classifier reads the mean of the tokens"}};

constexpr HfDefaults kClip{.patch_size = 32, .norm_eps = 1e-5, .activation = Activation::quick_gelu};
constexpr HfDefaults kSiglip{.norm_eps = 1e-6, .activation = Activation::gelu_tanh};

constexpr HfDefaults with_sizes(HfDefaults of, std::size_t hidden, std::size_t layers, std::size_t heads,
                                std::size_t intermediate, std::size_t patch, std::size_t image = 224) {
  of.hidden_size = hidden, of.num_layers = layers, of.num_heads = heads;
  of.intermediate_size = intermediate, of.patch_size = patch, of.image_size = image;
  return of;
}

constexpr HfDefaults kMlcd =
    with_sizes({.norm_eps = 1e-5}, 1664, 48, 16, 8192, 14, 336);  // its activation is gelu
constexpr HfDefaults kIdefics3 = with_sizes(kSiglip, 1152, 12, 16, 3072, 32);
constexpr HfDefaults kNaFlex{
    .norm_eps = 1e-6, .activation = Activation::gelu_tanh, .own_override = kMaxPatchesOverride};

constexpr ClipType kTypes[] = {
    {"clip", ClipKind::clip, kClip},
    {"clip_vision_model", ClipKind::clip, kClip},
    {"metaclip_2", ClipKind::clip, kClip},
    {"metaclip_2_vision_model", ClipKind::clip, kClip},
    {"altclip", ClipKind::clip, kClip},
    {"altclip_vision_model", ClipKind::clip, kClip},
    {"chinese_clip", ClipKind::clip, kClip},
    {"chinese_clip_vision_model", ClipKind::clip, kClip},
    {"clipseg", ClipKind::clip, kClip},
    {"clipseg_vision_model", ClipKind::clip, kClip},
    {"git_vision_model", ClipKind::git, with_sizes(kClip, 768, 12, 12, 3072, 16)},
    {"kosmos_2_vision_model", ClipKind::clip, with_sizes(kClip, 1024, 24, 16, 4096, 14)},
    {"owlvit", ClipKind::owl, with_sizes(kClip, 768, 12, 12, 3072, 32, 768)},
    {"owlvit_vision_model", ClipKind::owl, with_sizes(kClip, 768, 12, 12, 3072, 32, 768)},
    {"owlv2", ClipKind::owl, with_sizes(kClip, 768, 12, 12, 3072, 16, 768)},
    {"owlv2_vision_model", ClipKind::owl, with_sizes(kClip, 768, 12, 12, 3072, 16, 768)},
    {"mlcd", ClipKind::mlcd, kMlcd},
    {"mlcd_vision_model", ClipKind::mlcd, kMlcd},
    {"siglip", ClipKind::siglip, kSiglip},
    {"siglip_vision_model", ClipKind::siglip, kSiglip},
    {"siglip2", ClipKind::naflex, kNaFlex},
    {"siglip2_vision_model", ClipKind::naflex, kNaFlex},
    {"cosmos3_edge_vision", ClipKind::naflex, with_sizes(kNaFlex, 1152, 27, 16, 4304, 16)},
    {"idefics2_vision", ClipKind::bucketed, with_sizes(kSiglip, 768, 12, 12, 3072, 32)},
    {"idefics3_vision", ClipKind::bucketed, kIdefics3},
    {"smolvlm_vision", ClipKind::bucketed, kIdefics3},
    {"granite_docling_vision", ClipKind::siglip, with_sizes(kSiglip, 768, 12, 12, 3072, 16, 512)},
    {"idefics_vision", ClipKind::clip, with_sizes({.norm_eps = 1e-5}, 768, 32, 16, 5120, 14)},
    {"phi4_multimodal_vision", ClipKind::bucketed, with_sizes(kSiglip, 1152, 27, 16, 4304, 14, 448)},
    {"janus_vision_model", ClipKind::janus, with_sizes({.norm_eps = 1e-6}, 1024, 24, 16, 4096, 16, 384)},
};

bool has_class_token(ClipKind kind) {
  return kind == ClipKind::clip || kind == ClipKind::git || kind == ClipKind::owl || kind == ClipKind::mlcd;
}
/// Models of an image tower and a text tower, into whose space the image is projected.
bool is_pair(const std::string& type) {
  return type == "clip" || type == "metaclip_2" || type == "altclip" || type == "chinese_clip" ||
         type == "owlvit" || type == "owlv2" || type == "clipseg";
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

void set_class_token(const Json& json, ClipKind kind, ModelConfig& c) {
  c.family = "clip";
  c.patch.bias = false;
  c.encoder.norm_pre = true;
  c.encoder.token_norm = kind == ClipKind::git;  // else last_hidden_state is not normalized, pooler_output is
  if (kind == ClipKind::git) {
    c.head.pooling = Pooling::none;
  } else {
    c.head.pooled_norm = true;
  }
  if (kind == ClipKind::mlcd) {
    set_mlcd(json, c);
  } else {
    add_hf_table(c, 1);
  }
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

void set_janus(const Json& json, ModelConfig& c) {
  VIT_CHECK(!json.find_bool("use_qk_norm").value_or(false), kWhere.with(ErrorKind::unsupported), json.where(),
            ".use_qk_norm is not implemented");
  const double hidden = static_cast<double>(c.embed_dim) * json.find_double("mlp_ratio").value_or(4.0);
  VIT_CHECK(hidden >= 1 && hidden <= 1e6, kWhere.with(ErrorKind::format), json.where(),
            ".mlp_ratio gives a hidden width of ", hidden);
  c.mlp.dim = static_cast<std::size_t>(hidden);
  c.attention.qkv_bias = json.find_bool("attention_bias").value_or(true);
  c.head.pooling = Pooling::first_token;
  c.head.pooled_norm = true;
}

void set_siglip(const Json& json, const ClipType& type, ModelConfig& c) {
  const ClipKind kind = type.kind;
  c.family = "siglip";
  c.tokens.class_token = false;
  if (kind == ClipKind::naflex) {
    set_naflex_table(json, c);
    c.patch.drops_remainder = false;
  } else {
    add_hf_table(c, 0, kind == ClipKind::bucketed ? TableResampling::bucketed : TableResampling::bicubic);
    if (kind == ClipKind::bucketed) c.position.reuse = TableReuse::equal_grid;
  }
  if (kind == ClipKind::janus) return set_janus(json, c);
  const bool has_head = json.find_bool("vision_use_head")
                            .value_or(type.type.starts_with("siglip") || type.type.starts_with("phi4"));
  c.head.pooling = has_head ? Pooling::attention : Pooling::none;
  c.head.attention_pool = {
      .num_heads = c.attention.num_heads, .mlp_dim = c.mlp.dim, .activation = c.mlp.activation};
}

ModelConfig read_config(const SourceFiles& files, const ClipType& type) {
  const Json json = hf_tower_part(*files.config, "vision");
  ModelConfig c = read_clip_tower(files, json, type);
  read_classifier(files, c);
  if (c.head.num_classes != 0) {
    c.head.pooled_norm = false;
  } else if (is_pair(hf_model_type(files)) || hf_class_contains(*files.config, "WithProjection")) {
    const bool is_altclip = hf_model_type(files) == "altclip";
    if (type.kind == ClipKind::clip || type.kind == ClipKind::owl)
      c.head.projection = {.dim = files.config->find_size("projection_dim").value_or(is_altclip ? 768 : 512)};
  }
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const ClipType& type = *find_clip_type(hf_model_type(files));
  ParsedModel out{.config = read_config(files, type),
                  .layout = clip_layout(type.kind),
                  .ignored = {kIgnored, kTextTower}};
  if (files.any_block_has("encoder.layer.{}.layer_norm1.weight")) out.layout.add(kAltBlocks);
  if (hf_model_type(files) == "clipseg") out.ignored.push_back(kDecoder);
  if (type.kind == ClipKind::naflex)
    out.notes.push_back(
        "every image keeps its aspect ratio and has its own grid of patches; nothing is padded");
  if (out.config.head.num_classes != 0) {
    if (has_class_token(type.kind)) {
      out.ignored.push_back(kUnreadNorm);
    } else {
      out.ignored.push_back(kUnreadPool);
    }
  }
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (find_clip_type(hf_model_type(files)) == nullptr) return std::nullopt;
  const auto found = match_anchor(files, "embeddings.patch_embedding.weight", kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name,
            ": no tensor embeddings.patch_embedding.weight, with or without the prefix vision_model.");
  return found;
}

}  // namespace
}  // namespace hf_clip

constinit const std::span<const Ignored> kClipIgnored = hf_clip::kIgnored;
constinit const std::span<const Ignored> kClipUnpooled = hf_clip::kUnpooled;

const ClipType* find_clip_type(std::string_view model_type) {
  const auto found = std::ranges::find(hf_clip::kTypes, model_type, &ClipType::type);
  return found == std::end(hf_clip::kTypes) ? nullptr : found;
}

ModelConfig read_clip_tower(const SourceFiles& files, const Json& json, const ClipType& type) {
  ModelConfig c = read_hf_sizes(files, json, type.defaults);
  if (type.type == "idefics_vision") c.embed_dim = json.find_size("embed_dim").value_or(768);
  if (hf_clip::has_class_token(type.kind)) {
    hf_clip::set_class_token(json, type.kind, c);
  } else {
    hf_clip::set_siglip(json, type, c);
  }
  return c;
}

Layout clip_layout(ClipKind kind) {
  Layout layout{hf_clip::kRows};
  if (kind == ClipKind::naflex) layout.add(hf_clip::kNaFlexPatch);
  if (kind == ClipKind::owl) layout.add(hf_clip::kOwl);
  if (kind == ClipKind::janus) layout.add(hf_clip::kJanus);
  return layout;
}

constinit const Family kHfClipFamily{.name = "hf_clip",
                                     .anchor = "embeddings.patch_embedding.weight",
                                     .prefixes = hf_clip::kPrefixes,
                                     .library = "",
                                     .head = "classifier",
                                     .head_place = Place::outside,
                                     .match = hf_clip::match,
                                     .read = hf_clip::read};

}  // namespace vit::internal
