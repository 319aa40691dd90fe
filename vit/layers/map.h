// FeatureMap: pixels of a feature image with interleaved channels, with a border of zeros one pixel wide,
// which is the padding of a 3x3 convolution.
//
//   row -1     | 0 0 0 0 0 0 |
//   row 0      | 0 p p p p 0 |     p: C numbers
//   row H - 1  | 0 p p p p 0 |
//   row H      | 0 0 0 0 0 0 |
#pragma once

#include <algorithm>
#include <cstddef>

#include "vit/base/arena.h"
#include "vit/base/tensor.h"

namespace vit::internal {

/// Height and width of a map, in pixels.
struct MapSize {
  std::size_t height = 0;
  std::size_t width = 0;
  bool operator==(const MapSize&) const = default;
};

/// A view: copying it copies no elements.
class FeatureMap {
 public:
  FeatureMap() = default;
  FeatureMap(float* pixels, MapSize size, std::size_t channels, std::size_t row_stride, bool has_border)
      : pixels_(pixels), size_(size), channels_(channels), row_stride_(row_stride), has_border_(has_border) {}

  /// Memory of an arena with unspecified contents: call clear_border() first.
  static FeatureMap take(Arena::Taker& arena, MapSize size, std::size_t channels) {
    return over(arena.take<float>({num_floats(size, channels)}), size, channels);
  }
  /// At the start of `memory`, which has at least num_floats(), or is empty.
  static FeatureMap over(TensorView<float> memory, MapSize size, std::size_t channels) {
    const std::size_t stride = (size.width + 2) * channels;
    return {memory.empty() ? nullptr : memory.data() + stride + channels, size, channels, stride, true};
  }
  static std::size_t num_floats(MapSize size, std::size_t channels) {
    constexpr Where kWhere{"FeatureMap"};
    return checked_mul(
        checked_mul(checked_add(size.height, 2, kWhere), checked_add(size.width, 2, kWhere), kWhere),
        channels, kWhere);
  }
  /// Consecutive rows of tokens (height * width, channels): for products of single pixels, without
  /// a border.
  static FeatureMap of_tokens(TensorView<float> tokens, MapSize size) {
    const std::size_t channels = tokens.num_columns();
    return {tokens.data(), size, channels, size.width * channels, false};
  }

  MapSize size() const noexcept { return size_; }
  std::size_t height() const noexcept { return size_.height; }
  std::size_t width() const noexcept { return size_.width; }
  std::size_t channels() const noexcept { return channels_; }
  bool has_border() const noexcept { return has_border_; }
  bool empty() const noexcept { return pixels_ == nullptr; }
  /// Floats from one row to the next.
  std::size_t row_stride() const noexcept { return row_stride_; }
  /// Pixel 0 of row y, from -1 to height() if there is a border.
  float* row(std::ptrdiff_t y) const noexcept {
    return pixels_ + y * static_cast<std::ptrdiff_t>(row_stride_);
  }

  void clear_border() const noexcept {
    const auto height = static_cast<std::ptrdiff_t>(size_.height);
    std::fill_n(row(-1) - channels_, row_stride_, 0.0f);
    std::fill_n(row(height) - channels_, row_stride_, 0.0f);
    for (std::ptrdiff_t y = 0; y < height; ++y) {
      std::fill_n(row(y) - channels_, channels_, 0.0f);
      std::fill_n(row(y) + size_.width * channels_, channels_, 0.0f);
    }
  }

 private:
  float* pixels_ = nullptr;
  MapSize size_;
  std::size_t channels_ = 0;
  std::size_t row_stride_ = 0;
  bool has_border_ = true;
};

/// The rows [first, first + count) of a map.
struct RowRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

}  // namespace vit::internal
