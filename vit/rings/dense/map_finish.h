// The last step of a dense head: the numbers of its last layer become depths or scores.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/dense_config.h"

namespace vit::internal {

class MapFinisher {
 public:
  explicit MapFinisher(const MapOutput& output);

  /// Planes of the result: 1 of depths, else the channels.
  std::size_t num_planes() const noexcept { return bins_.empty() ? output_.channels : 1; }
  /// The pixels of a row (width, channels) to row `y` of the planes `out` (planes, H, width).
  void finish_row(const float* row, std::size_t y, TensorView<float> out) const;

 private:
  float finished(float value) const;
  void finish_bins(const float* row, std::size_t width, float* out) const;

  MapOutput output_;
  std::vector<float> bins_;  // depths
};

}  // namespace vit::internal
