#include "vit/weights/families/query_boxes.h"

#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {

DenseConfig read_query_boxes(const SourceFiles& files, const Json& backbone, std::size_t depth,
                             QueryBoxConfig layers) {
  constexpr Where kWhere{"read_config", ErrorKind::format};
  const Json& json = *files.config;
  const auto size_of = [&](const char* key, std::size_t& value, std::size_t most) {
    value = json.find_size(key, {1, most}).value_or(value);
  };
  size_of("d_model", layers.width, 8192);
  const double expansion = json.find_double("hidden_expansion").value_or(0.5);
  VIT_CHECK(expansion > 0.0 && expansion <= 16.0, kWhere, json.where(),
            ".hidden_expansion must lie between 0 and 16, got ", expansion);
  layers.inner = static_cast<std::size_t>(static_cast<double>(layers.width) * expansion);
  layers.pairs = json.find_size("c2f_num_blocks", {0, 64}).value_or(3);
  layers.activation = read_hf_activation(json, Activation::silu, "activation_function");
  layers.mlp_activation = read_hf_activation(json, Activation::relu, "decoder_activation_function");
  size_of("num_queries", layers.queries, 4096);
  layers.stored_groups = json.find_size("group_detr", {1, 255}).value_or(13);
  size_of("decoder_layers", layers.layers, 64);
  size_of("decoder_self_attention_heads", layers.heads, 1024);
  size_of("decoder_cross_attention_heads", layers.sampling_heads, 1024);
  size_of("decoder_n_points", layers.points, 64);
  size_of("decoder_ffn_dim", layers.mlp_dim, 1u << 18);
  layers.attention_bias = json.find_bool("attention_bias").value_or(true);

  const TensorEntry* const bias = files.find("class_embed.bias", Place::outside);
  const auto names = find_hf_labels(json);
  const std::size_t classes = bias != nullptr && !bias->shape.empty() ? bias->shape[0]
                              : names                                 ? names->size()
                                                                      : 2;
  DenseBranch branch{
      .name = "",
      .taps = read_hf_taps(backbone, depth),
      .tap_norm = false,
      .layers = std::move(layers),
      .outputs = {{.meaning = Output::boxes, .channels = 4, .finish = MapFinish::none},
                  {.meaning = Output::box_classes, .channels = classes, .finish = MapFinish::none}}};
  return {.family = "", .branches = {std::move(branch)}, .labels = read_hf_labels(json, classes)};
}

}  // namespace vit::internal
