// Hugging Face's TIPSv2-DPT: depth, normals and classes in one pass, each by a DPT head of its own. Files
// have the publisher's names. Source: transformers, models/tipsv2_dpt and conversion_mapping.py.
#include <tuple>
#include <utility>

#include "vit/base/check.h"
#include "vit/weights/families/dpt_tables.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_tipsv2_dpt {
namespace {

constexpr HeadRow kHead[] = {
    {"readout.{}.*", "reassemble.readout_projects.{}.*"},
    {"project.{}.*", "reassemble.out_projections.{}.*"},
    {"resize.{}.*", "reassemble.resize_layers.{}.*"},
    {"neck.{}.*", "convs.{}.*"},
    {"fusion.{}.lateral.conv1.*", "fusion_blocks.{}.residual_unit.conv1.*"},
    {"fusion.{}.lateral.conv2.*", "fusion_blocks.{}.residual_unit.conv2.*"},
    {"fusion.{}.unit.conv1.*", "fusion_blocks.{}.main_unit.conv1.*"},
    {"fusion.{}.unit.conv2.*", "fusion_blocks.{}.main_unit.conv2.*"},
    {"fusion.{}.project.*", "fusion_blocks.{}.out_conv.*"},
    {"extra.*", "project.*"},
};
constexpr HeadRow kDepth[] = {{"output.0.last.*", "depth_head.*"}};
constexpr HeadRow kNormals[] = {{"output.0.last.*", "normals_head.*"}};
constexpr HeadRow kClasses[] = {{"output.0.last.*", "segmentation_head.*"}};

MapOutput depth_output(const Json& config) {
  const auto lowest = static_cast<float>(config.find_double("min_depth").value_or(0.001));
  return {.meaning = Output::depth,
          .channels = config.find_size("num_depth_bins").value_or(256),
          .finish = MapFinish::linear_bins,
          .offset = lowest,
          .lowest = lowest,
          .highest = static_cast<float>(config.find_double("max_depth").value_or(10.0))};
}

DenseBranch branch_of(const char* name, const Json& config, const ModelConfig& backbone,
                      const MapOutput& output) {
  const Json inner = config.at("backbone_config");
  DptConfig dpt;
  dpt.readout = ClassReadout::projected;
  dpt.readout_activation = Activation::gelu_tanh;
  if (const auto activation = config.find("readout_activation"))
    dpt.readout_activation =
        read_choice<Activation>(*activation, {{"gelu", Activation::gelu},
                                              {"gelu_pytorch_tanh", Activation::gelu_tanh},
                                              {"relu", Activation::relu}});
  dpt.channels = read_dpt_channels(config, "neck_hidden_sizes", {96, 192, 384, 768});
  dpt.features = config.find_size("fusion_hidden_size").value_or(256);
  dpt.residual_bias = false;
  dpt.fusion_size = FusionSize::doubled;
  dpt.extra_channels = dpt.features;
  dpt.extra_relu = output.meaning == Output::depth;
  if (const auto activation = config.find("depth_decoder_activation"); activation && dpt.extra_relu)
    static_cast<void>(read_choice<bool>(*activation, {{"relu", true}}));
  dpt.layers = HeadLayersKind::linear;
  dpt.head_size = HeadSize::fused;
  return {.name = name,
          .taps = read_hf_taps(inner, backbone.encoder.depth),
          .tap_norm = inner.find_bool("apply_layernorm").value_or(true),
          .tap_norm_eps = backbone.encoder.norm.eps,
          .layers = std::move(dpt),
          .outputs = {output}};
}

ParsedModel read(const SourceFiles& files) {
  const Json& config = *files.config;
  check_dpt_factors(config);
  ParsedModel out = read_backbone(files);
  const std::size_t classes = count_hf_labels(config);
  DenseConfig head{.family = "tipsv2_dpt",
                   .branches = {},
                   .depth_unit = DepthUnit::meter,
                   .to_image = ImageResize::bilinear,
                   .labels = read_hf_labels(config, classes)};
  head.branches.push_back(branch_of("depth", config, out.config, depth_output(config)));
  head.branches.push_back(branch_of("normals", config, out.config,
                                    {.meaning = Output::normals, .channels = 3, .finish = MapFinish::none}));
  head.branches.push_back(
      branch_of("segmentation", config, out.config,
                {.meaning = Output::classes, .channels = classes, .finish = MapFinish::none}));
  std::vector<HeadTable> tables;
  for (const auto& [branch, source, last] :
       {std::tuple("depth.", "depth_head.", std::span<const HeadRow>(kDepth)),
        std::tuple("normals.", "normals_head.", std::span<const HeadRow>(kNormals)),
        std::tuple("segmentation.", "segmentation_head.", std::span<const HeadRow>(kClasses))}) {
    tables.push_back({branch, "", tap_norm_rows(out.config)});
    tables.push_back({branch, source, kHead});
    tables.push_back({branch, source, last});
  }
  out.dense = DenseReading{.config = std::move(head), .tables = std::move(tables)};
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "tipsv2_dpt") return std::nullopt;
  return match_backbone(files);
}

}  // namespace
}  // namespace hf_tipsv2_dpt

constinit const Family kHfTipsv2DptFamily{.name = "hf_tipsv2_dpt",
                                          .anchor = "depth_head.reassemble.out_projections.0.weight",
                                          .library = "",
                                          .match = hf_tipsv2_dpt::match,
                                          .read = hf_tipsv2_dpt::read,
                                          .is_dense = true};

}  // namespace vit::internal
