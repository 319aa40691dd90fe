// TIPSv2, image and text tower. Files have the publisher's names; transformers' own names are those of
// save_original_format=False. The image tower is DINOv2's with a register that serves as a second class
// token; the text tower adds sinusoids to scaled tokens, masks padding and takes the mean of the tokens.
// Source: transformers, models/tipsv2 and conversion_mapping.py.
#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_tipsv2 {
namespace {

constexpr Where kWhere{"hf_tipsv2", ErrorKind::format};
constexpr SizeRange kCount{1, std::size_t{1} << 26};

// ------------------------------------------------------------------------------------------------- images

constexpr Row kOriginal[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::class_token, "cls_token"},
    {Part::register_tokens, "register_tokens"},
    {Part::position_table, "pos_embed"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::scale1, "blocks.{}.ls1.gamma"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.c_fc.*"},
    {Part::fc2_weight, "blocks.{}.mlp.c_proj.*"},
    {Part::scale2, "blocks.{}.ls2.gamma"},
    {Part::norm_gamma, "norm.*"},
};
constexpr Row kOriginalGated[] = {cut(Part::gate_weight, "blocks.{}.mlp.w12.*", {0, 2}),
                                  cut(Part::fc1_weight, "blocks.{}.mlp.w12.*", {1, 2}),
                                  {Part::fc2_weight, "blocks.{}.mlp.w3.*"}};
constexpr Row kModules[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.projection.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.projection.bias"},
    {Part::class_token, "embeddings.cls_token"},
    {Part::register_tokens, "embeddings.register_tokens"},
    {Part::position_table, "embeddings.position_embeddings"},
    {Part::norm1_gamma, "encoder.layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.v_proj.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.o_proj.*"},
    {Part::scale1, "encoder.layer.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "encoder.layer.{}.norm2.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.fc2.*"},
    {Part::scale2, "encoder.layer.{}.layer_scale2.lambda1"},
    {Part::norm_gamma, "layernorm.*"},
};
constexpr Row kModulesGated[] = {{Part::gate_weight, "encoder.layer.{}.mlp.gate_proj.*"},
                                 {Part::fc1_weight, "encoder.layer.{}.mlp.up_proj.*"},
                                 {Part::fc2_weight, "encoder.layer.{}.mlp.down_proj.*"}};
static_assert(is_complete(kOriginal) && is_sound(kOriginalGated) && is_complete(kModules) &&
              is_sound(kModulesGated));

constexpr Ignored kIgnoredImage[] = {
    {"mask_token", "used in training only"},
    {"embeddings.mask_token", "used in training only"},
    {"text_encoder.*", "text tower", Place::outside},
    {"text_model.*", "text tower", Place::outside},
    {"temperature", "compares images with texts", Place::outside},
};

constexpr std::string_view kImagePrefixes[] = {"vision_encoder.", "vision_model.", ""};
constexpr const char* kOriginalPatch = "patch_embed.proj.weight";
constexpr const char* kModulePatch = "embeddings.patch_embeddings.projection.weight";

ModelConfig read_image_config(const SourceFiles& files) {
  const Json json = hf_tower_part(*files.config, "vision");
  ModelConfig c = read_hf_sizes(files, json, {.patch_size = 14, .image_size = 448, .norm_eps = 1e-6});
  c.family = "tipsv2";
  const double ratio = json.find_double("mlp_ratio").value_or(4.0);
  const auto hidden =
      static_cast<std::size_t>(std::clamp(static_cast<double>(c.embed_dim) * ratio, 0.0, 1e9));
  c.mlp.dim = hidden;
  if (json.find_bool("use_swiglu_ffn").value_or(false)) {
    c.mlp.kind = MlpKind::gated;
    c.mlp.activation = Activation::silu;
    c.mlp.dim = (hidden * 2 / 3 + 7) / 8 * 8;
  }
  c.attention.qkv_bias = json.find_bool("qkv_bias").value_or(true);
  c.tokens.num_registers = json.find_size("num_register_tokens").value_or(1);
  c.encoder.layer_scale = true;
  add_hf_table(c, 1, TableResampling::bilinear_antialias);
  return c;
}

std::optional<Match> match_image(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "tipsv2" && type != "tipsv2_vision_model") return std::nullopt;
  auto found = match_anchor(files, kOriginalPatch, kImagePrefixes);
  if (!found) found = match_anchor(files, kModulePatch, kImagePrefixes);
  VIT_CHECK(found, kWhere.with(ErrorKind::mismatch), files.weights_name, ": no tensor ", kOriginalPatch,
            " or ", kModulePatch, ", with or without the prefix ", kImagePrefixes[0]);
  return found;
}

ParsedModel read_image(const SourceFiles& files) {
  const bool original = !files.has_weights || files.find(kOriginalPatch) != nullptr;
  ParsedModel out{.config = read_image_config(files), .layout = {}, .ignored = {kIgnoredImage}};
  if (original) {
    out.layout.add(kOriginal);
  } else {
    out.layout.add(kModules);
  }
  if (out.config.mlp.kind != MlpKind::gated) return out;
  if (original) {
    out.layout.add(kOriginalGated);
  } else {
    out.layout.add(kModulesGated);
  }
  return out;
}

// -------------------------------------------------------------------------------------------------- texts

constexpr Row kOriginalText[] = {
    {Part::token_table, "token_embedding.weight"},
    {Part::norm1_gamma, "transformer.resblocks.{}.ln_1.*"},
    {Part::qkv_weight, "transformer.resblocks.{}.attn.in_proj_*"},
    {Part::proj_weight, "transformer.resblocks.{}.attn.out_proj.*"},
    {Part::norm2_gamma, "transformer.resblocks.{}.ln_2.*"},
    {Part::fc1_weight, "transformer.resblocks.{}.mlp.c_fc.*"},
    {Part::fc2_weight, "transformer.resblocks.{}.mlp.c_proj.*"},
    {Part::norm_gamma, "ln_final.*"},
    {Part::logit_bias, ""},
};
constexpr Row kModulesText[] = {
    {Part::token_table, "embeddings.token_embedding.weight"},
    {Part::norm1_gamma, "encoder.layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "encoder.layers.{}.self_attn.out_proj.*"},
    {Part::norm2_gamma, "encoder.layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
    {Part::norm_gamma, "final_layer_norm.*"},
    {Part::logit_bias, ""},
};
static_assert(is_sound(kOriginalText) && is_sound(kModulesText));

constexpr Ignored kIgnoredText[] = {
    {"vision_encoder.*", "image tower", Place::outside},
    {"vision_model.*", "image tower", Place::outside},
    {"temperature", "read as the scale", Place::outside},
};

TextConfig read_text_config(const SourceFiles& files) {
  const Json json = hf_tower_part(*files.config, "text");
  TextConfig c;
  c.family = "tipsv2";
  c.library = "transformers";
  if (const auto classes = files.config->find("architectures");
      classes && classes->is_array() && classes->size() != 0) {
    c.architecture = (*classes)[0].as_string();
  }
  c.width = json.find_size("hidden_size", kCount).value_or(768);
  c.depth = json.find_size("num_hidden_layers", kCount).value_or(12);
  c.num_heads = json.find_size("num_attention_heads", kCount).value_or(12);
  c.mlp_dim = json.find_size("intermediate_size", kCount).value_or(3072);
  c.context_length = json.find_size("max_position_embeddings", kCount).value_or(64);
  c.vocabulary_size = json.find_size("vocab_size", kCount).value_or(32000);
  c.norm_eps = static_cast<float>(json.find_double("layer_norm_eps").value_or(1e-5));
  c.activation = read_hf_activation(json, Activation::relu);
  c.scaled_tokens = json.find_bool("scale_sqrt_depth").value_or(true);
  c.sinusoidal_positions = true;
  c.mask = TextMask::padding;
  c.pooling = TextPooling::mean;
  return c;
}

/// Cosines are divided by it; published files leave it to the configuration.
double read_temperature(const SourceFiles& files) {
  double value = files.config->find_double("temperature_init_value").value_or(0.005065968260169029);
  const TensorEntry* const stored = files.tensors.find("temperature");
  if (stored != nullptr && stored->num_elements() == 1) value = to_double(*stored)[0];
  VIT_CHECK(value > 1e-12 && value < 1e12, kWhere, files.config_name(), ": a temperature of ", value);
  return value;
}

std::optional<ParsedText> read_text(const SourceFiles& files) {
  const std::string type = hf_model_type(files);
  if (type != "tipsv2" && type != "tipsv2_text_model") return std::nullopt;
  constexpr std::string_view kOriginalPrefixes[] = {"text_encoder.", ""};
  constexpr std::string_view kModulePrefixes[] = {"text_model.", ""};
  const auto original = match_anchor(files, "token_embedding.weight", kOriginalPrefixes);
  const auto modules =
      original ? std::nullopt : match_anchor(files, "embeddings.token_embedding.weight", kModulePrefixes);
  if (!original && !modules) return std::nullopt;
  ParsedText out{.config = read_text_config(files),
                 .match = original ? *original : *modules,
                 .layout = {},
                 .ignored = {kIgnoredText}};
  if (original) {
    out.layout.add(kOriginalText);
  } else {
    out.layout.add(kModulesText);
  }
  if (type == "tipsv2") {
    out.config.score = {.kind = TextScore::Kind::softmax};
    const Row scale[] = {
        {.part = Part::logit_scale, .constant = static_cast<float>(-std::log(read_temperature(files)))}};
    out.layout.add(scale);
  }
  return out;
}

}  // namespace
}  // namespace hf_tipsv2

constinit const Family kHfTipsv2Family{.name = "hf_tipsv2",
                                       .anchor = hf_tipsv2::kOriginalPatch,
                                       .other_anchor = hf_tipsv2::kModulePatch,
                                       .prefixes = hf_tipsv2::kImagePrefixes,
                                       .library = "",
                                       .match = hf_tipsv2::match_image,
                                       .read = hf_tipsv2::read_image};
constinit const TextFamily kTipsv2TextFamily{.name = "hf_tipsv2_text", .read = hf_tipsv2::read_text};

}  // namespace vit::internal
