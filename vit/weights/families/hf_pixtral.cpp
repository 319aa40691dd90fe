// Pixtral's vision tower, which Mistral Small 3.1 and later share, by itself or in the whole model (Llava and
// Mistral 3 of transformers, LightOnOCR), and in Mistral's own files, whose pairs of channels are neighbors.
// Rows take the even frequencies, columns the odd ones. Source: transformers, models/pixtral, llava,
// mistral3, lighton_ocr; mistralai/mistral-inference, vision_encoder.py and rope.py.
#include <algorithm>

#include "vit/base/check.h"
#include "vit/weights/families/hf_config.h"
#include "vit/weights/families/tower.h"

namespace vit::internal {
namespace hf_pixtral {
namespace {

constexpr Where kWhere{"hf_pixtral", ErrorKind::unsupported};

constexpr Row kRows[] = {
    {Part::patch_weight, "patch_conv.weight", Form::convolution},
    {Part::norm_pre_gamma, "ln_pre.*"},
    {Part::norm1_gamma, "transformer.layers.{}.attention_norm.*"},
    joined(Part::qkv_weight, {0, 3}, "transformer.layers.{}.attention.q_proj.*"),
    joined(Part::qkv_weight, {1, 3}, "transformer.layers.{}.attention.k_proj.*"),
    joined(Part::qkv_weight, {2, 3}, "transformer.layers.{}.attention.v_proj.*"),
    {Part::proj_weight, "transformer.layers.{}.attention.o_proj.*"},
    {Part::norm2_gamma, "transformer.layers.{}.ffn_norm.*"},
    {Part::gate_weight, "transformer.layers.{}.feed_forward.gate_proj.*"},
    {Part::fc1_weight, "transformer.layers.{}.feed_forward.up_proj.*"},
    {Part::fc2_weight, "transformer.layers.{}.feed_forward.down_proj.*"},
    at(Place::outside, {Part::merger_norm_gamma, "multi_modal_projector.norm.*"}),
    at(Place::outside,
       {Part::merger_reduce_weight, "multi_modal_projector.patch_merger.merging_layer.*", Form::cells}),
    at(Place::outside, {Part::merger_fc1_weight, "multi_modal_projector.linear_1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "multi_modal_projector.linear_2.*"}),
};
constexpr Row kLightOn[] = {
    at(Place::outside, {Part::merger_norm_gamma, "vision_projection.norm.*"}),
    at(Place::outside,
       {Part::merger_reduce_weight, "vision_projection.patch_merger.merging_layer.*", Form::cells}),
    at(Place::outside, {Part::merger_fc1_weight, "vision_projection.linear_1.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "vision_projection.linear_2.*"}),
};
constexpr Row kMistral[] = {
    joined(Part::qkv_weight, {0, 3}, "transformer.layers.{}.attention.wq.*"),
    joined(Part::qkv_weight, {1, 3}, "transformer.layers.{}.attention.wk.*"),
    joined(Part::qkv_weight, {2, 3}, "transformer.layers.{}.attention.wv.*"),
    {Part::proj_weight, "transformer.layers.{}.attention.wo.*"},
    {Part::gate_weight, "transformer.layers.{}.feed_forward.w1.*"},
    {Part::fc1_weight, "transformer.layers.{}.feed_forward.w3.*"},
    {Part::fc2_weight, "transformer.layers.{}.feed_forward.w2.*"},
    at(Place::outside, {Part::merger_norm_gamma, "pre_mm_projector_norm.*"}),
    at(Place::outside, {Part::merger_reduce_weight, "patch_merger.merging_layer.*", Form::cells}),
    at(Place::outside, {Part::merger_fc1_weight, "vision_language_adapter.w_in.*"}),
    at(Place::outside, {Part::merger_fc2_weight, "vision_language_adapter.w_out.*"}),
};
static_assert(is_complete(kRows) && is_sound(kLightOn) && is_sound(kMistral));

/// params.json of Mistral's own files.
bool is_mistral(const SourceFiles& files) {
  return files.config && hf_model_type(files).empty() && files.config->find("vision_encoder");
}

/// Names of the joint's tensors, by layout.
struct Joint {
  const char* norm;
  const char* reduce;
  const char* fc2;
};
constexpr Joint kHfJoint{"multi_modal_projector.norm.weight",
                         "multi_modal_projector.patch_merger.merging_layer.weight",
                         "multi_modal_projector.linear_2.weight"};
constexpr Joint kLightOnJoint{"vision_projection.norm.weight",
                              "vision_projection.patch_merger.merging_layer.weight",
                              "vision_projection.linear_2.weight"};
constexpr Joint kMistralJoint{"pre_mm_projector_norm.weight", "patch_merger.merging_layer.weight",
                              "vision_language_adapter.w_out.weight"};

void check_features(const Json& json) {
  const auto layer = json.find_integer("vision_feature_layer").value_or(-1);
  const std::string strategy = json.find_string("vision_feature_select_strategy").value_or("full");
  VIT_CHECK(layer == -1 && strategy == "full", kWhere, json.where(), ": vision_feature_layer ", layer,
            " and vision_feature_select_strategy ", strategy,
            " are not implemented for this tower; -1 and full are");
}

/// `merges`: cells of several tokens, after a norm; without, each token goes through the MLP.
void set_merger(const SourceFiles& files, const Joint& joint, bool merges, bool has_bias, ModelConfig& c) {
  const Json& json = *files.config;
  MergerConfig& merger = c.merger.emplace();
  const auto own = json.find("vision_encoder");
  merger.cells.size = merges ? find_tower_size(own ? *own : json, {"spatial_merge_size"}, 2) : 1;
  if (merges) {
    const auto text = json.find("text_config");
    const double eps =
        text ? text->find_double("rms_norm_eps").value_or(1e-6) : json.find_double("norm_eps").value_or(1e-5);
    merger.cells.token_norm = {.kind = NormKind::rms, .eps = static_cast<float>(eps)};
    merger.add(MergerPlace::reduce, MergerLinear{.dim = c.embed_dim});
  }
  const std::size_t width = rows_of_tensor(files, joint.fc2, Place::outside, text_width(files));
  merger.add(MergerPlace::mlp,
             MergerMlp{.hidden_dim = width,
                       .out_dim = width,
                       .bias = has_bias,
                       .activation = read_hf_activation(json, Activation::gelu, "projector_hidden_act")});
}

void set_joint(const SourceFiles& files, ModelConfig& c) {
  const Json& json = *files.config;
  if (is_mistral(files)) {
    const Json own = json.at("vision_encoder");
    const bool merges = own.find_string("mm_projector_id").value_or("") == "patch_merge";
    set_merger(files, kMistralJoint, merges, own.find_bool("adapter_bias").value_or(!merges), c);
  } else if (has_model_type(files, {"lighton_ocr"})) {
    set_merger(files, kLightOnJoint, true, false, c);
  } else if (has_model_type(files, {"mistral3"})) {
    check_features(json);
    set_merger(files, kHfJoint, true, json.find_bool("multimodal_projector_bias").value_or(false), c);
  } else if (is_whole_model(json)) {
    check_features(json);
    set_merger(files, kHfJoint, false, json.find_bool("multimodal_projector_bias").value_or(true), c);
  }
}

ModelConfig read_config(const SourceFiles& files, const Json& json) {
  const bool mistral = is_mistral(files), light_on = has_model_type(files, {"lighton_ocr"});
  ModelConfig c = read_tower(files, json,
                             {.embed_dim = 1024,
                              .depth = 24,
                              .mlp_dim = 4096,
                              .patch_size = 16,
                              .image_size = 1024,
                              .norm_eps = 1e-5,
                              .activation = mistral || light_on ? Activation::silu : Activation::gelu});
  c.family = "pixtral";
  c.library = mistral ? "Mistral" : "transformers";
  c.attention.head_dim = find_tower_size(json, {"head_dim"}, 0);
  if (c.attention.num_heads * c.attention.head_dim == c.embed_dim) c.attention.head_dim = 0;
  c.encoder.norm.kind = NormKind::rms;
  c.patch.bias = c.attention.qkv_bias = c.attention.proj_bias = c.mlp.bias = false;
  c.encoder.norm_pre = true;
  c.mlp.kind = MlpKind::gated;
  add_tower_rope(json, c);
  c.position.frequencies = AxisFrequencies::alternating;
  if (mistral) c.position.pairing = RopePairing::neighbors;
  set_joint(files, c);
  return c;
}

ParsedModel read(const SourceFiles& files) {
  const Json json = tower_config(*files.config);
  ParsedModel out{.config = read_config(files, json), .layout = {kRows}, .ignored = {kWholeModelIgnored}};
  if (is_mistral(files)) out.layout.add(kMistral);
  if (has_model_type(files, {"lighton_ocr"})) out.layout.add(kLightOn);
  if (out.config.merger) fit_to_cells(json, out.config);
  add_whole_model_notes(files, out);
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (!files.config) return std::nullopt;
  const bool is_whole = has_model_type(files, {"mistral3", "lighton_ocr", "llava"}) &&
                        tower_config(*files.config).find_string("model_type") == "pixtral";
  if (!is_mistral(files) && !is_whole && !has_model_type(files, {"pixtral"})) return std::nullopt;
  return match_tower(files, "patch_conv.weight");
}

}  // namespace
}  // namespace hf_pixtral

constinit const Family kHfPixtralFamily{.name = "hf_pixtral",
                                        .anchor = "patch_conv.weight",
                                        .library = "",
                                        .match = hf_pixtral::match,
                                        .read = hf_pixtral::read};

}  // namespace vit::internal
