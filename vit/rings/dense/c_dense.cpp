// Dense heads of the C interface: depth, segments, boxes and keypoints at the size of each image.
#include "vit/config.h"
#include "vit/dense.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "vit/api/source_pixels.h"
#include "vit/base/check.h"
#include "vit/base/finite.h"
#include "vit/boxes.h"
#include "vit/c/guard.h"
#include "vit/c/handles.h"
#include "vit/pose.h"

struct vit_detector {
  vit::Detector detector;
};

using namespace vit;
using namespace vit::internal;

namespace {

static_assert(static_cast<int>(DepthUnit::meter) == VIT_DEPTH_METRE &&
              static_cast<int>(DepthUnit::inverse) == VIT_DEPTH_INVERSE &&
              static_cast<int>(DepthUnit::relative) == VIT_DEPTH_RELATIVE);

SegmentOptions options_of_caller(const vit_segment_options& given, const Model& model) {
  static_assert(static_cast<int>(SegmentTask::semantic) + 1 == VIT_SEGMENT_SEMANTIC &&
                static_cast<int>(SegmentTask::instance) + 1 == VIT_SEGMENT_INSTANCE &&
                static_cast<int>(SegmentTask::panoptic) + 1 == VIT_SEGMENT_PANOPTIC);
  const auto number = [](double value, double fallback) {
    return value == 0.0 ? fallback : value < 0.0 ? 0.0 : value;
  };
  VIT_CHECK(given.reserved == 0, kCall, "reserved is ", given.reserved, ", expected 0");
  SegmentOptions out;
  out.task = given.task == VIT_SEGMENT_AUTO
                 ? Segmenter::default_task(model)
                 : enum_of(std::int64_t{given.task} - VIT_SEGMENT_SEMANTIC, SegmentTask::panoptic, "task");
  out.threshold = number(given.threshold, out.threshold);
  out.mask_threshold = number(given.mask_threshold, out.mask_threshold);
  out.overlap = number(given.overlap, out.overlap);
  const std::span<const std::size_t> stuff = span_of(given.stuff, given.num_stuff, "stuff");
  out.stuff.assign(stuff.begin(), stuff.end());
  return out;
}

/// A session and results of a call.
struct MapsCall {
  MapsCall(vit_session* given, vit_results* into)
      : session(object_at(given, "session").session), results(object_at(into, "results")) {
    results.clear();
  }
  InputList inputs(const vit_input* first, std::size_t count) const {
    return {first, count, session.model().config().image.num_channels};
  }
  int threads() const { return session.options().threads; }

  Session& session;
  vit_results& results;
};

void put(vit_results& results, std::uint32_t name, std::size_t index, TensorView<const float> values) {
  results.column({name}, VIT_FLOAT32).put(index, values.data(), values.shape());
}

void put_segments(vit_results& results, std::size_t index, const SegmentMap& found) {
  std::vector<std::int32_t> ids, classes, areas;
  std::vector<float> scores;
  for (const Segment& segment : found.segments) {
    ids.push_back(segment.id);
    classes.push_back(static_cast<std::int32_t>(segment.index));
    areas.push_back(static_cast<std::int32_t>(segment.area));
    scores.push_back(segment.score.value_or(std::numeric_limits<float>::quiet_NaN()));
  }
  results.column({VIT_SEGMENTATION}, VIT_INT32).put(index, found.map.data(), found.map.shape());
  results.column({VIT_SEGMENT_IDS}, VIT_INT32).put(index, ids.data(), {ids.size()});
  results.column({VIT_CLASSES}, VIT_INT32).put(index, classes.data(), {ids.size()});
  results.column({VIT_AREAS}, VIT_INT32).put(index, areas.data(), {ids.size()});
  results.column({VIT_SCORES}, VIT_FLOAT32).put(index, scores.data(), {ids.size()});
}

std::vector<Box> boxes_of(const vit_box* boxes, std::size_t first, std::size_t count) {
  std::vector<Box> out;
  for (const vit_box& box : span_of(boxes == nullptr ? nullptr : boxes + first, count, "boxes"))
    out.push_back({box.x0, box.y0, box.x1, box.y1});
  return out;
}

void put_poses(vit_results& results, std::size_t index, std::span<const Pose> poses,
               std::size_t num_keypoints) {
  std::vector<float> points, boxes;
  for (const Pose& pose : poses) {
    for (const Keypoint& point : pose.keypoints) points.insert(points.end(), {point.x, point.y, point.score});
    for (const double edge : {pose.box.x0, pose.box.y0, pose.box.x1, pose.box.y1})
      boxes.push_back(static_cast<float>(edge));
  }
  results.column({VIT_KEYPOINTS}, VIT_FLOAT32).put(index, points.data(), {poses.size(), num_keypoints, 3});
  results.column({VIT_BOXES}, VIT_FLOAT32).put(index, boxes.data(), {poses.size(), 4});
}

}  // namespace

