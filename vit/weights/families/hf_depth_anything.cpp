// Hugging Face's Depth Anything (V1, V2, relative and metric): DINOv2 with a DPT head; and Prompt Depth
// Anything without its prompt, a second depth of low resolution. Source: transformers, models/depth_anything
// and prompt_depth_anything.
#include "vit/base/check.h"
#include "vit/weights/families/dpt_tables.h"
#include "vit/weights/families/hf_backbone.h"
#include "vit/weights/families/hf_config.h"

namespace vit::internal {
namespace hf_depth_anything {
namespace {

constexpr Where kWhere{"hf_depth_anything", ErrorKind::unsupported};

constexpr HeadRow kHead[] = {
    {"narrow.*", "head.conv1.*"},
    {"output.0.hidden.*", "head.conv2.*"},
    {"output.0.last.*", "head.conv3.*"},
};

constexpr Ignored kPrompt[] = {
    {"neck.fusion_stage.layers.0.prompt_depth_layer.*", "reads a prompt, which there is none of",
     Place::outside},
    {"neck.fusion_stage.layers.1.prompt_depth_layer.*", "reads a prompt, which there is none of",
     Place::outside},
    {"neck.fusion_stage.layers.2.prompt_depth_layer.*", "reads a prompt, which there is none of",
     Place::outside},
    {"neck.fusion_stage.layers.3.prompt_depth_layer.*", "reads a prompt, which there is none of",
     Place::outside},
};

MapOutput read_output(const Json& config) {
  MapOutput out{.meaning = Output::depth, .channels = 1, .finish = MapFinish::relu};
  if (const auto type = config.find("depth_estimation_type"); type) {
    out.finish =
        read_choice<MapFinish>(*type, {{"relative", MapFinish::relu}, {"metric", MapFinish::sigmoid}});
  }
  // multiplies relative depths too
  if (const auto largest = config.find("max_depth"); largest)
    out.scale = static_cast<float>(largest->as_double());
  return out;
}

DenseConfig read_head(const Json& config, const ModelConfig& backbone) {
  check_dpt_factors(config);
  const Json inner = config.at("backbone_config");
  DptConfig dpt;
  dpt.channels = read_dpt_channels(config, "neck_hidden_sizes", {48, 96, 192, 384});
  dpt.features = config.find_size("fusion_hidden_size").value_or(64);
  dpt.hidden = config.find_size("head_hidden_size").value_or(32);
  const auto index = config.find_double("head_in_index").value_or(-1.0);
  VIT_CHECK(index == -1.0 || index == 3.0, kWhere, config.where(),
            ": head_in_index must be -1, the last fused map, got ", index);
  DenseBranch branch{.name = "",
                     .taps = read_hf_taps(inner, backbone.encoder.depth),
                     .tap_norm = inner.find_bool("apply_layernorm").value_or(true),
                     .tap_norm_eps = backbone.encoder.norm.eps,
                     .layers = std::move(dpt),
                     .outputs = {read_output(config)}};
  const bool metric = branch.outputs.front().finish == MapFinish::sigmoid;
  return {.family = "depth_anything",
          .branches = {std::move(branch)},
          .depth_unit = metric ? DepthUnit::meter : DepthUnit::inverse,
          .to_image = ImageResize::bicubic,
          .labels = {}};
}

bool is_prompted(const SourceFiles& files) {
  return hf_model_type(files) == "prompt_depth_anything";
}

ParsedModel read(const SourceFiles& files) {
  ParsedModel out = read_backbone(files);
  out.dense =
      DenseReading{.config = read_head(*files.config, out.config),
                   .tables = {{"", "", tap_norm_rows(out.config)}, {"", "", kHfDptNeck}, {"", "", kHead}}};
  out.ignored.push_back(kHfDptUnused);
  if (is_prompted(files)) {
    out.ignored.push_back(kPrompt);
    out.dense->config.depth_unit = DepthUnit::relative;
    out.dense->config.branches.front().outputs.front().scale = 1.0f;  // max_depth is not read
    out.notes.push_back(
        "depths without a unit, of the image without a prompt: prompts of depths are not read");
  }
  if (files.options.dense.resize_rule == ResizeRuleChoice::repository && !is_prompted(files)) {
    out.config.position.resampling = TableResampling::bicubic_plus_tenth;
    out.dense->config.to_image = ImageResize::bilinear_corners;
    out.dense->preprocess = depth_anything_preprocess(518, /*by_repository=*/true);
    out.notes = {"sizes, position table and maps are resized as the publisher's code does"};
  }
  return out;
}

std::optional<Match> match(const SourceFiles& files) {
  if (hf_model_type(files) != "depth_anything" && !is_prompted(files)) return std::nullopt;
  return match_backbone(files);
}

}  // namespace
}  // namespace hf_depth_anything

constinit const Family kHfDepthAnythingFamily{.name = "hf_depth_anything",
                                              .anchor = "neck.reassemble_stage.layers.0.projection.weight",
                                              .library = "",
                                              .match = hf_depth_anything::match,
                                              .read = hf_depth_anything::read,
                                              .is_dense = true};

}  // namespace vit::internal
