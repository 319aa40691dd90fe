// Hugging Face's Pixio (model_type "pixio"): Meta's ViT of masked pixels with several class tokens, whose
// mean is the embedding, bare or as a backbone. Blocks have the published names or those of release 5's
// modules. Source: transformers, models/pixio.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_pixio {
namespace {

constexpr Where kWhere{"hf_pixio", ErrorKind::format};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";
constexpr std::string_view kPrefixes[] = {"", "pixio.", "encoder."};

constexpr Row kRows[] = {
    {Part::class_token, "embeddings.cls_token", Form::prefix_rows},
    {Part::register_tokens, "embeddings.cls_token", Form::prefix_rows},
    {Part::norm1_gamma, "encoder.layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"},
    {Part::norm2_gamma, "encoder.layer.{}.norm2.*"},
    {Part::fc1_weight, "encoder.layer.{}.intermediate.dense.*"},
    {Part::fc2_weight, "encoder.layer.{}.output.dense.*"},
    {Part::norm_gamma, "layernorm.*"},
};
constexpr Row kModules[] = {
    {Part::norm1_gamma, "layers.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.attention.v_proj.*"),
    {Part::proj_weight, "layers.{}.attention.o_proj.*"},
    {Part::norm2_gamma, "layers.{}.layernorm_after.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
};
static_assert(is_sound(kRows) && is_sound(kModules));

constexpr Ignored kIgnored[] = {
    {"embeddings.mask_token", "used in training only"},
    {"layernorm.*", "norm of a backbone's feature maps, which are not made", Place::outside}};

ModelConfig read_config(const SourceFiles& files) {
  const Json& json = *files.config;
  ModelConfig c = read_hf_sizes(
      files, json,
      {.hidden_size = 1280, .num_layers = 32, .num_heads = 16, .image_size = 256, .norm_eps = 1e-6});
  c.family = "pixio";
  set_hf_mlp(json, c);
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  const std::size_t num_class_tokens = json.find_size("n_cls_tokens", {1, 1024}).value_or(8);
  c.tokens.num_registers = num_class_tokens - 1;
  add_hf_table(c, num_class_tokens);
  c.head.pooling = Pooling::prefix_mean;
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files), .layout = {kHfEmbeddings, kRows}, .ignored = {kIgnored}};
  if (has_module_names(files)) out.layout.add(kModules);
  out.notes.push_back("pooled is the mean of all class tokens, of which cls is the first");
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "pixio") return std::nullopt;
  const auto found = match_anchor(files, kAnchor, kPrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name, ": no tensor ", kAnchor,
            ", with or without the prefix pixio.");
  return found;
}

}  // namespace
}  // namespace hf_pixio

constinit const Family kHfPixioFamily{.name = "hf_pixio",
                                      .anchor = hf_pixio::kAnchor,
                                      .prefixes = hf_pixio::kPrefixes,
                                      .library = "",
                                      .match = hf_pixio::match,
                                      .read = hf_pixio::read};

}  // namespace vit::internal
