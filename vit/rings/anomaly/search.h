// What an AnomalyModel searches in, and how distances become a score.
#pragma once

#include <span>
#include <vector>

#include "vit/anomaly.h"
#include "vit/rings/anomaly/nearest_rows.h"

namespace vit {

struct AnomalyModel::Search {
  explicit Search(TensorView<const float> patches);

  internal::NearestRows nearest;
};

namespace internal {

/// What a model is asked for by a bank of these options.
Request anomaly_request(const AnomalyOptions& options);
/// Patch features (h w, C) of an image as a bank of these options keeps them. Throws Error for numbers that
/// are not finite.
Tensor<float> anomaly_features(const ImageOutputs& outputs, const AnomalyOptions& options, int threads);
/// Whether a patch lies on the foreground side of `background` (2, C); all do without one.
bool is_foreground(std::span<const float> patch, TensorView<const float> background);
/// Scores an image by its distances (P); `patches` (m, C) without the rows in `left_out` are the bank,
/// `features` (P, C) and `nearest` (P) what was found for them.
float score_of(AnomalyScore score, std::span<const float> distances, TensorView<const float> features,
               std::span<const NearestRow> nearest, TensorView<const float> patches, RowRange left_out);

}  // namespace internal
}  // namespace vit
