#include "apps/vit/commands/model_facts.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>

#include "apps/vit/commands/flops.h"
#include "apps/vit/ground/json_value.h"
#include "vit/base/choices.h"
#include "vit/checkpoint.h"

namespace vit::app {
namespace {

const char* name_of(ClassReadout readout) {
  switch (readout) {
    case ClassReadout::dropped: return "dropped";
    case ClassReadout::projected: return "projected";
    case ClassReadout::added: return "added";
    case ClassReadout::concatenated: return "concatenated";
  }
  return "";
}

const char* name_of(MapFinish finish) {
  switch (finish) {
    case MapFinish::none: return "none";
    case MapFinish::relu: return "relu";
    case MapFinish::sigmoid: return "sigmoid";
    case MapFinish::exponential: return "exponential";
    case MapFinish::linear_bins: return "linear_bins";
    case MapFinish::log_bins: return "log_bins";
  }
  return "";
}

const char* name_of(ImageResize rule) {
  switch (rule) {
    case ImageResize::bicubic: return "bicubic";
    case ImageResize::bilinear: return "bilinear";
    case ImageResize::bilinear_corners: return "bilinear, corners aligned";
  }
  return "";
}

/// The kind of a branch and the numbers that only it has.
struct LayersFacts {
  JsonValue& out;

  void operator()(const DptConfig& c) const {
    out["kind"] = "dpt";
    out["class_token"] = name_of(c.readout);
    out["channels"] = c.channels;
    out["features"] = c.features;
    out["residual_batch_norm"] = c.residual_batch_norm;
    out["fusion_size"] = c.fusion_size == FusionSize::next_map ? "next_map" : "doubled";
    out["extra_channels"] = c.extra_channels;
    if (c.layers == HeadLayersKind::convolutions) out["hidden"] = c.hidden;
  }
  void operator()(const LinearMapConfig& c) const {
    out["kind"] = "linear";
    out["class_token"] = name_of(c.readout);
    out["enlarged"] = c.enlarged;
    out["batch_norm"] = c.batch_norm;
  }
  void operator()(const MaskConfig& c) const {
    out["kind"] = "masks";
    out["queries"] = c.queries;
    out["doublings"] = c.doublings;
  }
  void operator()(const HeatmapConfig& c) const {
    const bool is_simple = c.decoder == HeatmapDecoder::simple;
    out["kind"] = "heatmaps";
    out["decoder"] = is_simple ? "simple" : "classic";
    if (is_simple) out["enlarged"] = c.enlarged;
    if (!is_simple) out["channels"] = c.channels;
  }
  void operator()(const BoxConfig& c) const {
    out["kind"] = "boxes";
    out["tokens"] = c.tokens == BoxTokens::registers ? "registers" : "patches";
    out["times_class_token"] = c.times_class_token;
    out["from_patch"] = c.from_patch;
  }
  void operator()(const QueryBoxConfig& c) const {
    out["kind"] = "query_boxes";
    out["queries"] = c.queries;
    out["layers"] = c.layers;
    out["maps"] = c.levels.size();
  }
};

/// The name of an output in the JSON of the program, which is kept.
std::string name_of(Output output) {
  switch (output) {
    case Output::masks: return "masks_of_segments";
    case Output::mask_classes: return "classes_of_masks";
    case Output::heatmaps: return "heat_maps_of_keypoints";
    case Output::box_classes: return "classes_of_boxes";
    case Output::box_vectors: return "vectors_of_boxes";
    case Output::box_terms: return "terms_of_boxes";
    default: return to_string(output);
  }
}

JsonValue branch_json(const DenseBranch& branch) {
  JsonValue out;
  if (!branch.name.empty()) out["name"] = branch.name;
  std::visit(LayersFacts{out}, branch.layers);
  out["taps"] = branch.taps;
  out["tap_norm"] = branch.tap_norm;
  JsonValue& outputs = out["outputs"] = JsonValue::object();
  for (const MapOutput& output : branch.outputs) {
    JsonValue& one = outputs[name_of(output.meaning)] = {{"channels", output.channels}};
    if (output.finish != MapFinish::none) one["finish"] = name_of(output.finish);
    if (output.highest > 0.0f) one["range"] = {output.lowest, output.highest};
    if (output.scale != 1.0f) one["scale"] = output.scale;
  }
  return out;
}

}  // namespace

JsonValue dense_json(const CheckpointDescription& facts) {
  const DenseConfig& config = *facts.dense;
  std::size_t parameters = 0, tensors = 0;
  for (const TensorUse& tensor : facts.report.tensors) {
    if (!tensor.feeds.starts_with("dense.")) continue;
    std::size_t count = 1;
    for (const std::size_t size : tensor.shape) count *= size;
    parameters += count;
    ++tensors;
  }
  const GridSize grid = facts.config.native_grid();
  JsonValue out;
  out["family"] = config.family;
  out["tensors"] = tensors;
  out["parameters"] = parameters;
  out["flops"] = {{"height", grid.rows * facts.config.patch.size},
                  {"width", grid.columns * facts.config.patch.size},
                  {"total", count_dense_flops(config, facts.config, grid)}};
  if (config.find(Output::depth) != nullptr) out["depth_unit"] = to_string(config.depth_unit);
  if (config.find(Output::boxes) != nullptr)
    out["box_threshold"] = std::round(1e6 * double{config.box_threshold}) / 1e6;
  out["to_image"] = name_of(config.to_image);
  out["pads_pixels"] = config.pads_pixels;
  out["labels"] = config.labels.size();
  out["branches"] = JsonValue::array();
  for (const DenseBranch& branch : config.branches) out["branches"].push_back(branch_json(branch));
  return out;
}

}  // namespace vit::app
