#include "vit/pose.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <variant>

#include "vit/api/source_pixels.h"
#include "vit/base/check.h"
#include "vit/base/rounded.h"
#include "vit/image/warp_box.h"
#include "vit/layers/map.h"

namespace vit {
using namespace internal;
namespace {

constexpr Where kWhere{"pose", ErrorKind::mismatch};

/// Half of a Gaussian of sigma 0.8, cut to 11 pixels, from its center on.
std::array<double, 6> half_gaussian() {
  constexpr double kSigma = 0.8;
  std::array<double, 6> out{};
  double sum = 0.0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto x = static_cast<double>(i);
    out[i] = std::exp(-0.5 / (kSigma * kSigma) * x * x);
    sum += i == 0 ? out[i] : 2.0 * out[i];
  }
  for (double& weight : out) weight /= sum;
  return out;
}

/// scipy's mode "reflect": c b a | a b c.
std::size_t reflected(std::ptrdiff_t at, std::size_t size) {
  const auto length = static_cast<std::ptrdiff_t>(size), period = 2 * length;
  at = ((at % period) + period) % period;
  return static_cast<std::size_t>(at < length ? at : period - 1 - at);
}

/// `count` numbers `step` floats apart, smoothed in place.
void smooth(float* values, std::size_t count, std::size_t step, std::vector<float>& line) {
  static const std::array<double, 6> kernel = half_gaussian();
  line.resize(count);
  for (std::size_t i = 0; i < count; ++i) line[i] = values[i * step];
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::ptrdiff_t>(i);
    double sum = kernel[0] * line[i];
    for (std::size_t k = 1; k < kernel.size(); ++k) {
      const auto away = static_cast<std::ptrdiff_t>(k);
      sum += kernel[k] *
             (static_cast<double>(line[reflected(at - away, count)]) + line[reflected(at + away, count)]);
    }
    values[i * step] = static_cast<float>(sum);
  }
}

/// Logarithms of the smoothed maps, each with its border repeated once: (K, h + 2, w + 2), one after the
/// other.
std::vector<float> log_maps(TensorView<const float> maps) {
  const std::size_t count = maps.dim(0), height = maps.dim(1), width = maps.dim(2);
  std::vector<float> out(count * (height + 2) * (width + 2)), map(height * width), line;
  for (std::size_t k = 0; k < count; ++k) {
    std::ranges::copy(maps[k].flat(), map.begin());
    for (std::size_t x = 0; x < width; ++x) smooth(map.data() + x, height, width, line);
    for (std::size_t y = 0; y < height; ++y) smooth(map.data() + y * width, width, 1, line);
    float* to = out.data() + k * (height + 2) * (width + 2);
    for (std::size_t y = 0; y < height + 2; ++y) {
      const std::size_t row = std::clamp<std::size_t>(y, 1, height) - 1;
      for (std::size_t x = 0; x < width + 2; ++x) {
        const std::size_t column = std::clamp<std::size_t>(x, 1, width) - 1;
        *to++ = rounded_log(std::clamp(map[row * width + column], 0.001f, 50.0f));
      }
    }
  }
  return out;
}

struct Point {
  float x, y;
};

/// The Newton step from `at`. A map without a positive value has its point outside, at (-1, -1), where the
/// library reads its neighbors from the end of the map before: so does this, as if the batch had only
/// this box.
Point refined(Point at, std::span<const float> logs, std::size_t map, MapSize size) {
  const auto stride = static_cast<std::ptrdiff_t>(size.width) + 2;
  const std::ptrdiff_t first =
      static_cast<std::ptrdiff_t>(map) * stride * (static_cast<std::ptrdiff_t>(size.height) + 2);
  const std::ptrdiff_t index =
      first + static_cast<std::ptrdiff_t>(at.x + 1.0f) + static_cast<std::ptrdiff_t>(at.y + 1.0f) * stride;
  const auto value = [&](std::ptrdiff_t away) {
    const auto total = static_cast<std::ptrdiff_t>(logs.size());
    return logs[static_cast<std::size_t>(((index + away) % total + total) % total)];
  };
  const float here = value(0), right = value(1), below = value(stride), left = value(-1),
              above = value(-stride);
  const float dx = 0.5f * (right - left), dy = 0.5f * (below - above);
  const float curve_x = right - 2.0f * here + left, curve_y = below - 2.0f * here + above;
  const float mixed =
      0.5f * (value(stride + 1) - right - below + here + here - left - above + value(-stride - 1));
  constexpr double kLeast = std::numeric_limits<float>::epsilon();
  const double xx = curve_x + kLeast, yy = curve_y + kLeast, xy = mixed;
  const double determinant = xx * yy - xy * xy;
  if (determinant == 0.0) return at;
  return {static_cast<float>(at.x - (yy * dx - xy * dy) / determinant),
          static_cast<float>(at.y - (xx * dy - xy * dx) / determinant)};
}

