// Hugging Face's YOLOS: a ViT whose detection tokens become boxes. They are register tokens here, in front of
// the patches; the library has them at the end. Tables of positions are resampled for each size, also to
// their own, and a table of each block but the last is added to what leaves it. Source: transformers,
// models/yolos.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_yolos {
namespace {

constexpr Where kWhere{"hf_yolos", ErrorKind::mismatch};
constexpr std::string_view kPrefixes[] = {"vit.", ""};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.projection.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.projection.bias"},
    {Part::class_token, "embeddings.cls_token"},
    {Part::register_tokens, "embeddings.detection_tokens"},
    {Part::position_table, "embeddings.position_embeddings", Form::patches_second},
    {Part::between_tables, "encoder.mid_position_embeddings", Form::patches_second},
};
static_assert(is_sound(kRows));

/// Release 5 has another name in memory.
constexpr Row kModuleTables[] = {
    {Part::between_tables, "encoder.interpolation.mid_position_embeddings", Form::patches_second}};
static_assert(is_sound(kModuleTables));

constexpr HeadRow kHead[] = {
    {"norm.*", "layernorm.*", 1, 0, Place::tower},
    {"boxes.{}.*", "bbox_predictor.layers.{}.*"},
    {"classes.{}.*", "class_labels_classifier.layers.{}.*"},
};
/// The model without boxes pools the class token.
constexpr Row kPooler[] = {{Part::pooler_weight, "pooler.dense.*"}};
constexpr Ignored kIgnored[] = {
    {"pooler.dense.weight", "pooler, which boxes do not read"},
    {"pooler.dense.bias", "pooler, which boxes do not read"},
};

ModelConfig read_config(const SourceFiles& files) {
  const Json& json = *files.config;
  ModelConfig c = read_hf_sizes(files, json, {.norm_eps = 1e-12});
  if (!json.find("image_size")) {  // of the library's class
    c.image.height = 512;
    c.image.width = 864;
  }
  c.family = "yolos";
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.tokens.num_registers = json.find_size("num_detection_tokens", {1, 1024}).value_or(100);
  add_hf_table(c, 1 + c.tokens.num_registers);
  c.position.reuse = TableReuse::equal_grid;  // resampling to the same grid changes nothing
  c.position.between_blocks =
      c.encoder.depth > 1 && json.find_bool("use_mid_position_embeddings").value_or(true);
  return c;
}

DenseConfig read_head(const SourceFiles& files, const ModelConfig& backbone) {
  const TensorEntry* const last = files.find("class_labels_classifier.layers.2.bias", Place::outside);
  const auto names = find_hf_labels(*files.config);
  const std::size_t classes = last != nullptr && !last->shape.empty() ? last->shape[0]
                              : names                                 ? names->size() + 1
                                                                      : 92;
  VIT_CHECK(classes >= 2, kWhere.with(ErrorKind::format), files.weights_name, ": boxes of ", classes,
            " classes, one of which is no object");
  DenseBranch branch{
      .name = "",
      .taps = {backbone.encoder.depth - 1},
      .tap_norm = true,
      .tap_norm_eps = backbone.encoder.norm.eps,
      .layers = BoxConfig{},
      .outputs = {{.meaning = Output::boxes, .channels = 4, .finish = MapFinish::none},
                  {.meaning = Output::box_classes, .channels = classes, .finish = MapFinish::none}}};
  return {.family = "yolos",
          .branches = {std::move(branch)},
          .labels = read_hf_labels(*files.config, classes - 1)};
}

ParsedModel read(const SourceFiles& files) {
  const bool is_bare = files.has_weights && !files.match.prefix.ends_with("vit.");
  VIT_CHECK(!files.has_weights || is_bare ||
                files.find("bbox_predictor.layers.0.weight", Place::outside) != nullptr,
            kWhere.with(ErrorKind::unsupported), files.weights_name,
            ": a YOLOS without the layers that give boxes (bbox_predictor.layers.0.weight)");
  ParsedModel out{.config = read_config(files), .layout = {kRows, kHfVitBlocks}, .ignored = {kIgnored}};
  if (files.find("encoder.interpolation.mid_position_embeddings") != nullptr) out.layout.add(kModuleTables);
  if (is_bare) {
    out.config.head.pooler = files.find("pooler.dense.weight") != nullptr;
    if (out.config.head.pooler) out.layout.add(kPooler);
    return out;
  }
  out.dense = DenseReading{.config = read_head(files, out.config), .tables = {{"", "", kHead}}};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "yolos") return std::nullopt;
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor vit.", kAnchor);
  return found;
}

}  // namespace
}  // namespace hf_yolos

constinit const Family kHfYolosFamily{.name = "hf_yolos",
                                      .anchor = hf_yolos::kAnchor,
                                      .prefixes = hf_yolos::kPrefixes,
                                      .library = "",
                                      .match = hf_yolos::match,
                                      .read = hf_yolos::read,
                                      .is_dense = true};

}  // namespace vit::internal
