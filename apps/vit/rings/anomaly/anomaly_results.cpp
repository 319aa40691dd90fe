#include "apps/vit/rings/anomaly/anomaly_results.h"

#include <limits>

namespace vit::app {
namespace {

/// NaN for the pixels of a map that are more than a patch outside of what the model saw: the center crop
/// hides them.
void blank_unseen(Tensor<float>& map, const SourceMap& from, ImageSize seen, std::size_t patch) {
  const auto is_seen = [&](double start, double step, std::size_t length, std::size_t at) {
    const double margin = step * static_cast<double>(patch), place = static_cast<double>(at) + 0.5;
    return place >= start - margin && place <= start + step * static_cast<double>(length) + margin;
  };
  for (std::size_t y = 0; y < map.dim(0); ++y) {
    const bool is_row_seen = is_seen(from.top, from.y_step, seen.height, y);
    for (std::size_t x = 0; x < map.dim(1); ++x) {
      if (!is_row_seen || !is_seen(from.left, from.x_step, seen.width, x))
        map.view().row(y)[x] = std::numeric_limits<float>::quiet_NaN();
    }
  }
}

/// The largest number of a map, without NaN.
double largest(TensorView<const float> map) {
  float found = 0;
  for (const float value : map.flat()) {
    if (value > found) found = value;
  }
  return found;
}

}  // namespace

void write_anomaly(JsonWriter& json, const AnomalyResult& result) {
  json.member("score", result.score).member("threshold", result.threshold);
  json.member("anomalous", result.is_anomalous());
}

AnomalyPixels anomaly_pixels(const AnomalyResult& result, ImageSize image, const Preprocessor* preprocessor,
                             std::size_t patch_size, double sigma) {
  const SourceMap map = preprocessor == nullptr ? SourceMap{} : preprocessor->source_map(image);
  AnomalyPixels out{.map = anomaly_map(result.distances, image, map, patch_size, sigma)};
  if (preprocessor != nullptr) blank_unseen(out.map, map, preprocessor->output_size(image), patch_size);
  out.highest = result.threshold && *result.threshold > 0 ? 2 * static_cast<double>(*result.threshold)
                                                          : largest(out.map);
  return out;
}

}  // namespace vit::app
