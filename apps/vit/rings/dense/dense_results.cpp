#include "apps/vit/rings/dense/dense_results.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "apps/vit/classes/labels.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/outputs/map_files.h"
#include "vit/config.h"

namespace vit::app {

// ---------------------------------------------------------------------------------------------------- depth

void write_depth(JsonWriter& json, const DepthMap& map) {
  json.member("unit", to_string(map.unit)).member("min", map.lowest).member("max", map.highest);
}

std::vector<std::byte> depth_png(const DepthMap& map, double png_scale) {
  constexpr double kMost = 65535.0;
  return encode_gray_png(map.unit == DepthUnit::meter
                             ? to_units(map.depth, png_scale)
                             : to_full_range(map.depth, map.lowest, map.highest, kMost),
                         16);
}

ColorMap default_depth_colors(DepthUnit unit) {
  return color_map(unit == DepthUnit::inverse ? "Spectral_r" : "Spectral");
}

DepthArrays DepthArrays::of(const DenseConfig& config, bool raw) {
  return {.raw = raw,
          .normals = config.find(Output::normals) != nullptr,
          .logits = raw && config.find(Output::classes) != nullptr};
}

void DepthArrays::add_to(Request& request) const {
  if (normals) request.add(Output::normals);
  if (logits) request.add(Output::classes);
}

std::vector<NamedArray> depth_arrays(const ImageOutputs& outputs, const DepthMap& map,
                                     const DepthArrays& which, int threads) {
  std::vector<NamedArray> arrays;
  arrays.push_back(
      NamedArray::of("depth", which.raw ? outputs[Output::depth] : TensorView<const float>(map.depth)));
  if (which.normals) {
    const Tensor<float> at_image = which.raw ? Tensor<float>() : normals_of(outputs, threads);
    arrays.push_back(
        NamedArray::of("normals", which.raw ? outputs[Output::normals] : TensorView<const float>(at_image)));
  }
  if (which.logits) arrays.push_back(NamedArray::of("logits", outputs[Output::classes]));
  return arrays;
}

// ------------------------------------------------------------------------------------------------- segments

const char* to_string(SegmentTask task) {
  switch (task) {
    case SegmentTask::semantic: return "semantic";
    case SegmentTask::instance: return "instance";
    case SegmentTask::panoptic: return "panoptic";
  }
  return "";
}

std::size_t num_segment_classes(const DenseConfig& config) {
  const MapOutput* const of_pixels = config.find(Output::classes);
  return of_pixels != nullptr ? of_pixels->channels : config.find(Output::mask_classes)->channels - 1;
}

namespace {

/// The class of that name, or number. Throws UsageError.
std::size_t class_of(const std::string& word, std::span<const std::string> labels, std::size_t num_classes) {
  const auto found = std::ranges::find(labels, word);
  if (found != labels.end()) return static_cast<std::size_t>(found - labels.begin());
  std::size_t index = num_classes;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), index);
  if (error != std::errc() || end != word.data() + word.size() || index >= num_classes)
    fail_usage("--stuff: the model has no class '", word, "'; it takes names, or numbers from 0 to ",
               num_classes - 1);
  return index;
}

}  // namespace

SegmentOptions segment_options(const SegmentChoices& choices, const Model& model,
                               std::vector<std::string> labels) {
  SegmentOptions out{.task = choices.task.value_or(Segmenter::default_task(model))};
  const bool panoptic = out.task == SegmentTask::panoptic;
  if (choices.threshold && out.task == SegmentTask::semantic)
    fail_usage("--threshold is for --task instance and panoptic");
  if (!panoptic && (choices.mask_threshold || choices.overlap || !choices.stuff.empty()))
    fail_usage("--mask-threshold, --overlap and --stuff are for --task panoptic");
  out.threshold = choices.threshold.value_or(out.threshold);
  out.mask_threshold = choices.mask_threshold.value_or(out.mask_threshold);
  out.overlap = choices.overlap.value_or(out.overlap);
  const std::size_t num_classes = num_segment_classes(*model.dense_config());
  for (const std::string& word : choices.stuff) out.stuff.push_back(class_of(word, labels, num_classes));
  out.labels = std::move(labels);
  return out;
}

