#include "apps/vit/rings/serve/work/dense_tasks.h"

#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "apps/vit/classes/labels.h"
#include "apps/vit/ground/usage_error.h"
#include "apps/vit/outputs/map_files.h"
#include "apps/vit/outputs/png_file.h"
#include "apps/vit/rings/serve/work/member_names.h"
#include "apps/vit/rings/serve/work/work.h"
#include "apps/vit/run/run_images.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/config.h"

namespace vit::app {
namespace {

using internal::JsonWriter;

constexpr Where kTaskWhere{"answer", ErrorKind::unsupported};
constexpr Where kNotFinite = kTaskWhere.with(ErrorKind::format);

/// As float32, which holds all ids of classes and segments.
void write_array(JsonWriter& json, const NamedArray& array) {
  if (array.dtype != internal::Dtype::i32)
    return write_npy(json, array.name, "<f4", array.shape, array.bytes);
  std::vector<float> ids(array.bytes.size() / sizeof(std::int32_t));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::int32_t id = 0;
    std::memcpy(&id, array.bytes.data() + i * sizeof id, sizeof id);
    ids[i] = static_cast<float>(id);
  }
  write_npy(json, array.name, "<f4", array.shape, std::as_bytes(std::span(ids)));
}

/// The outputs as those of the image that was decoded elsewhere.
ImageOutputs of_image(const ImageOutputs& outputs, const Preprocessor& preprocessor, ImageSize image) {
  check_map_size(image);
  return outputs.of(frame_of(preprocessor, image));
}

void write_size(JsonWriter& json, ImageSize image) {
  json.member("width", image.width).member("height", image.height);
}

/// What options of commands call wrong usage is wrong of the request.
template <typename Make>
auto checked_usage(const Make& make) {
  try {
    return make();
  } catch (const UsageError& error) {
    fail(kTaskWhere.with(ErrorKind::argument), of_members(error.what()));
  }
}

class DepthTask : public OutputTask {
 public:
  DepthTask(const Preprocessor& preprocessor, const DepthAsked& asked)
      : preprocessor_(preprocessor), asked_(asked) {}

  Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* /*texts*/) override {
    const DepthEstimator estimator(model);
    Request request = estimator.request();
    if (asked_.form == MapForm::npy) {
      arrays_ = DepthArrays::of(*model->dense_config(), asked_.raw);
      arrays_.add_to(request);
    }
    if (!asked_.colors) asked_.colors = default_depth_colors(estimator.unit());
    return request;
  }

  void write(JsonWriter& json, const ImageOutputs& computed, const WorkItem& item,
             std::size_t index) const override {
    const ImageOutputs outputs = of_image(computed, preprocessor_, item.image_size);
    const DepthMap map = depth_of(outputs);
    check_finite(map.depth.flat(), kNotFinite, "the depth is");
    json.begin_object().member("index", index);
    write_depth(json, map);
    write_size(json, item.image_size);
    switch (asked_.form) {
      case MapForm::none: break;
      case MapForm::png: write_base64(json, "depth", depth_png(map, asked_.png_scale)); break;
      case MapForm::color:
        write_base64(json, "depth", encode_png(colored(map.depth, map.lowest, map.highest, *asked_.colors)));
        break;
      case MapForm::npy:
        for (const NamedArray& array : depth_arrays(outputs, map, arrays_, 1)) write_array(json, array);
        break;
    }
    json.end_object();
  }

 private:
  const Preprocessor& preprocessor_;
  DepthAsked asked_;
  DepthArrays arrays_;
};