vit_status vit_model_depth_unit(const vit_model* model, int32_t* unit) {
  return guarded([&] {
    const DepthEstimator estimator(object_at(model, "model").model);
    object_at(unit, "unit") = static_cast<int32_t>(estimator.unit());
  });
}

size_t vit_model_num_head_labels(const vit_model* model) {
  const DenseConfig* const config = model == nullptr ? nullptr : model->model->dense_config();
  return config == nullptr ? 0 : config->labels.size();
}

vit_status vit_model_head_label(const vit_model* model, size_t index, const char** label) {
  return guarded([&] {
    const std::size_t count = vit_model_num_head_labels(&object_at(model, "model"));
    VIT_CHECK(index < count, kCall, "the head has ", count, " names, and none of index ", index);
    object_at(label, "label") = model->model->dense_config()->labels[index].c_str();
  });
}

vit_status vit_session_depth(vit_session* session, const vit_input* inputs, size_t num_inputs,
                             vit_results* results) {
  return guarded([&] {
    MapsCall call(session, results);
    Request request = DepthEstimator(call.session.shared_model()).request();
    const bool has_normals = call.session.model().dense_config()->find(Output::normals) != nullptr;
    if (has_normals) request.add(Output::normals);
    return run_sized_inputs(call.session, call.inputs(inputs, num_inputs), request, call.results,
                            [&](const StreamedImage& image) {
                              const DepthMap map = depth_of(*image.outputs, call.threads());
                              std::string defect = defect_of(map.depth.flat(), "[Session] the depth is");
                              if (!defect.empty()) return defect;
                              put(call.results, VIT_DEPTH, image.index, map.depth);
                              if (has_normals)
                                put(call.results, VIT_NORMALS, image.index,
                                    normals_of(*image.outputs, call.threads()));
                              return defect;
                            });
  });
}

vit_status vit_session_segment(vit_session* session, const vit_input* inputs, size_t num_inputs,
                               const vit_segment_options* options, vit_results* results) {
  return guarded([&] {
    MapsCall call(session, results);
    const Segmenter segmenter(
        call.session.shared_model(),
        options_of_caller(options_of(options, "vit_segment_options"), call.session.model()));
    const Output scores = segmenter.request().has(Output::masks) ? Output::masks : Output::classes;
    const auto store = [&](const StreamedImage& image) {
      std::string defect = defect_of((*image.outputs)[scores].flat(), "[Session] the scores are");
      if (!defect.empty()) return defect;
      put_segments(call.results, image.index,
                   segments_of(*image.outputs, segmenter.options(), call.threads()));
      return defect;
    };
    return run_sized_inputs(call.session, call.inputs(inputs, num_inputs), segmenter.request(), call.results,
                            store);
  });
}

