#include "vit/weights/families/hf_backbone.h"

#include <charconv>

#include "vit/base/check.h"
#include "vit/io/in_quotes.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"hf_backbone", ErrorKind::unsupported};

const Family& backbone_family(const SourceFiles& inner) {
  const std::string type = hf_model_type(inner);
  for (const Family* family :
       {&kHfDinov2Family, &kHfDinov3Family, &kHfTipsv2Family, &kHfVitFamily, &kHfLwDetrVitFamily}) {
    if (family->match(inner)) return *family;
  }
  fail(kWhere, inner.config_name(), ": backbone_config has the model_type ", in_quotes(type),
       "; backbones of dinov2, dinov2_with_registers, dinov3_vit, tipsv2_vision_model, vit, rf_detr_dinov2 "
       "and lw_detr_vit are implemented");
}

}  // namespace

SourceFiles backbone_files(const SourceFiles& files) {
  const auto nested = files.config->find("backbone_config");
  VIT_CHECK(
      nested && nested->is_object(), kWhere, files.config_name(),
      ": backbone_config must describe the backbone; one that is named (backbone, use_timm_backbone) is not "
      "implemented");
  return {.tensors = files.tensors,
          .options = files.options,
          .config = *nested,
          .weights_name = files.weights_name,
          .has_weights = files.has_weights,
          .root = files.root,
          .in_training_file = files.in_training_file,
          .match = files.match};
}

std::optional<Match> match_backbone(const SourceFiles& files) {
  const SourceFiles inner = backbone_files(files);
  std::optional<Match> found = backbone_family(inner).match(inner);
  if (!files.has_weights) found->prefix = "backbone.";
  return found;
}

ParsedModel read_backbone(const SourceFiles& files) {
  const SourceFiles inner = backbone_files(files);
  ParsedModel out = backbone_family(inner).read(inner);
  if (const auto classes = files.config->find("architectures");
      classes && classes->is_array() && classes->size() != 0)
    out.config.architecture = (*classes)[0].as_string();
  return out;
}

std::vector<std::size_t> read_hf_taps(const Json& config, std::size_t depth) {
  std::vector<std::size_t> taps;
  const auto add = [&](const Json& value, std::int64_t stage) {
    const auto last = static_cast<std::int64_t>(depth);
    if (stage < 0 && stage >= -last) stage += last + 1;
    VIT_CHECK(stage >= 1 && stage <= last, kWhere, value.where(), ": stage ", stage,
              " is none of the blocks, which are 1 to ", depth);
    taps.push_back(static_cast<std::size_t>(stage) - 1);
  };
  if (const auto indices = config.find("out_indices"); indices && indices->is_array()) {
    for (std::size_t i = 0; i < indices->size(); ++i) {
      add((*indices)[i], (*indices)[i].as_integer());
    }
    return taps;
  }
  const auto names = config.find("out_features");
  VIT_CHECK(names && names->is_array(), kWhere, config.where(), " must hold out_indices or out_features");
  for (std::size_t i = 0; i < names->size(); ++i) {
    const std::string name((*names)[i].as_string());
    int stage = 0;
    const bool is_stage = name.starts_with("stage");
    const auto [end, error] =
        std::from_chars(name.data() + (is_stage ? 5 : 0), name.data() + name.size(), stage);
    VIT_CHECK(is_stage && error == std::errc() && end == name.data() + name.size(), kWhere,
              (*names)[i].where(), " is ", in_quotes(name), ", expected \"stage1\", \"stage2\", ...");
    add((*names)[i], stage);
  }
  return taps;
}

std::span<const HeadRow> tap_norm_rows(const ModelConfig& backbone) {
  if (backbone.family == "dinov3" || backbone.family == "tipsv2") return kNormTap;
  return kLayerNormTap;
}

}  // namespace vit::internal
