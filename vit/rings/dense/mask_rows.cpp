#include "vit/rings/dense/mask_rows.h"

#include <algorithm>

#include "vit/base/interpolation.h"
#include "vit/base/rounded.h"
#include "vit/towers/image_windows.h"

namespace vit::internal {

Lerp::Lerp(std::size_t in, std::size_t out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const BilinearSource source = bilinear_source(i, out, in);
    first.push_back(static_cast<std::uint32_t>(source.first));
    second.push_back(static_cast<std::uint32_t>(source.second));
    t.push_back(source.t);
  }
}

void Lerp::apply(const float* from, float* to) const {
  for (std::size_t i = 0; i < size(); ++i) to[i] = from[first[i]] * (1.0f - t[i]) + from[second[i]] * t[i];
}

void blend(const float* above, const float* below, float t, std::size_t count, float* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = above[i] * (1.0f - t) + below[i] * t;
}

MaskRows::MaskRows(TensorView<const float> masks, ImageSize pixels, ImageSize wanted)
    : rows(masks.dim(1), pixels.height, wanted.height), columns(masks.dim(2), pixels.width, wanted.width) {}

void MaskRows::row(TensorView<const float> mask, std::size_t y, float* scratch, float* to) const {
  blend(mask.row(rows.first[y]), mask.row(rows.second[y]), rows.t[y], mask.num_columns(), scratch);
  columns.apply(scratch, to);
}

ImageRows::ImageRows(TensorView<const float> masks, ImageSize pixels, ImageSize content, ImageSize image)
    : masks_(masks),
      pixels_(masks, pixels, content),
      rows_(content.height, image.height, image.height),
      columns_(content.width, image.width, image.width) {}

void ImageRows::row(std::size_t query, std::size_t y, float* scratch, float* to) const {
  const std::size_t width = pixels_.columns.size();
  float* const above = scratch + masks_.dim(2);
  float* const below = above + width;
  float* const between = below + width;
  pixels_.row(masks_[query], rows_.first[y], scratch, above);
  pixels_.row(masks_[query], rows_.second[y], scratch, below);
  blend(above, below, rows_.t[y], width, between);
  columns_.apply(between, to);
}

ClassRows::ClassRows(TensorView<const float> masks, const Tensor<float>& probabilities, std::size_t windows,
                     ImageSize pixels)
    : masks_(masks),
      probabilities_(probabilities),
      windows_(windows),
      pixels_(pixels),
      edge_{windows > 1 ? std::min(pixels.height, pixels.width) : pixels.height,
            windows > 1 ? std::min(pixels.height, pixels.width) : pixels.width},
      rows_(masks, edge_, edge_) {}

void ClassRows::row(std::size_t y, float* scratch, float* to) const {
  float* const counts = scratch + masks_.dim(2) + edge_.width;
  std::fill_n(counts, width(), 0.0f);
  std::fill_n(to, num_classes() * width(), 0.0f);
  for (std::size_t window = 0; window < windows_; ++window) {
    const bool along_rows = pixels_.height > pixels_.width;
    const std::size_t start = window_start(window, windows_, along_rows ? edge_.height : edge_.width,
                                           std::max(pixels_.height, pixels_.width));
    if (along_rows && (y < start || y >= start + edge_.height)) continue;
    const std::size_t left = along_rows ? 0 : start;
    add_window(window, along_rows ? y - start : y, scratch, to + left);
    for (std::size_t x = 0; x < edge_.width; ++x) counts[left + x] += 1.0f;
  }
  for (std::size_t c = 0; c < num_classes(); ++c) {
    for (std::size_t x = 0; x < width(); ++x) to[c * width() + x] /= counts[x];
  }
}

void ClassRows::add_window(std::size_t window, std::size_t y, float* scratch, float* to) const {
  const std::size_t queries = masks_.dim(0) / windows_, classes = num_classes();
  float* const inside = scratch + masks_.dim(2);
  for (std::size_t q = 0; q < queries; ++q) {
    rows_.row(masks_[window * queries + q], y, scratch, inside);
    for (std::size_t x = 0; x < edge_.width; ++x) inside[x] = rounded_sigmoid(inside[x]);
    const float* const weights = probabilities_.view().row(window * queries + q);
    for (std::size_t c = 0; c < classes; ++c) {
      float* const row = to + c * width();
      for (std::size_t x = 0; x < edge_.width; ++x) row[x] += weights[c] * inside[x];
    }
  }
}

}  // namespace vit::internal
