// The vision tower of Step 3.7, bare or inside the whole model: a Perception Encoder without class token, of
// any size, whose tokens two strided convolutions make fewer. A model may be given crops of an image besides
// it; each is an image here. Source: transformers, models/step3p7.
#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/sam.h"

namespace vit::internal {
namespace hf_step {
namespace {

constexpr std::string_view kAnchor = "conv1.weight";
constexpr std::string_view kPrefixes[] = {"vision_model.", "model.vision_model.", ""};

constexpr Row kRows[] = {
    {Part::patch_weight, kAnchor, Form::convolution},
    {Part::position_table, "positional_embedding"},
    {Part::norm_pre_gamma, "ln_pre.*"},
    {Part::norm1_gamma, "transformer.resblocks.{}.ln_1.*"},
    {Part::qkv_weight, "transformer.resblocks.{}.attn.in_proj_weight"},
    {Part::qkv_bias, "transformer.resblocks.{}.attn.in_proj_bias"},
    {Part::proj_weight, "transformer.resblocks.{}.attn.out_proj.*"},
    {Part::scale1, "transformer.resblocks.{}.ls_1.gamma"},
    {Part::norm2_gamma, "transformer.resblocks.{}.ln_2.*"},
    {Part::fc1_weight, "transformer.resblocks.{}.mlp.c_fc.*"},
    {Part::fc2_weight, "transformer.resblocks.{}.mlp.c_proj.*"},
    {Part::scale2, "transformer.resblocks.{}.ls_2.gamma"},
    {Part::merger_second_convolution_weight, "vit_downsampler1.*", Form::window_kernel},
    {Part::merger_third_convolution_weight, "vit_downsampler2.*", Form::window_kernel},
    at(Place::outside, {Part::merger_projection_weight, "vit_large_projector.*"}),
};
static_assert(is_complete(kRows));

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ParsedModel out{.config = read_tower(files, json,
                                       {.embed_dim = 1536,
                                        .depth = 47,
                                        .image_size = 728,
                                        .norm_eps = json.find_double("layer_norm_eps").value_or(1e-5),
                                        .activation = Activation::quick_gelu}),
                  .layout = {kRows},
                  .ignored = {kWholeModelIgnored}};
  ModelConfig& c = out.config;
  c.family = "step3";
  c.embed_dim = find_tower_size(json, {"hidden_size", "width"}, c.embed_dim);
  c.encoder.depth = find_tower_size(json, {"num_hidden_layers", "layers"}, c.encoder.depth);
  c.attention.num_heads = find_tower_size(json, {"num_attention_heads", "heads"}, c.attention.num_heads);
  const double hidden =
      static_cast<double>(c.embed_dim) * json.find_double("mlp_ratio").value_or(8960.0 / 1536.0);
  c.mlp.dim = rows_of_tensor(files, "transformer.resblocks.0.mlp.c_fc.weight", Place::tower,
                             hidden >= 1 && hidden < 1e6 ? static_cast<std::size_t>(hidden) : 0);
  VIT_CHECK(c.patch.size != 0, (Where{"hf_step", ErrorKind::format}), json.where(),
            ".patch_size must not be 0");
  c.patch.bias = false;
  c.encoder.norm_pre = c.encoder.layer_scale = true;
  c.position.added = AddedTable::patches;
  c.position.added_grid = c.native_grid();
  c.position.resampling = TableResampling::bilinear;
  add_tower_rope(json, c);
  c.position.axis_order = AxisOrder::x_then_y;
  c.position.pairing = RopePairing::neighbors;  // of the files; the library reorders q and k to halves
  MergerConfig& merger = c.merger.emplace();
  add_strided_convolutions(merger, 2 * c.embed_dim, 4 * c.embed_dim, /*bias=*/true);
  if (is_whole_model(*files.config)) {
    merger.add(MergerPlace::projection,
               MergerLinear{.dim = rows_of_tensor(files, "vit_large_projector.weight", Place::outside,
                                                  text_width(files)),
                            .bias = files.config->find_bool("projector_bias").value_or(false)});
  }
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!has_model_type(files, {"step3p7", "step3p5_vision"})) return std::nullopt;
  Match found = match_tower(files, kAnchor, kPrefixes);
  found.outside = "";
  return found;
}

}  // namespace
}  // namespace hf_step

constinit const Family kHfStepFamily{.name = "hf_step",
                                     .anchor = "vit_downsampler1.weight",
                                     .prefixes = hf_step::kPrefixes,
                                     .library = "",
                                     .match = hf_step::match,
                                     .read = hf_step::read};

}  // namespace vit::internal
