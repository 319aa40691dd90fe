// The text towers of Hugging Face's CLIP, CLIPSeg, MetaCLIP 2, SigLIP, SigLIP 2, OWL-ViT and OWLv2, bare or
// inside the whole model. CLIP pools at the largest id where its end token is 2, as in all folders of
// OpenAI's, else at the first end token; MetaCLIP 2 at the first end token always; SigLIP at the last place,
// whatever is there; OWL at the largest id; SAM 3 gives a vector of each token. Source: transformers,
// models/clip, clipseg, metaclip_2, siglip, siglip2, owlvit and owlv2.
#include "vit/base/check.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_text {
namespace {

constexpr std::string_view kPrefixes[] = {"text_model.",
                                          "owlv2.text_model.",
                                          "owlvit.text_model.",
                                          "detector_model.text_encoder.text_model.",
                                          "text_encoder.text_model.",
                                          ""};
constexpr SizeRange kCount{1, std::size_t{1} << 26};

constexpr Row kRows[] = {
    {Part::token_table, "embeddings.token_embedding.weight"},
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm1_gamma, "encoder.layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "encoder.layers.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "final_layer_norm.*"},
};
constexpr Row kClipProjection[] = {at(Place::outside, {Part::projection_weight, "text_projection.weight"})};
constexpr Row kOwlProjection[] = {
    at(Place::outside, {Part::projection_weight, "owlv2.text_projection.weight"}),
    at(Place::outside, {Part::logit_scale, "owlv2.logit_scale"}),
    {Part::logit_bias, ""}};
constexpr Row kOldOwlProjection[] = {
    at(Place::outside, {Part::projection_weight, "owlvit.text_projection.weight"}),
    at(Place::outside, {Part::logit_scale, "owlvit.logit_scale"}),
    {Part::logit_bias, ""}};
constexpr Row kSam3Projection[] = {at(Place::outside, {Part::projection_weight, "text_projection.*"})};
constexpr Row kWholeSam3Projection[] = {
    at(Place::outside, {Part::projection_weight, "detector_model.text_projection.*"})};
constexpr Row kSiglipHead[] = {{Part::projection_weight, "head.*"}};
static_assert(is_sound(kRows) && is_sound(kClipProjection) && is_sound(kSiglipHead));
static_assert(is_sound(kOwlProjection) && is_sound(kOldOwlProjection));
static_assert(is_sound(kSam3Projection) && is_sound(kWholeSam3Projection));

constexpr Ignored kIgnored[] = {
    {"embeddings.position_ids", "row numbers of the position table"},
    {"vision_model.*", "image tower", Place::outside},
    {"visual_projection.*", "image tower", Place::outside},
};
constexpr Ignored kOwlIgnored[] = {
    {"owlv2.vision_model.*", "image tower", Place::outside},
    {"owlv2.visual_projection.weight", "image tower", Place::outside},
    {"owlvit.vision_model.*", "image tower", Place::outside},
    {"owlvit.visual_projection.weight", "image tower", Place::outside},
    {"box_head.*", "boxes", Place::outside},
    {"class_head.*", "boxes", Place::outside},
    {"objectness_head.*", "boxes", Place::outside},
    {"layer_norm.*", "boxes", Place::outside},
    {"box_bias", "boxes", Place::outside},
};

constexpr Ignored kSam3Ignored[] = {{"*", "image tower, detector or tracker", Place::outside}};

bool is_sam3(const std::string& type) {
  return type == "sam3" || type == "sam3_video";
}
bool is_owl(const std::string& type) {
  return type == "owlv2" || type == "owlvit";
}

bool is_siglip(const std::string& type) {
  return type.starts_with("siglip");
}
bool is_text_alone(const std::string& type) {
  return type.ends_with("_text_model");
}
bool is_known(const std::string& type) {
  if (is_owl(type) || is_sam3(type)) return true;
  for (const char* known : {"clip", "clipseg", "metaclip_2", "siglip", "siglip2"}) {
    if (type == known || type == std::string(known) + "_text_model") return true;
  }
  return false;
}

/// Where a model for videos has its detector.
Json detector_of(const Json& json) {
  return nested_config(json, {"detector_config"});
}

std::int32_t end_token_of(const Json& json) {
  return static_cast<std::int32_t>(json.find_size("eos_token_id", {0, kCount.max}).value_or(49407));
}

