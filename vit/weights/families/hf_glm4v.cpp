// The vision towers of GLM-4.1V, GLM-4.5V, GLM-OCR and GLM-5.3, bare or inside the whole model. An image is
// two equal frames; a 2 x 2 convolution makes cells of the tokens, which the library calls last_hidden_state,
// and a gated MLP after a norm makes the visual tokens of them. Source: transformers, models/glm4v,
// glm4v_moe, glm_ocr, glm5_next.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_glm4v {
namespace {

constexpr Where kWhere{"hf_glm4v", ErrorKind::format};

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::frames},
    {Part::clip_weight, "patch_embed.proj.weight", Form::frames_apart},
    {Part::patch_bias, "patch_embed.proj.bias"},
    {Part::embed_norm_gamma, "post_conv_layernorm.*"},
    {Part::position_table, "embeddings.position_embedding.weight"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::q_norm_gamma, "blocks.{}.attn.q_norm.*"},
    {Part::k_norm_gamma, "blocks.{}.attn.k_norm.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::gate_weight, "blocks.{}.mlp.gate_proj.*"},
    {Part::fc1_weight, "blocks.{}.mlp.up_proj.*"},
    {Part::fc2_weight, "blocks.{}.mlp.down_proj.*"},
    {Part::norm_gamma, "post_layernorm.*"},
    {Part::merger_reduce_weight, "downsample.weight", Form::cell_kernel},
    {Part::merger_reduce_bias, "downsample.bias"},
    {Part::merger_middle_weight, "merger.proj.*"},
    {Part::merger_middle_norm_gamma, "merger.post_projection_norm.*"},
    {Part::merger_gate_weight, "merger.gate_proj.*"},
    {Part::merger_fc1_weight, "merger.up_proj.*"},
    {Part::merger_fc2_weight, "merger.down_proj.*"},
};
static_assert(is_complete(kRows));

constexpr Ignored kIgnored[] = {{"embeddings.position_ids", "row numbers of the position table"}};

/// GLM-5.3: GLM-OCR with a limit in its gated MLPs.
bool is_next(const SourceFiles& files) {
  return has_model_type(files, {"glm5_next", "glm5_next_vision"});
}

bool is_ocr(const SourceFiles& files) {
  return has_model_type(files, {"glm_ocr", "glm_ocr_vision"}) || is_next(files);
}

void set_merger(const Json& json, std::size_t width, std::size_t hidden, ModelConfig& c) {
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"spatial_merge_size"}, 2);
  merger.add(MergerPlace::reduce, MergerLinear{.dim = width, .bias = true});
  merger.tokens_after = merger.steps.size();
  merger.add(MergerPlace::middle, MergerLinear{.dim = width});
  merger.add(MergerPlace::middle_norm, MergerNorm{.norm = {.eps = 1e-5f}});
  merger.add(MergerPlace::middle_gelu, MergerGelu{});
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = hidden,
                                         .out_dim = width,
                                         .gated = true,
                                         .bias = false,
                                         .activation = c.mlp.activation});
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  const bool ocr = is_ocr(files), next = is_next(files);
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = ocr ? 1024u : 1536u,
                              .depth = 24,
                              .num_heads = ocr ? 16u : 12u,
                              .image_size = 336,
                              .norm_eps = json.find_double("rms_norm_eps").value_or(1e-5),
                              .activation = Activation::silu});
  c.family = "glm4v";
  c.patch.frames = find_tower_size(json, {"temporal_patch_size"}, 2);
  c.image.stack = StackRule::apart;
  c.encoder.norm.kind = NormKind::rms;
  c.encoder.token_norm = true;
  c.mlp.kind = MlpKind::gated;
  if (next) c.mlp.limit = static_cast<float>(json.find_double("swiglu_limit").value_or(10.0));
  c.attention.qkv_bias = json.find_bool("attention_bias").value_or(ocr);
  c.attention.proj_bias = c.mlp.bias = ocr && c.attention.qkv_bias;
  add_tower_rope(json, c);
  const std::size_t out = find_tower_size(json, {"out_hidden_size"}, ocr ? 1536 : 4096);
  if (ocr) {
    c.attention.qk_norm = NormKind::rms;
    c.mlp.dim = find_tower_size(json, {"intermediate_size"}, 4096);
    set_merger(json, out, next ? find_tower_size(json, {"projection_intermediate_size"}, 10240) : 3 * out, c);
  } else {
    c.mlp.dim = out;  // intermediate_size is the merger's
    set_merger(json, out, find_tower_size(json, {"intermediate_size"}, 13696), c);
    c.patch.embed_norm = true;
    c.position.added = AddedTable::patches;
    VIT_CHECK(c.patch.size != 0, kWhere, json.where(), ".patch_size must not be 0");
    c.position.added_grid = c.native_grid();
    c.position.resampling = TableResampling::bicubic;
  }
  fit_to_cells(json, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files, tower_config(*files.config)),
                  .layout = {kRows},
                  .ignored = {kIgnored, kWholeModelIgnored}};
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!is_ocr(files) && !has_model_type(files, {"glm4v", "glm4v_vision", "glm4v_moe", "glm4v_moe_vision",
                                                "glm46v", "glm46v_vision"}))
    return std::nullopt;
  return match_tower(files, "patch_embed.proj.weight");
}

}  // namespace
}  // namespace hf_glm4v

constinit const Family kHfGlm4vFamily{.name = "hf_glm4v",
                                      .anchor = "merger.post_projection_norm.weight",
                                      .library = "",
                                      .match = hf_glm4v::match,
                                      .read = hf_glm4v::read};

}  // namespace vit::internal
