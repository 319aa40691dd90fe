// Linear interpolation of maps whose pixels are rows of channels, first vertically, then along the
// rows. Letters: C = channels of a pixel.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vit::internal::kernels {

/// out[i] = a[i] * (1 - weight) + b[i] * weight.
struct BlendArgs {
  const float* a = nullptr;  // (count)
  const float* b = nullptr;  // (count)
  float weight = 0.0f;
  std::size_t count = 0;
  float* out = nullptr;  // (count), not overlapping a or b
};

/// Pixel i of `out` is pixel first[i] of `in` times (1 - weight[i]), plus pixel second[i] times weight[i].
struct InterpolateArgs {
  const float* in = nullptr;              // pixels of C numbers each
  std::size_t channels = 0;               // C
  std::size_t pixels = 0;                 // of out
  const std::uint32_t* first = nullptr;   // (pixels)
  const std::uint32_t* second = nullptr;  // (pixels)
  const float* weight = nullptr;          // (pixels)
  float* out = nullptr;                   // (pixels, C), not overlapping in
};

struct MapKernels {
  void (*blend)(const BlendArgs& args) noexcept;
  void (*interpolate)(const InterpolateArgs& args) noexcept;
};

}  // namespace vit::internal::kernels
