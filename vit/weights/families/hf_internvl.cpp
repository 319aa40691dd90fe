// InternViT, the vision tower of InternVL and Qianfan-OCR, by itself or in the whole model: a ViT with layer
// scale and without final norm, of whose patches cells of 2 x 2 are visual tokens. Source: transformers,
// models/internvl and qianfan_ocr.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_internvl {
namespace {

constexpr Where kWhere{"hf_internvl", ErrorKind::unsupported};

constexpr Row kRows[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.projection.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.projection.bias"},
    {Part::class_token, "embeddings.cls_token"},
    {Part::position_table, "embeddings.position_embeddings"},
    {Part::norm_gamma, "layernorm.*"},
    at(Place::outside, {Part::merger_norm_gamma, "multi_modal_projector.layer_norm.*"}),
    at(Place::outside, {Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"}),
};
constexpr Row kInternBlocks[] = {
    {Part::norm1_gamma, "encoder.layer.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.v_proj.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.projection_layer.*"},
    {Part::scale1, "encoder.layer.{}.lambda_1"},
    {Part::norm2_gamma, "encoder.layer.{}.layernorm_after.*"},
    {Part::fc1_weight, "encoder.layer.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layer.{}.mlp.fc2.*"},
    {Part::scale2, "encoder.layer.{}.lambda_2"},
};
constexpr Row kQianfanBlocks[] = {
    {Part::norm1_gamma, "layers.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "layers.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "layers.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "layers.{}.attention.v_proj.*"),
    {Part::proj_weight, "layers.{}.attention.projection_layer.*"},
    {Part::scale1, "layers.{}.lambda_1"},
    {Part::norm2_gamma, "layers.{}.layernorm_after.*"},
    {Part::fc1_weight, "layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "layers.{}.mlp.fc2.*"},
    {Part::scale2, "layers.{}.lambda_2"},
};
// Of the whole model, as its publisher names them.
constexpr Row kPublished[] = {
    {Part::patch_weight, "embeddings.patch_embedding.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embedding.bias"},
    {Part::class_token, "embeddings.class_embedding"},
    {Part::position_table, "embeddings.position_embedding"},
    {Part::norm1_gamma, "encoder.layers.{}.norm1.*"},
    {Part::qkv_weight, "encoder.layers.{}.attn.qkv.*"},
    {Part::proj_weight, "encoder.layers.{}.attn.proj.*"},
    {Part::scale1, "encoder.layers.{}.ls1"},
    {Part::norm2_gamma, "encoder.layers.{}.norm2.*"},
    {Part::fc1_weight, "encoder.layers.{}.mlp.fc1.*"},
    {Part::fc2_weight, "encoder.layers.{}.mlp.fc2.*"},
    {Part::scale2, "encoder.layers.{}.ls2"},
    at(Place::outside, {Part::merger_norm_gamma, "mlp1.0.*"}),
    at(Place::outside, {Part::merger_fc1_weight, "mlp1.1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "mlp1.3.*"}),
};
constexpr Ignored kIgnored[] = {{"embeddings.mask_token", "used in training only"}};
constexpr std::string_view kAnchor = "embeddings.patch_embeddings.projection.weight";
constexpr std::string_view kPublishedAnchor = "embeddings.patch_embedding.weight";
static_assert(is_complete(kPublished) && is_sound(kRows) && is_sound(kInternBlocks) &&
              is_sound(kQianfanBlocks));

bool is_qianfan(const SourceFiles& files) {
  return has_model_type(files, {"qianfan_ocr", "qianfan_ocr_vision"});
}

void set_merger(const SourceFiles& files, ModelConfig& c) {
  const Json& json = *files.config;
  const double ratio = json.find_double("downsample_ratio").value_or(0.5);
  VIT_CHECK(ratio == 1.0 || ratio == 0.5 || ratio == 0.25, kWhere, json.where(),
            ".downsample_ratio must be 1, 0.5 or 0.25, found ", ratio);
  MergerConfig& merger = c.merger.emplace();
  merger.cells.size = static_cast<std::size_t>(1.0 / ratio);
  merger.blocks = blocks_of_features(json, {.is_final = true, .drops_first = true}, c);
  merger.add(MergerPlace::cell_norm, MergerNorm{.norm = {.eps = 1e-5f}});
  const std::size_t width =
      rows_of_tensor(files, "multi_modal_projector.linear_2.weight", Place::outside,
                     rows_of_tensor(files, "mlp1.3.weight", Place::outside, text_width(files)));
  merger.add(MergerPlace::mlp,
             MergerMlp{.hidden_dim = width,
                       .out_dim = width,
                       .activation = read_hf_activation(json, Activation::gelu, "projector_hidden_act")});
  fit_to_cells(json, c);
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ModelConfig c = read_hf_sizes(files, json,
                                {.hidden_size = 1024,
                                 .num_layers = 24,
                                 .num_heads = 16,
                                 .intermediate_size = 4096,
                                 .patch_size = 14,
                                 .image_size = 448,
                                 .norm_eps = 1e-6});
  c.family = "internvl";
  VIT_CHECK(!json.find_bool("use_qk_norm").value_or(false), kWhere, json.where(),
            ".use_qk_norm is not implemented for InternViT; models of the size 300M have none");
  if (json.find_string("norm_type").value_or("layer_norm") == "rms_norm") c.encoder.norm.kind = NormKind::rms;
  c.attention.qkv_bias = json.find_bool("attention_bias").value_or(is_qianfan(files));
  c.encoder.layer_scale = true;
  c.encoder.token_norm = !json.find_bool("use_mean_pooling").value_or(true);
  c.head.pooling = Pooling::none;
  c.image.stack = StackRule::apart;  // tiles
  if (json.find_bool("use_absolute_position_embeddings").value_or(true)) add_hf_table(c, 1);
  if (is_whole_model(*files.config)) set_merger(files, c);
  ParsedModel out{.config = std::move(c), .layout = {kRows}, .ignored = {kIgnored, kWholeModelIgnored}};
  if (files.find(kPublishedAnchor) != nullptr) {
    out.layout.add(kPublished);
  } else if (is_qianfan(files)) {
    out.layout.add(kQianfanBlocks);
  } else {
    out.layout.add(kInternBlocks);
  }
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!is_qianfan(files) && !has_model_type(files, {"internvl", "internvl_vision"})) return std::nullopt;
  const bool is_published =
      files.has_weights && std::ranges::any_of(files.tensors.entries(), [](const TensorEntry& entry) {
        return entry.name.ends_with(kPublishedAnchor);
      });
  return match_tower(files, is_published ? kPublishedAnchor : kAnchor);
}

}  // namespace
}  // namespace hf_internvl

constinit const Family kHfInternVlFamily{.name = "hf_internvl",
                                         .anchor = hf_internvl::kAnchor,
                                         .library = "",
                                         .match = hf_internvl::match,
                                         .read = hf_internvl::read};

}  // namespace vit::internal