class SegmentTaskOf : public OutputTask {
 public:
  SegmentTaskOf(const Preprocessor& preprocessor, SegmentAsked asked)
      : preprocessor_(preprocessor), asked_(std::move(asked)) {}

  Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* /*texts*/) override {
    const DenseConfig& config = *model->dense_config();
    scores_ = config.find(Output::classes) != nullptr ? Output::classes : Output::masks;
    ModelConfig classes;  // as labels know them
    classes.head.num_classes = num_segment_classes(config);
    classes.head.labels = config.labels;
    palette_ = class_colors(classes.head.num_classes);
    options_ =
        checked_usage([&] { return segment_options(asked_.choices, *model, Labels(classes, {}).names()); });
    return Segmenter(model, options_).request();
  }

  void write(JsonWriter& json, const ImageOutputs& computed, const WorkItem& item,
             std::size_t index) const override {
    check_finite(computed[scores_].flat(), kNotFinite, "the scores are");
    const ImageOutputs outputs = of_image(computed, preprocessor_, item.image_size);
    const SegmentMap map = segments_of(outputs, options_);
    json.begin_object().member("index", index);
    write_segments(json, map, options_.task);
    write_size(json, item.image_size);
    switch (asked_.form) {
      case MapForm::none: break;
      case MapForm::png: write_base64(json, "segmentation", segment_png(map, options_.task, palette_)); break;
      case MapForm::color:
        write_base64(json, "segmentation",
                     encode_png(colored_ids(map.map, colors_of_ids(map, options_.task, palette_))));
        break;
      case MapForm::npy:
        for (const NamedArray& array : segment_arrays(outputs, map, asked_.raw)) write_array(json, array);
        break;
    }
    json.end_object();
  }

 private:
  const Preprocessor& preprocessor_;
  SegmentAsked asked_;
  SegmentOptions options_;
  std::vector<Color> palette_;
  Output scores_ = Output::classes;
};

class DetectTask : public OutputTask {
 public:
  DetectTask(const Preprocessor& preprocessor, std::optional<float> threshold)
      : preprocessor_(preprocessor), threshold_(threshold) {}

  Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* texts) override {
    if (texts == nullptr) {
      detector_.emplace(model, box_labels(*model->dense_config(), {}));
    } else {
      ClassVectors given{.names = texts->names, .vectors = Tensor<float>(texts->vectors.shape())};
      std::ranges::copy(texts->vectors.flat(), given.vectors.data());
      detector_ = Detector::of_texts(model, std::move(given));
    }
    return detector_->request();
  }

  void write(JsonWriter& json, const ImageOutputs& computed, const WorkItem& item,
             std::size_t index) const override {
    for (const Output output : {Output::boxes, Output::box_classes, Output::box_vectors}) {
      if (detector_->request().has(output))
        check_finite(computed[output].flat(), kNotFinite, "the boxes are");
    }
    json.begin_object().member("index", index);
    write_boxes(json, detector_->detect(computed.of(frame_of(preprocessor_, item.image_size)), threshold_));
    json.end_object();
  }

 private:
  const Preprocessor& preprocessor_;
  std::optional<float> threshold_;
  std::optional<Detector> detector_;
};

class PoseTask : public OutputTask {
 public:
  Request prepare(const std::shared_ptr<const Model>& model, const ClassVectors* /*texts*/) override {
    return PoseEstimator(model).request();
  }

  void write(JsonWriter& json, const ImageOutputs& outputs, const WorkItem& item,
             std::size_t /*index*/) const override {
    check_finite(outputs[Output::heatmaps].flat(), kNotFinite, "the heat maps are");
    const Box box = item.box.value_or(Box::whole(item.image_size));
    write_pose(json, box, keypoints_of(outputs, box));
  }
};

}  // namespace

std::shared_ptr<OutputTask> depth_task(const Preprocessor& preprocessor, const DepthAsked& asked) {
  return std::make_shared<DepthTask>(preprocessor, asked);
}

std::shared_ptr<OutputTask> segment_task(const Preprocessor& preprocessor, const SegmentAsked& asked) {
  return std::make_shared<SegmentTaskOf>(preprocessor, asked);
}

std::shared_ptr<OutputTask> detect_task(const Preprocessor& preprocessor, std::optional<float> threshold) {
  return std::make_shared<DetectTask>(preprocessor, threshold);
}

std::shared_ptr<OutputTask> pose_task() {
  return std::make_shared<PoseTask>();
}

}  // namespace vit::app
