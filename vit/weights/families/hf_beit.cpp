// Hugging Face's BEiT, BEiTv2 and data2vec for images (model_type "beit", "data2vec-vision"), bare or with a
// classifier: relative positions as a table in each block, or one for all blocks. Keys have no bias. With
// mean pooling the only norm after the blocks is that of the mean. Heads of pretraining and segmentation are
// left unread. Source: transformers, models/beit and data2vec.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_beit {
namespace {

constexpr Where kWhere{"hf_beit", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"", "beit.", "data2vec_vision.", "backbone."};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";

constexpr Row kRows[] = {
    {Part::relative_table, "encoder.relative_position_bias.relative_position_bias_table"},
    {Part::block_relative_table,
     "encoder.layer.{}.attention.attention.relative_position_bias.relative_position_bias_table"},
    {Part::norm1_gamma, "encoder.layer.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.weight"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.weight"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.weight"),
    joined(Part::qkv_bias, {0, 3}, "encoder.layer.{}.attention.attention.query.bias"),
    joined(Part::qkv_bias, {1, 3}, ""),
    joined(Part::qkv_bias, {2, 3}, "encoder.layer.{}.attention.attention.value.bias"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"},
    {Part::scale1, "encoder.layer.{}.lambda_1"},
    {Part::norm2_gamma, "encoder.layer.{}.layernorm_after.*"},
    {Part::fc1_weight, "encoder.layer.{}.intermediate.dense.*"},
    {Part::fc2_weight, "encoder.layer.{}.output.dense.*"},
    {Part::scale2, "encoder.layer.{}.lambda_2"},
    {Part::norm_gamma, "layernorm.*"},
    {Part::pooled_norm_gamma, "pooler.layernorm.*"},
    at(Place::outside, {Part::head_weight, "classifier.*"}),
};
static_assert(is_sound(kRows));

constexpr Ignored kIgnored[] = {
    {"embeddings.mask_token", "used in training only"},
    {"*relative_position_index", "recomputed"},
    {"lm_head.*", "head of the pretraining task", Place::outside},
    {"layernorm.*", "norm of the head of the pretraining task", Place::outside},
    {"decode_head.*", "head of segmentation, which is not read", Place::outside},
    {"auxiliary_head.*", "head of segmentation, which is not read", Place::outside},
    {"fpn*", "head of segmentation, which is not read", Place::outside},
};

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  ModelConfig c = read_hf_sizes(files, json, {});
  c.family = hf_model_type(files) == "beit" ? "beit" : "data2vec_vision";
  if (json.find_bool("use_absolute_position_embeddings").value_or(false)) add_hf_table(c, 1);
  const bool of_blocks = json.find_bool("use_relative_position_bias").value_or(false);
  const bool shared = json.find_bool("use_shared_relative_position_bias").value_or(false);
  if (of_blocks || shared) {
    c.position.relative = RelativeConfig{.grid = c.native_grid()};
    c.position.relative->scope = !shared     ? RelativeScope::blocks
                                 : of_blocks ? RelativeScope::both
                                             : RelativeScope::shared;
    VIT_CHECK(c.image.height == c.image.width, kWhere.with(ErrorKind::unsupported), json.where(),
              ".image_size must be square: the library confuses the axes of other tables");
  }
  c.encoder.layer_scale = json.find_double("layer_scale_init_value").value_or(0.1) > 0;
  const bool has_mean = json.find_bool("use_mean_pooling").value_or(true);
  const bool has_norm = files.find("pooler.layernorm.weight") != nullptr || !files.has_weights;
  c.encoder.token_norm = !has_mean;
  c.head.pooled_norm = has_mean && has_norm;
  if (has_mean) c.head.pooling = has_norm ? Pooling::patch_mean : Pooling::none;
  c.head.num_classes = count_hf_classes(files, "classifier");
  c.head.labels = read_hf_labels(json, c.head.num_classes);
  return {.config = std::move(c), .layout = {kHfEmbeddings, kRows}, .ignored = {kIgnored}};
}

std::optional<Match> match(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "beit" && type != "data2vec-vision") return std::nullopt;
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", kAnchor, ", with or without the prefix beit.");
  return found;
}

}  // namespace
}  // namespace hf_beit

constinit const Family kHfBeitFamily{.name = "hf_beit",
                                     .anchor = hf_beit::kAnchor,
                                     .prefixes = hf_beit::kPrefixes,
                                     .library = "",
                                     .head = "classifier",
                                     .head_place = Place::outside,
                                     .match = hf_beit::match,
                                     .read = hf_beit::read};

}  // namespace vit::internal
