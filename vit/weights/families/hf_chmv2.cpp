// Hugging Face's CHMv2, canopy height: DINOv3 with a DPT head whose depths are bins. Source: transformers,
// models/chmv2.
#include <algorithm>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/dpt_tables.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_chmv2 {
namespace {

constexpr Where kWhere{"hf_chmv2", ErrorKind::unsupported};

constexpr HeadRow kHead[] = {
    {"readout.{}.*", "head.reassemble_stage.readout_projects.{}.0.*"},
    {"project.{}.*", "head.reassemble_stage.layers.{}.projection.*"},
    {"resize.{}.*", "head.reassemble_stage.layers.{}.resize.*"},
    {"neck.{}.*", "head.convs.{}.*"},
    {"fusion.{}.lateral.conv1.*", "head.fusion_layers.{}.residual_layer1.convolution1.*"},
    {"fusion.{}.lateral.conv2.*", "head.fusion_layers.{}.residual_layer1.convolution2.*"},
    {"fusion.{}.unit.conv1.*", "head.fusion_layers.{}.residual_layer2.convolution1.*"},
    {"fusion.{}.unit.conv2.*", "head.fusion_layers.{}.residual_layer2.convolution2.*"},
    {"fusion.{}.project.*", "head.fusion_layers.{}.projection.*"},
    {"narrow.*", "head.conv_depth.head.0.*"},
    {"output.0.hidden.*", "head.conv_depth.head.2.*"},
    {"output.0.last.*", "head.conv_depth.head.4.*"},
};

/// Heights of the bins are an eighth of those that come out.
constexpr float kScale = 8.0f;

void check_strategy(const Json& config, const char* key) {
  if (const auto strategy = config.find(key))
    static_cast<void>(read_choice<bool>(*strategy, {{"chmv2_mixlog", true}}));
}

DenseConfig read_head(const Json& config, const ModelConfig& backbone) {
  check_dpt_factors(config);
  check_strategy(config, "bins_strategy");
  check_strategy(config, "norm_strategy");
  const Json inner = config.at("backbone_config");
  DptConfig dpt;
  dpt.readout = ClassReadout::projected;
  if (const auto type = config.find("readout_type"))
    dpt.readout = read_choice<ClassReadout>(*type, {{"ignore", ClassReadout::dropped},
                                                    {"add", ClassReadout::added},
                                                    {"project", ClassReadout::projected}});
  dpt.channels = read_dpt_channels(config, "post_process_channels", {128, 256, 512, 1024});
  dpt.features = config.find_size("fusion_hidden_size").value_or(256);
  dpt.hidden = config.find_size("head_hidden_size").value_or(128);
  dpt.fusion_size = FusionSize::doubled;
  dpt.head_size = HeadSize::doubled;
  DenseBranch branch{
      .name = "",
      .taps = read_hf_taps(inner, backbone.encoder.depth),
      .tap_norm = inner.find_bool("apply_layernorm").value_or(true),
      .tap_norm_eps = backbone.encoder.norm.eps,
      .layers = std::move(dpt),
      .outputs = {
          {.meaning = Output::depth,
           .channels = config.find_size("number_output_channels").value_or(256),
           .finish = MapFinish::log_bins,
           .scale = kScale,
           .offset = 1e-8f,
           .lowest = static_cast<float>(config.find_double("min_depth").value_or(0.001)),
           .highest = static_cast<float>(config.find_double("max_depth").value_or(96.0) / double{kScale})}}};
  VIT_CHECK(
      branch.tap_norm || std::ranges::find(branch.taps, backbone.encoder.depth - 1) == branch.taps.end(),
      kWhere, inner.where(),
      ": apply_layernorm is false, and the last block, whose tokens the library normalizes all the same, "
      "is among those read; one rule for each block is not implemented");
  return {.family = "chmv2",
          .branches = {std::move(branch)},
          .depth_unit = DepthUnit::meter,
          .to_image = ImageResize::bilinear_corners,
          .labels = {}};
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out = read_backbone(files);
  out.dense = DenseReading{.config = read_head(*files.config, out.config),
                           .tables = {{"", "", tap_norm_rows(out.config)}, {"", "", kHead}}};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "chmv2") return std::nullopt;
  return match_backbone(files);
}

}  // namespace
}  // namespace hf_chmv2

constinit const Family kHfChmv2Family{.name = "hf_chmv2",
                                      .anchor = "head.reassemble_stage.layers.0.projection.weight",
                                      .library = "",
                                      .match = hf_chmv2::match,
                                      .read = hf_chmv2::read,
                                      .is_dense = true};

}  // namespace vit::internal
