// ERNIE-4.5-VL's vision tower, by itself or inside the whole model: Qwen2-VL's blocks on patches of one frame
// and a norm at the end. Its resampler has an MLP for the cells of a frame and one for pairs of frames; an
// image is a pair of equal ones, so the weights of both halves are added. Source: transformers,
// models/ernie4_5_vl_moe and its conversion.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_ernie_vl {
namespace {

constexpr Where kWhere{"hf_ernie_vl", ErrorKind::unsupported};

constexpr Row outside(Part part, std::string_view source, Form form = Form::as_stored) {
  return at(Place::outside, {part, source, form});
}

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_embed.proj.weight"},
    {Part::norm1_gamma, "blocks.{}.norm1.*"},
    {Part::qkv_weight, "blocks.{}.attn.qkv.*"},
    {Part::proj_weight, "blocks.{}.attn.proj.*"},
    {Part::norm2_gamma, "blocks.{}.norm2.*"},
    {Part::fc1_weight, "blocks.{}.mlp.fc1.*"},
    {Part::fc2_weight, "blocks.{}.mlp.fc2.*"},
    {Part::norm_gamma, "ln.*"},
    outside(Part::merger_fc1_weight, "resampler_model.spatial_linear.0.*"),
    outside(Part::merger_fc2_weight, "resampler_model.spatial_linear.2.*"),
    outside(Part::merger_mlp_norm_gamma, "resampler_model.spatial_linear.3.*"),
    outside(Part::merger_second_fc1_weight, "resampler_model.temporal_linear.0.*", Form::inputs_added),
    outside(Part::merger_second_fc2_weight, "resampler_model.temporal_linear.2.*"),
    outside(Part::merger_second_norm_gamma, "resampler_model.temporal_linear.3.*"),
    outside(Part::merger_projection_weight, "resampler_model.mlp.*"),
    outside(Part::merger_out_norm_gamma, "resampler_model.after_norm.weight"),
};
/// The names of the modules of transformers.
constexpr Row kModuleNames[] = {
    outside(Part::merger_fc1_weight, "resampler_model.spatial_linear.fc1.*"),
    outside(Part::merger_fc2_weight, "resampler_model.spatial_linear.fc2.*"),
    outside(Part::merger_mlp_norm_gamma, "resampler_model.spatial_linear.ln.*"),
    outside(Part::merger_second_fc1_weight, "resampler_model.temporal_linear.fc1.*", Form::inputs_added),
    outside(Part::merger_second_fc2_weight, "resampler_model.temporal_linear.fc2.*"),
    outside(Part::merger_second_norm_gamma, "resampler_model.temporal_linear.ln.*"),
};
static_assert(is_complete(kRows) && is_sound(kModuleNames));

void set_merger(const SourceFiles& files, const Json& json, ModelConfig& c) {
  VIT_CHECK(find_tower_size(json, {"temporal_merge_size"}, 2) == 2, kWhere, json.where(),
            ".temporal_merge_size must be 2");
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = find_tower_size(json, {"spatial_merge_size"}, 2);
  fit_to_cells(json, c);
  const std::size_t width = merger.cell_width(c.embed_dim);
  const MergerMlp mlp{.hidden_dim = width, .out_dim = width};
  const MergerNorm norm{.norm = {.eps = c.encoder.norm.eps}};
  merger.add(MergerPlace::mlp, mlp);
  merger.add(MergerPlace::mlp_norm, norm);
  merger.add(MergerPlace::second_mlp, mlp);
  merger.add(MergerPlace::second_norm, norm);
  merger.add(MergerPlace::projection, MergerLinear{.dim = rows_of_tensor(files, "resampler_model.mlp.weight",
                                                                         Place::outside, text_width(files)),
                                                   .bias = true});
  const Json of_text = nested_config(*files.config, {"text_config"});
  const double eps = of_text.find_double("rms_norm_eps").value_or(1e-5);
  merger.add(MergerPlace::out_norm,
             MergerNorm{.norm = {.kind = NormKind::rms, .eps = static_cast<float>(eps)}});
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  ModelConfig c = read_tower(
      files, json,
      {.norm_eps = json.find_double("rms_norm_eps").value_or(1e-6), .activation = Activation::quick_gelu});
  c.family = "ernie-vl";
  if (const auto ratio = json.find_double("mlp_ratio"); ratio && !json.find("intermediate_size"))
    c.mlp.dim = static_cast<std::size_t>(static_cast<double>(c.embed_dim) * *ratio);
  c.patch.bias = false;
  c.encoder.token_norm = true;
  add_tower_rope(json, c);
  if (is_whole_model(*files.config)) set_merger(files, json, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out{.config = read_config(files, tower_config(*files.config)),
                  .layout = {kRows},
                  .ignored = {kWholeModelIgnored}};
  if (files.find("resampler_model.spatial_linear.fc1.weight", Place::outside) != nullptr)
    out.layout.add(kModuleNames);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"ernie4_5_vl_moe", "ernie4_5_vl_moe_vision", "ernie4_5_moe_vl"}))
    return std::nullopt;
  return match_tower(files, "patch_embed.proj.weight");
}

}  // namespace
}  // namespace hf_ernie_vl

constinit const Family kHfErnieVlFamily{.name = "hf_ernie_vl",
                                        .anchor = "patch_embed.proj.weight",
                                        .library = "",
                                        .match = hf_ernie_vl::match,
                                        .read = hf_ernie_vl::read};

}  // namespace vit::internal
