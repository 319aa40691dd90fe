// The vision towers of HunyuanOCR and Hy4, bare or inside the whole model: ViTs with a table that is
// resampled bilinearly to any grid, whose first row belongs to a class token that is not there. A convolution
// makes cells of the normalized tokens. The vectors that the language model reads after each row of cells, in
// front of them and after them are constants and no part of `merged`. Source: transformers, models/hunyuan_vl
// and hy_v4_vl.
#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_hunyuan {
namespace {

constexpr Where kWhere{"hf_hunyuan", ErrorKind::unsupported};
constexpr std::string_view kAnchor = "embeddings.patch_embedding.weight";
constexpr std::string_view kPrefixes[] = {"vit.", "model.vit.", "model.vision_tower.", "vision_tower.", ""};

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::convolution},
    {Part::patch_bias, "embeddings.patch_embedding.bias"},
    {Part::position_table, "embeddings.position_embedding.weight", Form::first_dropped},
    {Part::norm1_gamma, "layers.{}.layer_norm1.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.self_attn.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.self_attn.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.self_attn.v_proj.*"),
    {Part::proj_weight, "layers.{}.self_attn.o_proj.*"},
    {Part::norm2_gamma, "layers.{}.layer_norm2.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
    {Part::merger_norm_gamma, "patch_merger.before_rms.weight"},
    {Part::merger_fc1_weight, "patch_merger.proj_conv.*", Form::cell_kernel},
    {Part::merger_fc2_weight, "patch_merger.proj_out.*", Form::pointwise},
    {Part::merger_projection_weight, "patch_merger.mlp.*"},
    {Part::merger_out_norm_gamma, "patch_merger.after_rms.weight"},
};
/// The publisher's own names.
constexpr Row kPublished[] = {
    {Part::norm1_gamma, "layers.{}.input_layernorm.*"},
    {Part::norm2_gamma, "layers.{}.post_attention_layernorm.*"},
    {Part::fc1_weight, "layers.{}.mlp.dense_h_to_4h.*"},
    {Part::fc2_weight, "layers.{}.mlp.dense_4h_to_h.*"},
    {Part::merger_norm_gamma, "perceive.before_rms.weight"},
    {Part::merger_fc1_weight, "perceive.proj.0.*", Form::cell_kernel},
    {Part::merger_fc2_weight, "perceive.proj.2.*", Form::pointwise},
    {Part::merger_projection_weight, "perceive.mlp.*"},
    {Part::merger_out_norm_gamma, "perceive.after_rms.weight"},
};
/// ... of Hy4.
constexpr Row kPublishedNorm[] = {{Part::merger_norm_gamma, "perceive.norm.weight"}};
static_assert(is_complete(kRows) && is_sound(kPublished) && is_sound(kPublishedNorm));

constexpr Ignored kIgnored[] = {
    {"patch_merger.image_*", "a constant that the language model reads between visual tokens"},
    {"perceive.image_*", "a constant that the language model reads between visual tokens"},
};

bool is_hy4(const SourceFiles& files) {
  return has_model_type(files, {"hy_v4_vl", "hy_v4_vl_vision"});
}

void set_merger(const Json& json, bool is_next, ModelConfig& c) {
  const NormConfig rms{.kind = NormKind::rms, .eps = c.encoder.norm.eps};
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"spatial_merge_size"}, 2);
  merger.cells.token_norm = rms;
  const std::size_t wide = c.embed_dim * merger.cells.size * merger.cells.size;
  merger.add(MergerPlace::mlp, MergerMlp{.hidden_dim = is_next ? wide : 2 * c.embed_dim,
                                         .out_dim = is_next ? find_tower_size(json, {"out_hidden_size"}, 6144)
                                                            : 4 * c.embed_dim,
                                         .activation = c.mlp.activation});
  if (!is_next) {
    merger.add(MergerPlace::projection,
               MergerLinear{.dim = find_tower_size(json, {"text_hidden_size"}, 3072), .bias = true});
    merger.add(MergerPlace::out_norm, MergerNorm{.norm = rms});
  }
  fit_to_cells(json, c);
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  const bool is_next = is_hy4(files);
  ParsedModel out{.config = read_tower(files, json,
                                       {.embed_dim = is_next ? 1536u : 1152u,
                                        .depth = is_next ? 40u : 27u,
                                        .mlp_dim = is_next ? 6144u : 4304u,
                                        .patch_size = 16,
                                        .norm_eps = json.find_double("rms_norm_eps").value_or(1e-5)}),
                  .layout = {kRows},
                  .ignored = {kIgnored, kWholeModelIgnored}};
  ModelConfig& c = out.config;
  c.family = is_next ? "hy4" : "hunyuan";
  VIT_CHECK(c.patch.size != 0, kWhere.with(ErrorKind::format), json.where(), ".patch_size must not be 0");
  const std::size_t edge = find_tower_size(json, {"max_image_size"}, 2048) / c.patch.size;
  c.position.added = AddedTable::patches;
  c.position.added_grid = {edge, edge};
  const std::string mode = json.find_string("interpolate_mode").value_or("bilinear");
  VIT_CHECK(mode == "bilinear" || mode == "bicubic", kWhere, json.where(), ".interpolate_mode is ",
            in_quotes(mode), "; \"bilinear\" and \"bicubic\" are implemented");
  const bool is_linear = mode == "bilinear";
  c.position.resampling =
      is_next     ? is_linear ? TableResampling::bilinear_plus_tenth : TableResampling::bicubic_plus_tenth
      : is_linear ? TableResampling::bilinear
                  : TableResampling::bicubic;
  if (c.position.resampling == TableResampling::bicubic_plus_tenth) c.position.reuse = TableReuse::never;
  set_merger(json, is_next, c);
  if (files.find("layers.0.mlp.dense_h_to_4h.weight") != nullptr) out.layout.add(kPublished);
  if (files.find("perceive.norm.weight") != nullptr) out.layout.add(kPublishedNorm);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!is_hy4(files) && !has_model_type(files, {"hunyuan_vl", "hunyuan_vl_vision"})) return std::nullopt;
  return match_tower(files, kAnchor, kPrefixes);
}

}  // namespace
}  // namespace hf_hunyuan

constinit const Family kHfHunyuanFamily{.name = "hf_hunyuan",
                                        .anchor = hf_hunyuan::kAnchor,
                                        .prefixes = hf_hunyuan::kPrefixes,
                                        .library = "",
                                        .match = hf_hunyuan::match,
                                        .read = hf_hunyuan::read};

}  // namespace vit::internal
