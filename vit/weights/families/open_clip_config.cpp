// Fields of open_clip_config.json that both towers have.
#include "vit/weights/families/open_clip_config.h"

#include <algorithm>
#include <iterator>

#include "vit/base/check.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"open_clip", ErrorKind::unsupported};

/// Fields that change the arithmetic and are not implemented: CoCa's pooling, variants of attention.
constexpr std::string_view kSwitches[] = {"attentional_pool", "qk_norm",          "scaled_cosine_attn",
                                          "scale_heads",      "scale_attn_inner", "scale_attn",
                                          "scale_fc"};

constexpr std::string_view kModelFields[] = {
    "embed_dim",  "vision_cfg",  "text_cfg",        "multimodal_cfg",   "custom_text",          "quick_gelu",
    "cast_dtype", "output_dict", "init_logit_bias", "init_logit_scale", "nonscalar_logit_scale"};

}  // namespace

std::optional<Json> only_member(const Json& kwargs, std::string_view key) {
  for (std::size_t i = 0; i < kwargs.size(); ++i) {
    VIT_CHECK(kwargs[i].key() == key, kWhere, kwargs[i].where(), " is not implemented; ", key, " is");
  }
  return kwargs.find(key);
}

bool is_open_clip_switch(std::string_view key) {
  return std::ranges::find(kSwitches, key) != std::end(kSwitches);
}

Json open_clip_model_cfg(const SourceFiles& files) {
  Json cfg = files.config->at("model_cfg");
  for (std::size_t i = 0; i < cfg.size(); ++i) {
    VIT_CHECK(std::ranges::find(kModelFields, cfg[i].key()) != std::end(kModelFields), kWhere, cfg[i].where(),
              ": unknown field");
  }
  return cfg;
}

GridSize read_open_clip_image_size(const Json& vision_cfg) {
  const auto size = vision_cfg.find("image_size");
  return size ? read_edges(*size) : GridSize{224, 224};
}

}  // namespace vit::internal
