// Hugging Face's ViT, DeiT, MAE, MSN, I-JEPA and FLAVA (model_type "vit", "deit", "vit_mae", "vit_msn",
// "ijepa", "flava"), bare or with a classification head, distilled or not. A bare ViT or DeiT may end in a
// pooler. Of models that were pretrained on masked images the decoder is left out, and the encoder sees every
// patch. I-JEPA has no class token; the mean of its patches is the embedding. Blocks have the published names
// or those of release 5's modules. Source: transformers, models/vit, deit, vit_mae, vit_msn, ijepa, flava.
#include <algorithm>
#include <iterator>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_vit {
namespace {

constexpr Where kWhere{"hf_vit", ErrorKind::mismatch};
constexpr std::string_view kTypes[] = {"vit",   "deit",  "vit_mae",          "vit_msn",
                                       "ijepa", "flava", "flava_image_model"};
constexpr std::string_view kPrefixes[] = {
    "", "vit.", "deit.", "ijepa.", "image_model.", "flava.image_model.", "encoder.", "vision_model."};

constexpr Row kEnds[] = {
    {Part::norm_gamma, "layernorm.*"},
    {Part::pooler_weight, "pooler.dense.*"},
    at(Place::outside, {Part::head_weight, "classifier.*"}),
};
constexpr Row kTwoHeads[] = {
    at(Place::outside, {Part::head_weight, "cls_classifier.*"}),
    at(Place::outside, {Part::head_distillation_weight, "distillation_classifier.*"}),
};
static_assert(is_sound(kHfEmbeddings) && is_sound(kEnds) && is_sound(kTwoHeads));

/// The published names; transformers 5 writes MSN's classifier with "vit." before all names but those of the
/// blocks, which lie outside.
template <Place place>
constexpr Row kBlocks[] = {
    at(place, {Part::norm1_gamma, "encoder.layer.{}.layernorm_before.*"}),
    at(place, joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.*")),
    at(place, joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.*")),
    at(place, joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.*")),
    at(place, {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"}),
    at(place, {Part::norm2_gamma, "encoder.layer.{}.layernorm_after.*"}),
    at(place, {Part::fc1_weight, "encoder.layer.{}.intermediate.dense.*"}),
    at(place, {Part::fc2_weight, "encoder.layer.{}.output.dense.*"}),
};

template <Place place>
constexpr Row kModules[] = {
    at(place, {Part::norm1_gamma, "layers.{}.layernorm_before.*"}),
    at(place, joined(Part::qkv_weight, {0, 3}, "layers.{}.attention.q_proj.*")),
    at(place, joined(Part::qkv_weight, {1, 3}, "layers.{}.attention.k_proj.*")),
    at(place, joined(Part::qkv_weight, {2, 3}, "layers.{}.attention.v_proj.*")),
    at(place, {Part::proj_weight, "layers.{}.attention.o_proj.*"}),
    at(place, {Part::norm2_gamma, "layers.{}.layernorm_after.*"}),
    at(place, {Part::fc1_weight, "layers.{}.mlp.fc1.*"}),
    at(place, {Part::fc2_weight, "layers.{}.mlp.fc2.*"}),
};
static_assert(is_sound(kBlocks<Place::tower>) && is_sound(kModules<Place::outside>));

constexpr Ignored kIgnored[] = {
    {"pooler.dense.weight", "pooler of the pretraining task, which a classifier does not read"},
    {"pooler.dense.bias", "pooler of the pretraining task, which a classifier does not read"},
    {"embeddings.mask_token", "used in training only"},
};
/// Composed models, of which one is the image encoder.
constexpr Ignored kComposed[] = {{"decoder.*", "decoder of texts", Place::outside},
                                 {"enc_to_dec_proj.*", "decoder of texts", Place::outside},
                                 {"text_model.*", "text tower", Place::outside},
                                 {"text_projection.*", "text tower", Place::outside},
                                 {"visual_projection.*", "into the space of texts", Place::outside},
                                 {"logit_scale", "compares images with texts", Place::outside}};
/// The image tower is one of five models.
constexpr Ignored kFlavaIgnored[] = {{"*", "of FLAVA's other models", Place::outside}};
/// MAE's decoder is a transformer, that of ViTForMaskedImageModeling and its like in DeiT one convolution.
constexpr Ignored kMaeDecoder[] = {{"decoder.*", "decoder of the pretraining task"},
                                   {"decoder.*", "decoder of the pretraining task", Place::outside}};
constexpr Ignored kConvolutionDecoder[] = {
    {"decoder.0.weight", "decoder of the pretraining task"},
    {"decoder.0.bias", "decoder of the pretraining task"},
    {"decoder.0.weight", "decoder of the pretraining task", Place::outside},
    {"decoder.0.bias", "decoder of the pretraining task", Place::outside}};

bool has_pooler(const SourceFiles& files, const ModelConfig& config) {
  const bool is_bare_dpt = config.family == "dpt" && !files.match.prefix.ends_with("dpt.");
  const bool is_possible =
      config.family == "vit" || config.family == "deit" || config.family == "flava" || is_bare_dpt;
  if (!is_possible || config.head.num_classes != 0) return false;
  if (files.find("pooler.dense.weight") == nullptr && files.find("pooler.dense.bias") == nullptr)
    return false;
  const TensorEntry* const stored = files.find("pooler.dense.weight");
  VIT_CHECK(stored == nullptr || stored->shape.empty() || stored->shape[0] == config.embed_dim,
            kWhere.with(ErrorKind::unsupported), files.weights_name, ": a pooler of ", stored->shape[0],
            " channels (pooler_output_size) for tokens of ", config.embed_dim, " is not implemented");
  const std::string activation = files.config->find_string("pooler_act").value_or("tanh");
  VIT_CHECK(activation == "tanh", kWhere.with(ErrorKind::unsupported), files.config->where(), ".pooler_act ",
            in_quotes(activation), " is unknown, expected \"tanh\"");
  return true;
}

ModelConfig read_config(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  const Json json = type == "flava" ? nested_config(*files.config, {"image_config"}) : *files.config;
  ModelConfig c = read_hf_sizes(files, json, {.norm_eps = type == "vit_msn" ? 1e-6 : 1e-12});
  c.family = type.starts_with("flava") ? "flava" : type;
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.tokens.class_token = type != "ijepa";
  c.tokens.distillation_token = type == "deit";
  if (type == "ijepa") c.head.pooling = Pooling::patch_mean;
  add_hf_table(c, c.num_prefix_tokens());
  const bool two_heads = files.find("cls_classifier.weight", Place::outside) != nullptr ||
                         hf_class_contains(json, "WithTeacher");
  c.head.num_classes = count_hf_classes(files, two_heads ? "cls_classifier" : "classifier");
  c.head.labels = read_hf_labels(json, c.head.num_classes);
  if (two_heads) c.head.input = HeadInput::class_and_distillation;
  c.head.pooler = has_pooler(files, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files), .layout = {kHfEmbeddings, kEnds}};
  constexpr const char* kFirst = "encoder.layer.0.layernorm_before.weight";
  const bool outside = files.find(kFirst) == nullptr && files.find(kFirst, Place::outside) != nullptr;
  if (has_module_names(files)) {
    out.layout.add(kModules<Place::tower>);
  } else if (outside) {
    out.layout.add(kBlocks<Place::outside>);
  } else {
    out.layout.add(kBlocks<Place::tower>);
  }
  if (out.config.head.input == HeadInput::class_and_distillation) out.layout.add(kTwoHeads);
  out.ignored.push_back(kIgnored);
  if (files.match.prefix.ends_with("encoder.") || files.match.prefix.ends_with("vision_model."))
    out.ignored.push_back(kComposed);
  if (out.config.family == "flava") out.ignored.push_back(kFlavaIgnored);
  if (out.config.family == "vit_mae") out.ignored.push_back(kMaeDecoder);
  if (out.config.family == "vit" || out.config.family == "deit") out.ignored.push_back(kConvolutionDecoder);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (std::ranges::find(kTypes, type) == std::end(kTypes)) return std::nullopt;
  const auto found = match_anchor(files, "embeddings.patch_embeddings.projection.weight", kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name,
            ": no tensor embeddings.patch_embeddings.projection.weight, with or without the prefix ", type,
            ".");
  return found;
}

}  // namespace
}  // namespace hf_vit

constinit const Family kHfVitFamily{.name = "hf_vit",
                                    .anchor = "embeddings.patch_embeddings.projection.weight",
                                    .prefixes = hf_vit::kPrefixes,
                                    .library = "",
                                    .head = "classifier",
                                    .head_place = Place::outside,
                                    .match = hf_vit::match,
                                    .read = hf_vit::read};

}  // namespace vit::internal
