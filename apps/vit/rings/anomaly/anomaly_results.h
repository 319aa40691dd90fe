// The result of an image that is compared with a bank: what the command writes and what the server answers.
#pragma once

#include <cstddef>

#include "apps/vit/ground/text_format.h"
#include "vit/anomaly.h"
#include "vit/image/preprocess.h"

namespace vit::app {

/// "score", "threshold", "anomalous".
void write_anomaly(JsonWriter& json, const AnomalyResult& result);

/// Distances at the size of the image.
struct AnomalyPixels {
  Tensor<float> map;   // (H, W); NaN where the center crop hides the image
  double highest = 0;  // that has the last color: twice the threshold, so that pictures can be compared
};
/// `preprocessor`: that made the pixels of the image; null: they are the image.
AnomalyPixels anomaly_pixels(const AnomalyResult& result, ImageSize image, const Preprocessor* preprocessor,
                             std::size_t patch_size, double sigma);

}  // namespace vit::app
