// Convolutions of maps whose pixels are rows of channels, with a kernel of 3x3 and a padding of 1. Results
// are computed in tiles of 4x4 pixels. Letters: I, O = channels in and out.
#pragma once

#include <cstddef>

namespace vit::internal::kernels {

/// Edge of a tile in pixels. Tile t is at row t / ceil(W / 4) and column t % ceil(W / 4) of tiles.
constexpr std::size_t kConvolutionTile = 4;

/// Below so many input channels a convolution is a plain sum. It takes little time, and there are few terms
/// among which the rounding of transforms would average out.
constexpr std::size_t kTransformedChannels = 32;

struct ConvolutionPackArgs {
  const float* weight = nullptr;  // (O, I, 3, 3)
  std::size_t out_channels = 0;   // O
  std::size_t in_channels = 0;    // I
  float* packed = nullptr;        // packed_floats(O, I), 64-byte aligned
};

/// out = second + residual + activation(convolution of `in` + bias) for the tiles [first_tile, last_tile); a
/// null pointer omits its term. Maps begin at their pixel (0, 0). The outputs around a NaN or infinite number
/// of `in` are not finite, at least 3x3 and at most those of the tiles that read it, unless ReLU makes zeros
/// of negative infinity.
struct ConvolutionArgs {
  const float* in = nullptr;  // (H, W, I), with a border of one pixel around it, which is read too
  std::size_t in_stride = 0;  // floats from one row to the next, like those below
  std::size_t in_channels = 0;
  bool in_relu = false;  // reads max(in, 0)
  std::size_t height = 0, width = 0;
  std::size_t first_tile = 0, last_tile = 0;
  const float* packed = nullptr;  // written by `pack` of the same kernels
  std::size_t out_channels = 0;
  const float* bias = nullptr;  // (O)
  bool relu = false;
  const float* residual = nullptr;  // (H, W, O), may be out, like `second`
  std::size_t residual_stride = 0;
  const float* second = nullptr;
  std::size_t second_stride = 0;
  float* out = nullptr;  // (H, W, O), not overlapping in
  std::size_t out_stride = 0;
  float* scratch = nullptr;  // scratch_floats(I) of this thread, 64-byte aligned
};

struct ConvolutionKernels {
  std::size_t panel_columns;  // outputs stored together in a packed weight
  /// Tiles for which the weights are read once.
  std::size_t (*tiles_at_once)(std::size_t in_channels) noexcept;
  std::size_t (*scratch_floats)(std::size_t in_channels) noexcept;
  /// `out_channels` is rounded up to panels.
  std::size_t (*packed_floats)(std::size_t out_channels, std::size_t in_channels) noexcept;
  void (*pack)(const ConvolutionPackArgs& args) noexcept;
  void (*convolve)(const ConvolutionArgs& args) noexcept;
};

}  // namespace vit::internal::kernels
