// Sapiens2's encoder under its published names and under those of transformers: DINOv3's positions and prefix
// tokens, RMSNorm, norms of q and k, fewer heads of keys in the middle blocks, layer scale after attention
// only. Heads of maps are left unread. Source: transformers, models/sapiens2 and its conversion.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_sapiens2 {
namespace {

constexpr Where kWhere{"hf_sapiens2", ErrorKind::mismatch};

constexpr std::string_view kPublishedPrefixes[] = {"", "backbone."};
constexpr std::string_view kModulePrefixes[] = {"", "model.", "backbone."};
constexpr std::string_view kPublishedAnchor = "patch_embed.projection.weight";
constexpr std::string_view kModuleAnchor = "embeddings.patch_embeddings.weight";

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.projection.weight", Form::convolution},
    {Part::patch_bias, "patch_embed.projection.bias"},
    {Part::class_token, "cls_token"},
    {Part::register_tokens, "storage_tokens"},
    {Part::norm1_gamma, "blocks.{}.ln1.*"},
    joined(Part::qkv_weight, {0, 3}, "blocks.{}.attn.wq.*"),
    joined(Part::qkv_weight, {1, 3}, "blocks.{}.attn.wk.*"),
    joined(Part::qkv_weight, {2, 3}, "blocks.{}.attn.wv.*"),
    {Part::q_norm_gamma, "blocks.{}.attn.q_norm.*"},
    {Part::k_norm_gamma, "blocks.{}.attn.k_norm.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::scale1, "blocks.{}.attn.gamma.weight"},
    {Part::norm2_gamma, "blocks.{}.ln2.*"},
    {Part::fc1_weight, "blocks.{}.ffn.w12.*"},
    {Part::fc2_weight, "blocks.{}.ffn.w3.*"},
    {.part = Part::scale2, .constant = 1.0f},
    {Part::norm_gamma, "ln1.*"},
};
constexpr Row kGatedMlp[] = {
    cut(Part::gate_weight, "blocks.{}.ffn.w12.weight", {0, 2}),
    cut(Part::gate_bias, "blocks.{}.ffn.w12.bias", {0, 2}),
    cut(Part::fc1_weight, "blocks.{}.ffn.w12.weight", {1, 2}),
    cut(Part::fc1_bias, "blocks.{}.ffn.w12.bias", {1, 2}),
};
constexpr Row kModuleNames[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.bias"},
    {Part::class_token, "embeddings.cls_token"},
    {Part::register_tokens, "embeddings.register_tokens"},
    {Part::norm1_gamma, "model.layer.{}.norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "model.layer.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "model.layer.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "model.layer.{}.attention.v_proj.*"),
    {Part::q_norm_gamma, "model.layer.{}.attention.q_norm.*"},
    {Part::k_norm_gamma, "model.layer.{}.attention.k_norm.*"},
    {Part::proj_weight, "model.layer.{}.attention.o_proj.*"},
    {Part::scale1, "model.layer.{}.layer_scale1.lambda1"},
    {Part::norm2_gamma, "model.layer.{}.norm2.*"},
    {Part::gate_weight, "model.layer.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "model.layer.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "model.layer.{}.mlp.down_proj.*"},
    {Part::norm_gamma, "norm.*"},
};
static_assert(is_complete(kRows) && is_sound(kGatedMlp) && is_complete(kModuleNames));

constexpr Ignored kIgnored[] = {
    {"mask_token", "used in training only"},
    {"embeddings.mask_token", "used in training only"},
    {"decode_head.*", "of a head of maps, which is not implemented", Place::outside},
    {"scale_head.*", "of a head of maps, which is not implemented", Place::outside},
};

/// Heads of keys in each block; none where all blocks have as many as of queries.
std::vector<std::size_t> read_key_heads(const Json& json, const ModelConfig& c) {
  std::vector<std::size_t> heads = read_blocks(json, "num_key_value_heads_per_layer", {});
  if (heads.empty()) {
    const std::size_t shared = json.find_size("num_key_value_attention_heads").value_or(8);
    const std::size_t first = json.find_size("num_first_full_attention_layers").value_or(8);
    const std::size_t last = json.find_size("num_last_full_attention_layers").value_or(8);
    for (std::size_t block = 0; block < std::min<std::size_t>(c.encoder.depth, 1024); ++block)
      heads.push_back(block < first || block + last >= c.encoder.depth ? c.attention.num_heads : shared);
  }
  if (std::ranges::all_of(heads, [&](std::size_t count) { return count == c.attention.num_heads; }))
    heads.clear();
  return heads;
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_hf_sizes(files, json,
                                {.hidden_size = 1024,
                                 .num_layers = 24,
                                 .num_heads = 16,
                                 .intermediate_size = 4096,
                                 .activation = Activation::silu});
  c.family = "sapiens2";
  c.encoder.norm.kind = NormKind::rms;
  c.encoder.norm.eps = static_cast<float>(json.find_double("rms_norm_eps").value_or(1e-6));
  c.tokens.num_registers = json.find_size("num_register_tokens").value_or(8);
  if (json.find_bool("use_qk_norm").value_or(true)) c.attention.qk_norm = NormKind::rms;
  c.attention.proj_bias = json.find_bool("proj_bias").value_or(true);
  c.mlp.bias = json.find_bool("mlp_bias").value_or(true);
  c.encoder.layer_scale = true;
  if (json.find_bool("use_gated_mlp").value_or(true)) c.mlp.kind = MlpKind::gated;
  c.attention.block_key_heads = read_key_heads(json, c);
  set_dinov3_position(json, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const Json& json = *files.config;
  ParsedModel out{.config = read_config(files, json), .layout = {kRows}, .ignored = {kIgnored}};
  ModelConfig& c = out.config;
  if (c.mlp.kind == MlpKind::gated) out.layout.add(kGatedMlp);
  if (files.find(kModuleAnchor) != nullptr) out.layout.add(kModuleNames);
  constexpr const char* kBiases[] = {"query_bias", "key_bias", "value_bias"};
  c.attention.qkv_bias = false;
  for (std::size_t i = 0; i < 3; ++i) {
    const bool has_bias = json.find_bool(kBiases[i]).value_or(true);
    c.attention.qkv_bias = c.attention.qkv_bias || has_bias;
    if (!has_bias) out.layout.set_zeros(Part::qkv_bias, i);
  }
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "sapiens2") return std::nullopt;
  std::optional<Match> found = match_anchor(files, kPublishedAnchor, kPublishedPrefixes);
  if (!found) found = match_anchor(files, kModuleAnchor, kModulePrefixes);
  VIT_CHECK(found, kWhere, files.weights_name, ": no tensor ", kPublishedAnchor, ", or ", kModuleAnchor);
  return found;
}

}  // namespace
}  // namespace hf_sapiens2

constinit const Family kHfSapiens2Family{.name = "hf_sapiens2",
                                         .anchor = hf_sapiens2::kPublishedAnchor,
                                         .other_anchor = hf_sapiens2::kModuleAnchor,
                                         .prefixes = hf_sapiens2::kPublishedPrefixes,
                                         .library = "",
                                         .match = hf_sapiens2::match,
                                         .read = hf_sapiens2::read};

}  // namespace vit::internal
