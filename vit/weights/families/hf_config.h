// What the pages of the Hugging Face families share: reading config.json with the defaults of its class.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "vit/weights/families/family.h"

namespace vit::internal {

/// Values that a config.json may leave out because its class has them as defaults.
struct HfDefaults {
  std::size_t hidden_size = 768, num_layers = 12, num_heads = 12, intermediate_size = 3072;
  std::size_t patch_size = 16, image_size = 224;
  double norm_eps = 1e-12;
  Activation activation = Activation::gelu;
  std::string_view own_override{};  // the one override that the page has; "" = none
};

/// config.json's model_type; "" if there is none.
std::string hf_model_type(const SourceFiles& files);

/// The class that config.json names, "" if it names none.
std::string hf_architecture(const SourceFiles& files);

/// Whether config.json names a class whose name contains `part`: "ForImageClassification", "WithProjection".
bool hf_class_contains(const Json& config, std::string_view part);

/// The object under the first of these keys that has one.
std::optional<Json> find_nested(const Json& config, std::initializer_list<std::string_view> keys);
/// The same; `config` itself if there is none.
Json nested_config(const Json& config, std::initializer_list<std::string_view> keys);

/// The part of config.json of a tower, "vision" or "text": vision_config; in CLIP and what was made of it
/// vision_config_dict before that; the whole if there is neither.
Json hf_tower_part(const Json& config, const std::string& tower);

/// Sizes, epsilon and activation; no position, no head. `json` may be a nested vision_config; `files` is for
/// messages and refuses --set, which sets timm's arguments.
ModelConfig read_hf_sizes(const SourceFiles& files, const Json& json, const HfDefaults& defaults);

Activation read_hf_activation(const Json& config, Activation fallback, const char* key = "hidden_act");

/// Width and kind of the MLP by mlp_ratio and use_swiglu_ffn. A gated MLP keeps two thirds of the hidden
/// width, rounded up to a multiple of 8.
void set_hf_mlp(const Json& json, ModelConfig& config);

/// A learned table of `added_prefix_rows` rows and those of the native grid, resampled as transformers does.
void add_hf_table(ModelConfig& config, std::size_t added_prefix_rows,
                  TableResampling resampling = TableResampling::bicubic);

/// DINOv3's rotation: centered coordinates, halves of a head, rope_theta.
void set_dinov3_position(const Json& json, ModelConfig& config);

/// Number of classes of the classifier called `name` (outside the image tower); 0 if there is none. Its
/// two tensors decide, the labels where those disagree or are missing though the class has a classifier.
std::size_t count_hf_classes(const SourceFiles& files, const std::string& name);

/// The member id2label; nothing if it is absent or null.
std::optional<Json> find_hf_labels(const Json& config);

/// How many classes config.json says there are: by names, by num_labels, or the library's two.
std::size_t count_hf_labels(const Json& config);
/// Class names in index order, a number for a class without one; nothing if there are more names than
/// classes, or none but placeholders.
std::vector<std::string> read_hf_labels(const Json& config, std::size_t num_classes);

/// What a file of ViT or DINOv2 calls the parts of its blocks. All published ones keep the names of the
/// library's first releases, and save_pretrained writes them; with save_original_format=False it writes those
/// of the modules of release 5.
bool has_module_names(const SourceFiles& files);

/// What precedes the blocks of ViT and DINOv2.
inline constexpr Row kHfEmbeddings[] = {
    {Part::patch_weight, "embeddings.patch_embeddings.projection.weight", Form::convolution},
    {Part::patch_bias, "embeddings.patch_embeddings.projection.bias"},
    {Part::class_token, "embeddings.cls_token"},
    {Part::distillation_token, "embeddings.distillation_token"},
    {Part::register_tokens, "embeddings.register_tokens"},
    {Part::position_table, "embeddings.position_embeddings"},
};
/// The blocks of ViT by their published names, and the norm after them.
inline constexpr Row kHfVitBlocks[] = {
    {Part::norm1_gamma, "encoder.layer.{}.layernorm_before.*"},
    joined(Part::qkv_weight, {0, 3}, "encoder.layer.{}.attention.attention.query.*"),
    joined(Part::qkv_weight, {1, 3}, "encoder.layer.{}.attention.attention.key.*"),
    joined(Part::qkv_weight, {2, 3}, "encoder.layer.{}.attention.attention.value.*"),
    {Part::proj_weight, "encoder.layer.{}.attention.output.dense.*"},
    {Part::norm2_gamma, "encoder.layer.{}.layernorm_after.*"},
    {Part::fc1_weight, "encoder.layer.{}.intermediate.dense.*"},
    {Part::fc2_weight, "encoder.layer.{}.output.dense.*"},
    {Part::norm_gamma, "layernorm.*"},
};

}  // namespace vit::internal
