#include "vit/dense_config.h"

#include <algorithm>
#include <cmath>

#include "vit/base/check.h"
#include "vit/outputs.h"

namespace vit {
namespace {

constexpr Where kWhere{"validate_config", ErrorKind::argument};
constexpr std::size_t kMaxMapChannels = 8192;
constexpr std::size_t kMaxBranches = 8;

void check_range(const std::string& branch, const char* field, std::size_t value, std::size_t low,
                 std::size_t high) {
  VIT_CHECK(value >= low && value <= high, kWhere, field, " of the dense head", branch.empty() ? "" : " ",
            branch, " must be ", low, " to ", high, ", got ", value);
}

void validate_layers(const DptConfig& c, const DenseBranch& branch) {
  check_range(branch.name, "taps", branch.taps.size(), 4, 4);
  check_range(branch.name, "channel numbers of taps", c.channels.size(), 4, 4);
  for (const std::size_t channels : c.channels)
    check_range(branch.name, "channels", channels, 1, kMaxMapChannels);
  check_range(branch.name, "features", c.features, 1, kMaxMapChannels);
  check_range(branch.name, "extra_channels", c.extra_channels, 0, kMaxMapChannels);
  VIT_CHECK(c.readout != ClassReadout::concatenated, kWhere,
            "a DPT head drops, adds or projects the class token");
  if (c.layers != HeadLayersKind::convolutions) return;
  check_range(branch.name, "hidden channels", c.hidden, 1, kMaxMapChannels);
  check_range(branch.name, "channels before the last layers",
              c.extra_channels != 0 ? c.extra_channels : c.features, 2, kMaxMapChannels);
}

void validate_layers(const LinearMapConfig& c, const DenseBranch& branch) {
  check_range(branch.name, "enlargement", c.enlarged, 1, 16);
  check_range(branch.name, "outputs", branch.outputs.size(), 1, 1);
  VIT_CHECK(c.readout == ClassReadout::dropped || c.readout == ClassReadout::concatenated, kWhere,
            "a linear head drops the class token or concatenates it with each patch");
}

void validate_layers(const MaskConfig& c, const DenseBranch& branch) {
  check_range(branch.name, "taps", branch.taps.size(), 1, 1);
  check_range(branch.name, "queries", c.queries, 1, 4096);
  check_range(branch.name, "doublings", c.doublings, 0, 4);
  VIT_CHECK(branch.tap_norm, kWhere, "masks are made of normalized tokens");
  VIT_CHECK(branch.outputs.size() == 2 && branch.outputs[0].meaning == Output::masks &&
                branch.outputs[0].channels == c.queries &&
                branch.outputs[1].meaning == Output::mask_classes && branch.outputs[1].channels > 1,
            kWhere, "a head of masks gives ", c.queries, " masks and their classes");
}

void validate_layers(const HeatmapConfig& c, const DenseBranch& branch) {
  check_range(branch.name, "taps", branch.taps.size(), 1, 1);
  check_range(branch.name, "enlargement", c.enlarged, 1, 16);
  check_range(branch.name, "channels of the decoder", c.channels, 1, kMaxMapChannels);
  check_range(branch.name, "outputs", branch.outputs.size(), 1, 1);
}

void validate_layers(const BoxConfig& c, const DenseBranch& branch) {
  check_range(branch.name, "taps", branch.taps.size(), 1, 1);
  VIT_CHECK(std::isfinite(c.times_norm_eps) && c.times_norm_eps >= 0 && c.times_norm_eps < 1, kWhere,
            "the epsilon of the norm of boxes must be in [0, 1), got ", c.times_norm_eps);
  for (const MapOutput& output : branch.outputs) {
    VIT_CHECK(output.meaning >= Output::boxes, kWhere, "boxes have no map of ", to_string(output.meaning));
    VIT_CHECK(output.meaning != Output::boxes || output.channels == 4, kWhere, "boxes of ", output.channels,
              " numbers");
  }
}

void validate_layers(const QueryBoxConfig& c, const DenseBranch& branch) {
  check_range(branch.name, "maps that queries sample", c.levels.size(), 1, 4);
  check_range(branch.name, "width of queries", c.width, 4, kMaxMapChannels);
  check_range(branch.name, "inner channels", c.inner, 1, kMaxMapChannels);
  check_range(branch.name, "pairs of convolutions", c.pairs, 0, 64);
  check_range(branch.name, "queries", c.queries, 1, 4096);
  check_range(branch.name, "groups of queries", c.stored_groups, 1, 255);
  check_range(branch.name, "layers of the decoder", c.layers, 1, 64);
  check_range(branch.name, "heads", c.heads, 1, 1024);
  check_range(branch.name, "heads that sample", c.sampling_heads, 1, 1024);
  check_range(branch.name, "points of a map", c.points, 1, 64);
  check_range(branch.name, "mlp_dim of the decoder", c.mlp_dim, 1, 1u << 18);
  VIT_CHECK(c.width % 4 == 0 && c.width % c.heads == 0 && c.width / c.heads <= 512 &&
                c.width % c.sampling_heads == 0,
            kWhere, "queries of ", c.width, " channels cannot be divided into 4 coordinates, ", c.heads,
            " and ", c.sampling_heads, " heads");
  VIT_CHECK(std::isfinite(c.norm_eps) && c.norm_eps >= 0 && c.norm_eps < 1, kWhere,
            "the epsilon of norms of a box head must be in [0, 1), got ", c.norm_eps);
  for (const Activation activation : {c.activation, c.mlp_activation})
    VIT_CHECK(
        activation == Activation::silu || activation == Activation::relu || activation == Activation::gelu,
        kWhere.with(ErrorKind::unsupported), "activations of a box head are SiLU, ReLU and GELU");
  VIT_CHECK(branch.outputs.size() == 2 && branch.outputs[0].meaning == Output::boxes &&
                branch.outputs[0].channels == 4 && branch.outputs[1].meaning == Output::box_classes,
            kWhere, "queries give boxes and their classes");
}

void validate_output(const MapOutput& output, const std::string& branch) {
  check_range(branch, "channels of an output", output.channels, 1, 65536);
  for (const float value : {output.scale, output.offset, output.lowest, output.highest}) {
    VIT_CHECK(std::isfinite(value) && std::abs(value) <= 1e9f, kWhere,
              "a range of depths must be finite, got ", value);
  }
  const bool bins = output.finish == MapFinish::linear_bins || output.finish == MapFinish::log_bins;
  VIT_CHECK(output.scale > 0.0f, kWhere, "the largest depth must be positive, got ", output.scale);
  VIT_CHECK(!(bins || output.highest != 0.0f) || (output.lowest >= 0.0f && output.lowest < output.highest),
            kWhere, "depths from ", output.lowest, " to ", output.highest);
  VIT_CHECK(output.finish != MapFinish::log_bins || output.lowest > 0.0f, kWhere,
            "logarithmic bins of depth start above 0, got ", output.lowest);
}

/// What labels name: classes of pixels, of queries or of boxes, or keypoints.
std::size_t num_labeled(const DenseConfig& config) {
  if (const MapOutput* const classes = config.find(Output::classes)) return classes->channels;
  if (const MapOutput* const classes = config.find(Output::mask_classes)) return classes->channels - 1;
  if (const std::size_t classes = config.num_box_classes(); classes != 0) return classes;
  const MapOutput* const keypoints = config.find(Output::heatmaps);
  return keypoints != nullptr ? keypoints->channels : 0;
}

}  // namespace

const MapOutput* DenseConfig::find(Output meaning) const {
  for (const DenseBranch& branch : branches) {
    for (const MapOutput& output : branch.outputs) {
      if (output.meaning == meaning) return &output;
    }
  }
  return nullptr;
}

std::size_t DenseConfig::num_box_classes() const {
  const MapOutput* const classes = find(Output::box_classes);
  return classes == nullptr ? 0 : classes->channels - (best_boxes == 0 ? 1 : 0);
}

void validate(const DenseConfig& config, std::size_t depth) {
  check_range("", "branches", config.branches.size(), 1, kMaxBranches);
  for (const DenseBranch& branch : config.branches) {
    check_range(branch.name, "taps", branch.taps.size(), 1, kMaxTaps);
    for (const std::size_t tap : branch.taps) {
      VIT_CHECK(tap < depth, kWhere, "the dense head reads block ", tap, " of a model with ", depth,
                " blocks (0 to ", depth - 1, ")");
    }
    VIT_CHECK(std::isfinite(branch.tap_norm_eps) && branch.tap_norm_eps >= 0 && branch.tap_norm_eps < 1,
              kWhere, "the epsilon of the norm before a dense head must be in [0, 1), got ",
              branch.tap_norm_eps);
    check_range(branch.name, "outputs", branch.outputs.size(), 1, 4);
    for (const MapOutput& output : branch.outputs) validate_output(output, branch.name);
    std::visit([&](const auto& layers) { validate_layers(layers, branch); }, branch.layers);
  }
  VIT_CHECK(std::isfinite(config.box_threshold), kWhere, "a threshold of ", config.box_threshold);
  const std::size_t count = num_labeled(config);
  VIT_CHECK(config.labels.empty() || config.labels.size() == count, kWhere, config.labels.size(),
            " class names for ", count, " classes");
}

Request DenseConfig::request() const {
  Request out;
  for (const DenseBranch& branch : branches) {
    for (const MapOutput& output : branch.outputs) out.add(output.meaning);
  }
  return out;
}

const char* to_string(DepthUnit unit) {
  switch (unit) {
    case DepthUnit::meter: return "metre";
    case DepthUnit::inverse: return "inverse";
    case DepthUnit::relative: return "relative";
  }
  return "unknown";
}

}  // namespace vit