vit_status vit_session_pose(vit_session* session, const vit_input* inputs, size_t num_inputs,
                            const vit_box* boxes, const size_t* counts, vit_results* results) {
  return guarded([&] {
    MapsCall call(session, results);
    const PoseEstimator estimator(call.session.shared_model());
    const std::size_t keypoints = estimator.model()->dense_config()->find(Output::heatmaps)->channels;
    const InputList list = call.inputs(inputs, num_inputs);
    return call.results.fill(num_inputs, [&] {
      std::size_t first = 0;
      for (std::size_t i = 0; i < num_inputs; ++i) {
        const std::size_t count = counts != nullptr ? counts[i] : 0;
        try {
          const std::vector<Box> own = boxes_of(boxes, first, count);
          const ImageSource source = list[i];
          Image memory;
          const ImageView image = image_of(call.session, source, memory);
          std::vector<Pose> poses;
          if (counts == nullptr || count != 0) poses = estimator.estimate(call.session, image, own);
          put_poses(call.results, i, poses, keypoints);
          call.results.set_size(i, image.size());
        } catch (const Error& error) {
          call.results.fail(i, error.kind(), error.what());
        }
        first += count;
      }
    });
  });
}

vit_status vit_detector_create(const vit_model* model, vit_detector** detector) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    vit_detector*& out = object_at(detector, "detector");
    out = new vit_detector{Detector(from.model)};
  });
}

vit_status vit_detector_create_zero_shot(const vit_model* model, vit_text_encoder* encoder,
                                         const char* const* names, size_t num_names,
                                         const char* const* templates, size_t num_templates,
                                         vit_detector** detector) {
  return guarded([&] {
    const vit_model& from = object_at(model, "model");
    vit_detector*& out = object_at(detector, "detector");
    std::vector<std::string> patterns = strings_of(templates, num_templates, "templates");
    if (patterns.empty()) patterns.emplace_back(kPlainTemplate);
    out = new vit_detector{
        Detector::of_texts(from.model, encode_classes(object_at(encoder, "encoder").encoder,
                                                      strings_of(names, num_names, "names"), patterns))};
  });
}

void vit_detector_free(vit_detector* detector) {
  delete detector;
}

size_t vit_detector_size(const vit_detector* detector) {
  return detector == nullptr ? 0 : detector->detector.labels().size();
}

vit_status vit_detector_label(const vit_detector* detector, size_t index, const char** label) {
  return guarded([&] {
    const std::span<const std::string> labels = object_at(detector, "detector").detector.labels();
    VIT_CHECK(index < labels.size(), kCall, "there are ", labels.size(), " classes, and none of index ",
              index);
    object_at(label, "label") = labels[index].c_str();
  });
}

vit_status vit_detector_run(const vit_detector* detector, vit_session* session, const vit_input* inputs,
                            size_t num_inputs, float threshold, vit_results* results) {
  return guarded([&] {
    const Detector& known = object_at(detector, "detector").detector;
    MapsCall call(session, results);
    VIT_CHECK(call.session.shared_model() == known.model(), kCall,
              "the session and the detector were made from different models");
    VIT_CHECK(threshold == threshold, kCall, "the threshold is not a number");
    std::optional<float> above;
    if (threshold >= 0.0f) above = threshold;
    const auto store = [&](const StreamedImage& image) {
      std::string defect = defect_of((*image.outputs)[Output::boxes].flat(), "[Session] the boxes are");
      if (defect.empty())
        defect = defect_of(known.logits(*image.outputs, call.threads()).flat(), "[Session] the scores are");
      if (!defect.empty()) return defect;
      std::vector<float> boxes, scores;
      std::vector<std::int32_t> classes;
      for (const Detection& found : known.detect(*image.outputs, above, call.threads())) {
        for (const double edge : {found.box.x0, found.box.y0, found.box.x1, found.box.y1})
          boxes.push_back(static_cast<float>(edge));
        scores.push_back(found.score);
        classes.push_back(static_cast<std::int32_t>(found.index));
      }
      call.results.column({VIT_BOXES}, VIT_FLOAT32).put(image.index, boxes.data(), {scores.size(), 4});
      call.results.column({VIT_SCORES}, VIT_FLOAT32).put(image.index, scores.data(), {scores.size()});
      call.results.column({VIT_CLASSES}, VIT_INT32).put(image.index, classes.data(), {classes.size()});
      return defect;
    };
    return run_sized_inputs(call.session, call.inputs(inputs, num_inputs), known.request(), call.results,
                            store);
  });
}