void write_segments(JsonWriter& json, const SegmentMap& map, SegmentTask task) {
  json.member("task", to_string(task)).key("segments").begin_array();
  for (const Segment& segment : map.segments) {
    json.begin_object().member("id", segment.id).member("index", segment.index);
    json.member("label", segment.label).member("score", segment.score).member("area", segment.area);
    json.end_object();
  }
  json.end_array();
}

std::vector<Color> colors_of_ids(const SegmentMap& map, SegmentTask task, std::span<const Color> palette) {
  if (task == SegmentTask::semantic) return {palette.begin(), palette.end()};
  return segment_colors(map.segments.size());
}

std::vector<std::byte> segment_png(const SegmentMap& map, SegmentTask task, std::span<const Color> palette) {
  const bool has_none = task != SegmentTask::semantic;
  std::vector<Color> colors = colors_of_ids(map, task, palette);
  const std::size_t most = has_none ? 255 : 256;
  if (colors.size() > most) {
    constexpr std::size_t kIds = 65535;  // of 16 bits, of which the last one is none
    VIT_CHECK(colors.size() <= kIds, (Where{"write", ErrorKind::unsupported}), colors.size(),
              " segments; a PNG has numbers for ", kIds, " of them, --output FILE.npz for all");
    Tensor<std::uint16_t> values(map.map.shape());
    std::ranges::transform(map.map.flat(), values.data(),
                           [](std::int32_t id) { return static_cast<std::uint16_t>(id); });
    return encode_gray_png(values, 16);
  }
  Tensor<std::uint8_t> indices(map.map.shape());
  std::ranges::transform(map.map.flat(), indices.data(),
                         [](std::int32_t id) { return static_cast<std::uint8_t>(id); });
  if (has_none) {  // which is the last index, white as in VOC
    colors.resize(most);
    colors.push_back({255, 255, 255});
  }
  return encode_palette_png(indices, colors);
}

std::vector<NamedArray> segment_arrays(const ImageOutputs& outputs, const SegmentMap& map, bool raw) {
  std::vector<NamedArray> arrays;
  if (!raw) {
    arrays.push_back(NamedArray::of("segmentation", TensorView<const std::int32_t>(map.map)));
  } else if (outputs.head()->find(Output::masks) == nullptr) {
    arrays.push_back(NamedArray::of("logits", outputs[Output::classes]));
  } else {
    arrays.push_back(NamedArray::of("mask_logits", outputs[Output::masks]));
    arrays.push_back(NamedArray::of("class_logits", outputs[Output::mask_classes]));
  }
  return arrays;
}

// ------------------------------------------------------------------------------------------ boxes, keypoints

void write_boxes(JsonWriter& json, std::span<const Detection> found) {
  json.key("boxes").begin_array();
  for (const Detection& d : found) {
    json.begin_object().member("index", d.index).member("label", d.label).member("score", d.score);
    write_box(json.key("box"), d.box).end_object();
  }
  json.end_array();
}

std::vector<std::string> box_labels(const DenseConfig& config, const std::filesystem::path& labels) {
  ModelConfig classes;  // as labels know them
  classes.head.num_classes = config.num_box_classes();
  classes.head.labels = config.labels;
  return Labels(classes, labels).names();
}

void write_pose(JsonWriter& json, const Box& box, std::span<const Keypoint> keypoints) {
  write_box(json.begin_object().key("box"), box).key("keypoints").begin_array();
  for (const Keypoint& point : keypoints) json.array(std::array{point.x, point.y, point.score});
  json.end_array().end_object();
}

}  // namespace vit::app
