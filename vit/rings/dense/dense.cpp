#include "vit/dense.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "vit/api/source_pixels.h"
#include "vit/base/check.h"
#include "vit/base/interpolation.h"
#include "vit/base/parallel.h"
#include "vit/rings/dense/semantic.h"

namespace vit {
using namespace internal;
namespace {

/// The sources of the outputs of one axis: four inputs each, two of them used if the rule is linear.
struct Axis {
  std::vector<std::array<std::size_t, 4>> inputs;
  std::vector<std::array<float, 4>> weights;
};

Axis make_axis(std::size_t in, std::size_t out, ImageResize rule) {
  Axis axis;
  const auto last = static_cast<std::ptrdiff_t>(in) - 1;
  const Alignment alignment = rule == ImageResize::bilinear_corners ? Alignment::corners : Alignment::edges;
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  for (std::size_t i = 0; i < out; ++i) {
    std::ptrdiff_t low = 0;
    if (rule == ImageResize::bicubic) {
      const float at = scale * (static_cast<float>(i) + 0.5f) - 0.5f, floor = std::floor(at);
      low = static_cast<std::ptrdiff_t>(floor);
      axis.weights.push_back(cubic_weights(at - floor));
    } else {
      const BilinearSource source = bilinear_source(i, out, in, alignment);
      low = static_cast<std::ptrdiff_t>(source.first);
      axis.weights.push_back({0.0f, 1.0f - source.t, source.t, 0.0f});
    }
    std::array<std::size_t, 4> inputs{};
    for (std::ptrdiff_t k = 0; k < 4; ++k)
      inputs[static_cast<std::size_t>(k)] =
          static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(low - 1 + k, 0, last));
    axis.inputs.push_back(inputs);
  }
  return axis;
}

/// The head of a model, which must have that output.
const DenseConfig& head_with(const std::shared_ptr<const Model>& model, Output output, const char* who) {
  VIT_CHECK(model != nullptr, (Where{who, ErrorKind::argument}), "no model");
  const DenseConfig* const config = model->dense_config();
  VIT_CHECK(config != nullptr && config->find(output) != nullptr, (Where{who, ErrorKind::mismatch}),
            model->report().path.string(), " has no head that outputs ", to_string(output));
  return *config;
}

const DenseConfig& head_of(const ImageOutputs& outputs, const char* who) {
  VIT_CHECK(outputs.head() != nullptr, (Where{who, ErrorKind::mismatch}),
            "these are outputs of a model without a dense head");
  return *outputs.head();
}

/// Row `y` of one plane (h, w) after a resize.
void resize_row(TensorView<const float> plane, const Axis& rows, const Axis& columns, std::size_t y,
                float* to) {
  const std::size_t width = columns.inputs.size();
  std::fill_n(to, width, 0.0f);
  for (std::size_t k = 0; k < 4; ++k) {
    const float weight = rows.weights[y][k];
    if (weight == 0.0f) continue;
    const float* const from = plane.row(rows.inputs[y][k]);
    for (std::size_t x = 0; x < width; ++x) {
      const std::array<std::size_t, 4>& inputs = columns.inputs[x];
      const std::array<float, 4>& weights = columns.weights[x];
      to[x] += weight * (weights[0] * from[inputs[0]] + weights[1] * from[inputs[1]] +
                         weights[2] * from[inputs[2]] + weights[3] * from[inputs[3]]);
    }
  }
}

/// Depths of the sky become the farthest of the others, unless one of the two is nearly absent. Source:
/// Depth Anything 3, which takes the quantile of a random part of large images.
void push_sky_away(std::span<float> depth, std::span<const float> sky) {
  constexpr float kSky = 0.3f;
  constexpr std::size_t kLeast = 10;
  constexpr double kQuantile = 0.99;
  std::vector<float> others;
  for (std::size_t i = 0; i < depth.size(); ++i) {
    if (sky[i] < kSky) others.push_back(depth[i]);
  }
  if (others.size() <= kLeast || depth.size() - others.size() <= kLeast) return;
  std::ranges::sort(others);
  const double place = kQuantile * static_cast<double>(others.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const double t = place - static_cast<double>(low);
  const double high = others[std::min(low + 1, others.size() - 1)];
  const auto farthest = static_cast<float>(others[low] + t * (high - others[low]));
  for (std::size_t i = 0; i < depth.size(); ++i) {
    if (sky[i] >= kSky) depth[i] = farthest;
  }
}

/// planes (C, h, w) of a head -> (C, H, W), without antialias.
Tensor<float> at_image_size(TensorView<const float> planes, ImageSize size, ImageResize rule, int threads) {
  VIT_CHECK(planes.rank() == 3 && planes.num_elements() != 0 && size.height != 0 && size.width != 0,
            (Where{"resize maps", ErrorKind::argument}), "planes (C, h, w) of ", planes.shape().to_string(),
            " to ", size.height, " x ", size.width);
  const std::size_t count = planes.dim(0);
  Tensor<float> out(Shape{count, size.height, size.width});  // first: it refuses sizes that no memory holds
  const Axis rows = make_axis(planes.dim(1), size.height, rule),
             columns = make_axis(planes.dim(2), size.width, rule);
  parallel_for(count * size.height, threads, [&](std::size_t line, int) {
    resize_row(planes[line / size.height], rows, columns, line % size.height, out.view().row(line));
  });
  return out;
}

/// A map (h, w) as one plane.
TensorView<const float> as_planes(TensorView<const float> map) {
  return {map.data(), Shape{1, map.dim(0), map.dim(1)}};
}

/// Depth, and the sky if it decides.
Request depth_request(const DenseConfig& config) {
  Request request(Output::depth);
  if (config.sky_is_farthest) request.add(Output::sky);
  return request;
}

}  // namespace

ImageFrame frame_of(const Preprocessor& preprocessor, ImageSize image) {
  return internal::frame_of(preprocessor, image);
}

DepthMap depth_of(const ImageOutputs& outputs, int threads) {
  const DenseConfig& config = head_of(outputs, "depth_of");
  const ImageSize size = outputs.frame().image;
  const TensorView<const float> map = as_planes(outputs[Output::depth]);
  Tensor<float> pushed;
  if (config.sky_is_farthest) {
    pushed = Tensor<float>(map.shape());
    std::ranges::copy(map.flat(), pushed.data());
    push_sky_away(pushed.flat(), outputs[Output::sky].flat());
  }
  const Tensor<float> depth = at_image_size(config.sky_is_farthest ? TensorView<const float>(pushed) : map,
                                            size, config.to_image, threads);
  DepthMap out{.depth = Tensor<float>(Shape{size.height, size.width}), .unit = config.depth_unit};
  std::ranges::copy(depth.flat(), out.depth.data());
  const auto [lowest, highest] = std::ranges::minmax_element(out.depth.flat());
  out.lowest = *lowest;
  out.highest = *highest;
  return out;
}

Tensor<float> normals_of(const ImageOutputs& outputs, int threads) {
  const TensorView<const float> normals = outputs[Output::normals];
  Tensor<float> unit(normals.shape());
  const std::size_t pixels = normals.dim(1) * normals.dim(2);
  for (std::size_t i = 0; i < pixels; ++i) {
    double square = 0.0;
    for (std::size_t c = 0; c < 3; ++c) square += std::pow(double{normals.data()[c * pixels + i]}, 2.0);
    const double length = std::max(std::sqrt(square), 1e-12);
    for (std::size_t c = 0; c < 3; ++c)
      unit.data()[c * pixels + i] = static_cast<float>(normals.data()[c * pixels + i] / length);
  }
  return at_image_size(unit, outputs.frame().image, head_of(outputs, "normals_of").to_image, threads);
}

DepthEstimator::DepthEstimator(std::shared_ptr<const Model> model)
    : ImageTask(model, depth_request(head_with(model, Output::depth, "DepthEstimator"))) {}

DepthEstimator::DepthEstimator(const std::filesystem::path& path, const ModelOptions& options)
    : DepthEstimator(Model::load(path, options)) {}

DepthUnit DepthEstimator::unit() const noexcept {
  return model()->dense_config()->depth_unit;
}

DepthMap DepthEstimator::estimate(Session& session, const ImageSource& image) const {
  Outputs outputs;
  run(session, image, outputs);
  return depth_of(outputs[0], session.options().threads);
}

DepthMap DepthEstimator::estimate(const ImageSource& image) const {
  Session session(model());
  return estimate(session, image);
}

// ------------------------------------------------------------------------------------------------ segments

namespace {

/// The class with the largest score (C, h, w) at each pixel of an image, the lower one of equals.
Tensor<std::int32_t> classes_of(TensorView<const float> scores, ImageSize size, ImageResize rule,
                                int threads) {
  VIT_CHECK(scores.rank() == 3 && scores.num_elements() != 0 && size.height != 0 && size.width != 0,
            (Where{"classes_of", ErrorKind::argument}), "scores (C, h, w) of ", scores.shape().to_string(),
            " to ", size.height, " x ", size.width);
  Tensor<std::int32_t> out(Shape{size.height, size.width});  // first: it refuses sizes that no memory holds
  const Axis rows = make_axis(scores.dim(1), size.height, rule),
             columns = make_axis(scores.dim(2), size.width, rule);
  const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
  Tensor<float> memory(Shape{num_threads, 2 * size.width});  // the row of a class, and the best so far
  parallel_for(size.height, threads, [&](std::size_t y, int thread) {
    float* const row = memory.view().row(static_cast<std::size_t>(thread));
    float* const best = row + size.width;
    std::int32_t* const classes = out.view().row(y);
    resize_row(scores[0], rows, columns, y, best);
    for (std::size_t c = 1; c < scores.dim(0); ++c) {
      resize_row(scores[c], rows, columns, y, row);
      for (std::size_t x = 0; x < size.width; ++x) {
        if (row[x] <= best[x]) continue;
        best[x] = row[x];
        classes[x] = static_cast<std::int32_t>(c);
      }
    }
  });
  return out;
}

/// The outputs of which segments are made.
Request segment_request(const DenseConfig& config) {
  if (config.find(Output::masks) == nullptr) return Output::classes;
  return {Output::masks, Output::mask_classes};
}

const DenseConfig& head_of_segments(const std::shared_ptr<const Model>& model) {
  const bool has_masks = model != nullptr && model->dense_config() != nullptr &&
                         model->dense_config()->find(Output::masks) != nullptr;
  return has_masks ? *model->dense_config() : head_with(model, Output::classes, "Segmenter");
}

SegmentOptions default_options(const std::shared_ptr<const Model>& model) {
  head_of_segments(model);  // throws for other models
  return {.task = Segmenter::default_task(*model)};
}

}  // namespace

SegmentMap internal::semantic_segments(const ImageOutputs& outputs, std::span<const std::string> labels,
                                       int threads) {
  const TensorView<const float> scores = outputs[Output::classes];
  const DenseConfig& config = head_of(outputs, "segments_of");
  return with_areas(classes_of(scores, outputs.frame().image, config.to_image, threads), scores.dim(0),
                    labels);
}

SegmentMap internal::with_areas(Tensor<std::int32_t> classes, std::size_t num_classes,
                                std::span<const std::string> labels) {
  SegmentMap out{.map = std::move(classes), .segments = {}};
  std::vector<std::size_t> areas(num_classes);
  for (const std::int32_t index : out.map.flat()) ++areas[static_cast<std::size_t>(index)];
  for (std::size_t c = 0; c < areas.size(); ++c) {
    if (areas[c] == 0) continue;
    out.segments.push_back({.id = static_cast<std::int32_t>(c),
                            .index = c,
                            .label = c < labels.size() ? labels[c] : std::to_string(c),
                            .area = areas[c]});
  }
  return out;
}

Segmenter::Segmenter(std::shared_ptr<const Model> model, SegmentOptions options)
    : ImageTask(model, segment_request(head_of_segments(model))), options_(std::move(options)) {}

Segmenter::Segmenter(std::shared_ptr<const Model> model) : Segmenter(model, default_options(model)) {}

Segmenter::Segmenter(const std::filesystem::path& path, const ModelOptions& options)
    : Segmenter(Model::load(path, options)) {}

SegmentTask Segmenter::default_task(const Model& model) {
  const DenseConfig* const config = model.dense_config();
  const bool has_masks = config != nullptr && config->find(Output::masks) != nullptr;
  const bool joins_windows = model.has_preprocess_config() && model.preprocess_config().windows;
  return has_masks && !joins_windows ? SegmentTask::panoptic : SegmentTask::semantic;
}

SegmentMap Segmenter::segment(Session& session, const ImageSource& image) const {
  Outputs outputs;
  run(session, image, outputs);
  return segments_of(outputs[0], options_, session.options().threads);
}

SegmentMap Segmenter::segment(const ImageSource& image) const {
  Session session(model());
  return segment(session, image);
}

}  // namespace vit
