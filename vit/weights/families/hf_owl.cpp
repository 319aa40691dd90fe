// Hugging Face's OWL-ViT and OWLv2: CLIP's image tower, each of whose patches becomes a box and a vector that
// is compared with texts. The text tower is read by hf_text.cpp. Source: transformers, models/owlvit, owlv2.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_owl {
namespace {

constexpr Where kWhere{"hf_owl", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"owlv2.vision_model.", "owlvit.vision_model."};
constexpr std::string_view kAnchor = "embeddings.patch_embedding.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embedding.weight", Form::convolution},
    {Part::class_token, "embeddings.class_embedding"},
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm_pre_gamma, "pre_layernorm.*"},
    {Part::norm1_gamma, "encoder.layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "encoder.layers.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
    {Part::pooled_norm_gamma, "post_layernorm.*"},
};
static_assert(is_complete(kRows));
constexpr Row kProjection[] = {
    at(Place::outside, {Part::projection_weight, "owlv2.visual_projection.weight"})};
constexpr Row kOldProjection[] = {
    at(Place::outside, {Part::projection_weight, "owlvit.visual_projection.weight"})};
static_assert(is_sound(kProjection) && is_sound(kOldProjection));

constexpr HeadRow kHead[] = {
    {"norm.*", "post_layernorm.*", 1, 0, Place::tower},
    {"times_norm.*", "layer_norm.*"},
    {"boxes.{}.*", "box_head.dense{}.*"},
    {"vectors.*", "class_head.dense0.*"},
    {"shift.*", "class_head.logit_shift.*"},
    {"scale.*", "class_head.logit_scale.*"},
    {"objectness.{}.*", "objectness_head.dense{}.*"},
};
constexpr Ignored kIgnored[] = {
    {"embeddings.position_ids", "row numbers of the position table"},
    {"owlv2.text_model.*", "text tower", Place::outside},
    {"owlv2.text_projection.weight", "text tower", Place::outside},
    {"owlv2.logit_scale", "compares images with texts", Place::outside},
    {"owlvit.text_model.*", "text tower", Place::outside},
    {"owlvit.text_projection.weight", "text tower", Place::outside},
    {"owlvit.logit_scale", "compares images with texts", Place::outside},
    {"box_bias", "places of the patches", Place::outside},
};

bool is_second(const SourceFiles& files) {
  return hf_model_type(files) == "owlv2";
}

ModelConfig read_config(const SourceFiles& files) {
  const bool second = is_second(files);
  ModelConfig c = read_hf_sizes(files, hf_tower_part(*files.config, "vision"),
                                {.patch_size = second ? 16u : 32u,
                                 .image_size = 768,
                                 .norm_eps = 1e-5,
                                 .activation = Activation::quick_gelu});
  c.family = hf_model_type(files);
  c.patch.bias = false;
  c.encoder.norm_pre = true;
  c.encoder.token_norm = false;
  c.head.pooled_norm = true;
  c.head.projection = {.dim = files.config->find_size("projection_dim").value_or(512)};
  add_hf_table(c, 1);
  return c;
}

DenseConfig read_head(const SourceFiles& files, const ModelConfig& backbone) {
  const TensorEntry* const vectors = files.find("class_head.dense0.bias", Place::outside);
  const std::size_t width = vectors != nullptr && !vectors->shape.empty()
                                ? vectors->shape[0]
                                : hf_tower_part(*files.config, "text").find_size("hidden_size").value_or(512);
  DenseBranch branch{
      .name = "",
      .taps = {backbone.encoder.depth - 1},
      .tap_norm = true,
      .tap_norm_eps = backbone.encoder.norm.eps,
      .layers = BoxConfig{.tokens = BoxTokens::patches,
                          .activation = Activation::gelu,
                          .times_class_token = true,
                          .times_norm_eps = backbone.encoder.norm.eps,
                          .from_patch = true},
      .outputs = {{.meaning = Output::boxes, .channels = 4, .finish = MapFinish::none},
                  {.meaning = Output::box_vectors, .channels = width, .finish = MapFinish::none},
                  {.meaning = Output::box_terms, .channels = 2, .finish = MapFinish::none}}};
  const bool second = is_second(files);
  if (second)
    branch.outputs.push_back({.meaning = Output::objectness, .channels = 1, .finish = MapFinish::none});
  DenseConfig out{.family = backbone.family, .branches = {std::move(branch)}, .labels = {}};
  out.boxes_of_square = second;
  out.box_threshold = 0.1f;
  return out;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files), .layout = {kRows}, .ignored = {kIgnored}};
  if (is_second(files)) {
    out.layout.add(kProjection);
  } else {
    out.layout.add(kOldProjection);
  }
  out.dense = DenseReading{.config = read_head(files, out.config), .tables = {{"", "", kHead}}};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "owlv2" && type != "owlvit") return std::nullopt;
  // without the layers that give boxes it is one of CLIP's pairs of towers
  if (files.has_weights && files.tensors.find(files.root + "box_head.dense0.weight") == nullptr)
    return std::nullopt;
  const auto found = match_anchor(files, kAnchor, std::span(kPrefixes).subspan(type == "owlv2" ? 0 : 1, 1));
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", type, ".vision_model.", kAnchor);
  return found;
}

}  // namespace
}  // namespace hf_owl

constinit const Family kHfOwlFamily{.name = "hf_owl",
                                    .anchor = hf_owl::kAnchor,
                                    .prefixes = hf_owl::kPrefixes,
                                    .library = "",
                                    .match = hf_owl::match,
                                    .read = hf_owl::read,
                                    .is_dense = true};

}  // namespace vit::internal
