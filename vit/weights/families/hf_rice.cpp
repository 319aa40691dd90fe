// RICE-ViT, the vision tower of LLaVA-OneVision-1.5, in the whole model or by itself: MLCD's tower with
// Qwen2-VL's names and merger. The class token is rotated by learned angles and is no visual token. Source:
// the code that LLaVA-OneVision-1.5's repository publishes with its weights.
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_rice {
namespace {

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight", Form::convolution},
    {Part::class_token, "class_embedding"},
    {Part::class_angles, "class_pos_emb"},
    {Part::norm_pre_gamma, "pre_layernorm.*"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::merger_norm_gamma, "merger.ln_q.*"},
    {Part::merger_fc1_weight, "merger.mlp.0.*"},
    {Part::merger_fc2_weight, "merger.mlp.2.*"},
};
static_assert(is_complete(kRows));

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = 1024,
                              .depth = 24,
                              .mlp_dim = 4096,
                              .norm_eps = json.find_double("layer_norm_eps").value_or(1e-5)});
  c.family = "rice";
  c.patch.bias = false;
  c.tokens.class_token = true;
  c.encoder.norm_pre = true;
  add_tower_rope(json, c);
  c.position.class_angles = true;
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"spatial_merge_size"}, 2);
  fit_to_cells(json, c);
  merger.cells.token_norm = {.eps = c.encoder.norm.eps};
  const std::size_t out_dim =
      rows_of_tensor(files, "merger.mlp.2.weight", Place::tower,
                     find_tower_size(json, {"text_hidden_size", "out_hidden_size"}, 2560));
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = merger.cell_width(c.embed_dim), .out_dim = out_dim});
  ParsedModel out{.config = std::move(c), .layout = {kRows}, .ignored = {kWholeModelIgnored}};
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"llavaonevision1_5", "llava_onevision1_5", "rice_vit"})) return std::nullopt;
  return match_tower(files, "class_pos_emb");
}

}  // namespace
}  // namespace hf_rice

constinit const Family kHfRiceFamily{.name = "hf_rice",
                                     .anchor = "class_pos_emb",
                                     .library = "",
                                     .match = hf_rice::match,
                                     .read = hf_rice::read};

}  // namespace vit::internal