TextConfig read_sizes(const SourceFiles& files, const Json& json, bool siglip) {
  TextConfig c;
  c.library = "transformers";
  c.architecture = hf_architecture(files);
  c.width = json.find_size("hidden_size", kCount).value_or(siglip ? 768 : 512);
  c.depth = json.find_size("num_hidden_layers", kCount).value_or(12);
  c.num_heads = json.find_size("num_attention_heads", kCount).value_or(siglip ? 12 : 8);
  c.mlp_dim = json.find_size("intermediate_size", kCount).value_or(siglip ? 3072 : 2048);
  c.context_length = json.find_size("max_position_embeddings", kCount).value_or(siglip ? 64 : 77);
  c.vocabulary_size = json.find_size("vocab_size", kCount).value_or(siglip ? 32000 : 49408);
  c.norm_eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(siglip ? 1e-6 : 1e-5));
  c.activation = read_hf_activation(json, siglip ? Activation::gelu_tanh : Activation::quick_gelu);
  return c;
}

void read_clip(const SourceFiles& files, const Json& json, const std::string& type, ParsedText& out) {
  TextConfig& c = out.config;
  const bool metaclip = type.starts_with("metaclip_2");
  c.family = metaclip ? "metaclip2" : "clip";
  c.end_token = end_token_of(json);
  c.pooling = !metaclip && c.end_token == 2 ? TextPooling::largest_id : TextPooling::end_token;
  if (!is_text_alone(type) || hf_class_contains(*files.config, "WithProjection"))
    c.projection_dim = files.config->find_size("projection_dim", kCount).value_or(512);
  out.layout.add(kClipProjection);
  out.layout.add(kLogitScale);
}

void read_owl(const SourceFiles& files, const Json& json, const std::string& type, ParsedText& out) {
  TextConfig& c = out.config;
  c.family = type;
  c.context_length = json.find_size("max_position_embeddings", kCount).value_or(16);
  c.pooling = TextPooling::largest_id;
  c.end_token = end_token_of(json);
  c.projection_dim = files.config->find_size("projection_dim", kCount).value_or(512);
  if (files.tensors.find(files.root + "text_projection.weight") != nullptr) {  // saved without boxes
    out.layout.add(kClipProjection);
    out.layout.add(kLogitScale);
  } else if (type == "owlv2") {
    out.layout.add(kOwlProjection);
  } else {
    out.layout.add(kOldOwlProjection);
  }
  out.ignored.push_back(kOwlIgnored);
}

/// A vector of each token, by a projection of the model's own: that of the text model is stored and unused.
void read_sam3(const SourceFiles& files, const Json& json, ParsedText& out) {
  TextConfig& c = out.config;
  c.family = "sam3";
  c.width = json.find_size("hidden_size", kCount).value_or(1024);
  c.depth = json.find_size("num_hidden_layers", kCount).value_or(24);
  c.num_heads = json.find_size("num_attention_heads", kCount).value_or(16);
  c.mlp_dim = json.find_size("intermediate_size", kCount).value_or(4096);
  c.context_length = json.find_size("max_position_embeddings", kCount).value_or(32);
  c.vocabulary_size = json.find_size("vocab_size", kCount).value_or(49408);
  c.activation = read_hf_activation(json, Activation::gelu);
  c.pooling = TextPooling::none;
  const auto vision = detector_of(*files.config).find("vision_config");
  c.projection_dim = vision ? vision->find_size("fpn_hidden_size", kCount).value_or(256) : 256;
  c.projection_bias = true;
  if (out.match.prefix.ends_with("detector_model.text_encoder.text_model.")) {
    out.layout.add(kWholeSam3Projection);
  } else {
    out.layout.add(kSam3Projection);
  }
  out.ignored.push_back(kSam3Ignored);
}

void read_siglip(const Json& json, ParsedText& out) {
  TextConfig& c = out.config;
  c.family = "siglip";
  c.mask = TextMask::none;
  c.pooling = TextPooling::last;
  c.projection_dim = json.find_size("projection_size", kCount).value_or(c.width);
  c.projection_bias = true;
  out.layout.add(kSiglipHead);
}

std::optional<ParsedText> read(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (!is_known(type)) return std::nullopt;
  const auto match = match_anchor(files, "embeddings.token_embedding.weight", kPrefixes);
  if (!match) return std::nullopt;
  const Json json = hf_tower_part(detector_of(*files.config), "text");
  const bool siglip = is_siglip(type);
  ParsedText out{
      .config = read_sizes(files, json, siglip), .match = *match, .layout = {kRows}, .ignored = {kIgnored}};
  if (siglip) {
    read_siglip(json, out);
    out.layout.add(kLogitScaleAndBias);
  } else if (is_sam3(type)) {
    read_sam3(files, json, out);
  } else if (is_owl(type)) {
    read_owl(files, json, type, out);
  } else {
    read_clip(files, json, type, out);
  }
  if (!is_text_alone(type) && !is_sam3(type))
    out.config.score = {.kind = siglip ? TextScore::Kind::sigmoid : TextScore::Kind::softmax};
  return out;
}

}  // namespace
}  // namespace hf_text

constinit const TextFamily kHfTextFamily{.name = "hf_text", .read = hf_text::read};

}  // namespace vit::internal