/// Keypoints in pixels of the heat maps.
std::vector<Keypoint> points_of(TensorView<const float> maps) {
  VIT_CHECK(maps.rank() == 3 && maps.num_elements() != 0 && maps.dim(1) > 1 && maps.dim(2) > 1,
            kWhere.with(ErrorKind::argument), "heat maps (keypoints, height, width) of ",
            maps.shape().to_string());
  const std::vector<float> logs = log_maps(maps);
  const MapSize size{maps.dim(1), maps.dim(2)};
  std::vector<Keypoint> out;
  for (std::size_t k = 0; k < maps.dim(0); ++k) {
    const std::span<const float> map = maps[k].flat();
    const auto best = static_cast<std::size_t>(std::ranges::max_element(map) - map.begin());
    const float score = map[best];
    const Point at = score > 0.0f
                         ? Point{static_cast<float>(best % size.width), static_cast<float>(best / size.width)}
                         : Point{-1.0f, -1.0f};
    const Point point = refined(at, logs, k, size);
    out.push_back({point.x, point.y, score});
  }
  return out;
}

/// The model, whose head must have heat maps.
std::shared_ptr<const Model> with_heatmaps(std::shared_ptr<const Model> model) {
  VIT_CHECK(model != nullptr, kWhere.with(ErrorKind::argument), "no model");
  const DenseConfig* const config = model->dense_config();
  VIT_CHECK(config != nullptr && config->find(Output::heatmaps) != nullptr, kWhere,
            model->report().path.string(), " has no head that outputs heat maps of keypoints");
  return model;
}

}  // namespace

std::vector<Keypoint> keypoints_of(const ImageOutputs& outputs, const Box& box) {
  const TensorView<const float> heatmaps = outputs[Output::heatmaps];
  constexpr double kUnit = 200.0;
  const WidenedBox wide = widened(box, outputs.frame().pixels, kUnit);
  std::vector<Keypoint> points = points_of(heatmaps);
  const float width = wide.width * 200.0f, height = wide.height * 200.0f;
  const float x_step = width / static_cast<float>(heatmaps.dim(2) - 1);
  const float y_step = height / static_cast<float>(heatmaps.dim(1) - 1);
  for (Keypoint& point : points) {
    point.x = point.x * x_step + wide.center_x - width * 0.5f;
    point.y = point.y * y_step + wide.center_y - height * 0.5f;
  }
  return points;
}

std::vector<Keypoint> keypoints_of(const ImageOutputs& outputs) {
  const TensorView<const float> heatmaps = outputs[Output::heatmaps];
  const ImageSize pixels = outputs.frame().pixels;
  std::vector<Keypoint> points = points_of(heatmaps);
  const auto step = [](std::size_t from, std::size_t to) {
    return static_cast<float>(to - 1) / static_cast<float>(from - 1);
  };
  for (Keypoint& point : points) {
    point.x *= step(heatmaps.dim(2), pixels.width);
    point.y *= step(heatmaps.dim(1), pixels.height);
  }
  return points;
}

PoseEstimator::PoseEstimator(std::shared_ptr<const Model> model)
    : ImageTask(with_heatmaps(std::move(model)), Output::heatmaps) {}

PoseEstimator::PoseEstimator(const std::filesystem::path& path, const ModelOptions& options)
    : PoseEstimator(Model::load(path, options)) {}

std::vector<Pose> PoseEstimator::estimate(Session& session, const ImageSource& source,
                                          std::span<const Box> boxes) const {
  constexpr std::size_t kBoxesAtOnce = 32;
  VIT_CHECK(&session.model() == model().get(), kWhere.with(ErrorKind::argument),
            "the session and the task were made from different models");
  if (std::holds_alternative<LoadPixels>(source) && boxes.empty()) {
    Outputs crop;
    run(session, source, crop);
    return {{Box::whole(crop[0].frame().pixels), keypoints_of(crop[0])}};
  }
  Image memory;
  const ImageView image = image_of(session, source, memory);
  const std::size_t num_keypoints = model()->dense_config()->find(Output::heatmaps)->channels;
  const Preprocessor& preprocessor = session.preprocessor();
  BatchOutputs outputs;
  const Box whole = Box::whole(image.size());
  if (boxes.empty()) boxes = {&whole, 1};
  std::vector<Pose> poses;
  std::vector<std::size_t> inside;  // boxes with pixels of the image
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    poses.push_back({boxes[i], {}});
    if (!is_outside(boxes[i], image.size())) inside.push_back(i);
  }
  for (std::size_t first = 0; first < inside.size(); first += kBoxesAtOnce) {
    const std::span<const std::size_t> some =
        std::span(inside).subspan(first, std::min(kBoxesAtOnce, inside.size() - first));
    std::vector<Tensor<float>> crops;
    for (const std::size_t i : some) crops.push_back(preprocessor.run_box(image, boxes[i]));
    const std::vector<TensorView<const float>> pixels(crops.begin(), crops.end());
    session.run_pixels(pixels, request(), outputs);
    for (std::size_t i = 0; i < some.size(); ++i)
      poses[some[i]].keypoints = keypoints_of(outputs[i], boxes[some[i]]);
  }
  constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  for (Pose& pose : poses) {
    if (pose.keypoints.empty()) pose.keypoints.assign(num_keypoints, {kNone, kNone, 0.0f});
  }
  return poses;
}

std::vector<Pose> PoseEstimator::estimate(const ImageSource& image, std::span<const Box> boxes) const {
  Session session(model());
  return estimate(session, image, boxes);
}

}  // namespace vit
