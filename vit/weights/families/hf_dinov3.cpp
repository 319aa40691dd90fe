// Hugging Face's DINOv3, plain or gated, under both spellings of the blocks (layer.N and model.layer.N).
// Periods are recomputed, the pooled output is the class token. Source: transformers, models/dinov3_vit.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_dinov3 {
namespace {

constexpr std::string_view kPrefixes[] = {"", "dinov3_vit.", "backbone."};

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.bias"},
    {Part::class_token, "embeddings.cls_token"},
    {Part::register_tokens, "embeddings.register_tokens"},
    {Part::norm1_gamma, "layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "layer.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layer.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layer.{}.attention.v_proj.*"),
    {Part::proj_weight, "layer.{}.attention.o_proj.*"},
    {Part::scale1, "layer.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "layer.{}.norm2.*"},
    {Part::gate_weight, "layer.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "layer.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "layer.{}.mlp.down_proj.*"},
    {Part::scale2, "layer.{}.layer_scale2.lambda1"},
    {Part::norm_gamma, "norm.*"},
};
constexpr Row kNested[] = {
    {Part::norm1_gamma, "model.layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "model.layer.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "model.layer.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "model.layer.{}.attention.v_proj.*"),
    {Part::proj_weight, "model.layer.{}.attention.o_proj.*"},
    {Part::scale1, "model.layer.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "model.layer.{}.norm2.*"},
    {Part::gate_weight, "model.layer.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "model.layer.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "model.layer.{}.mlp.down_proj.*"},
    {Part::scale2, "model.layer.{}.layer_scale2.lambda1"},
};
static_assert(is_complete(kRows) && is_sound(kNested));

constexpr Ignored kIgnored[] = {{"embeddings.mask_token", "used in training only"}};

struct QkvBias {
  bool q, k, v;
};

ModelConfig read_config(const SourceFiles& files, const QkvBias& qkv) {
  const Json& json = *files.config;
  ModelConfig c = read_hf_sizes(
      files, json, {.hidden_size = 384, .num_heads = 6, .intermediate_size = 1536, .norm_eps = 1e-5});
  c.family = "dinov3";
  c.tokens.num_registers = json.find_size("num_register_tokens").value_or(0);
  c.attention.qkv_bias = qkv.q || qkv.k || qkv.v;
  c.attention.proj_bias = json.find_bool("proj_bias").value_or(true);
  c.mlp.bias = json.find_bool("mlp_bias").value_or(true);
  c.encoder.layer_scale = true;
  if (json.find_bool("use_gated_mlp").value_or(false)) c.mlp.kind = MlpKind::gated;
  set_dinov3_position(json, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  const QkvBias bias{.q = json.find_bool("query_bias").value_or(true),
                     .k = json.find_bool("key_bias").value_or(false),
                     .v = json.find_bool("value_bias").value_or(true)};
  ParsedModel out{.config = read_config(files, bias), .layout = {kRows}, .ignored = {kIgnored}};
  if (files.count_blocks("model.layer.") != 0) out.layout.add(kNested);
  if (!bias.q) out.layout.set_zeros(Part::qkv_bias, 0);
  if (!bias.k) out.layout.set_zeros(Part::qkv_bias, 1);
  if (!bias.v) out.layout.set_zeros(Part::qkv_bias, 2);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "dinov3_vit") return std::nullopt;
  const auto found = match_anchor(files, "embeddings.patch_embeddings.weight", kPrefixes);
  VIT_CHECK(found, Where("hf_dinov3", ErrorKind::mismatch), files.weights_name,
            ": no tensor embeddings.patch_embeddings.weight");
  return found;
}

}  // namespace
}  // namespace hf_dinov3

constinit const Family kHfDinov3Family{.name = "hf_dinov3",
                                       .anchor = "embeddings.patch_embeddings.weight",
                                       .prefixes = hf_dinov3::kPrefixes,
                                       .library = "",
                                       .match = hf_dinov3::match,
                                       .read = hf_dinov3::read};

}  // namespace vit::internal
