// Convolutions of feature maps. A kernel of 3x3 with stride 1 has kernels of its own; others are products of
// rows: the window of a pixel is read in place, so no map is copied, or converted for the product with some
// others. Letters: I, O = channels in and out, k = edge of the kernel.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "vit/base/choices.h"
#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"
#include "vit/kernels/pack.h"
#include "vit/layers/map.h"

namespace vit::internal {

/// out = second + residual + activation(convolution + bias); an empty map is omitted.
struct MapEpilogue {
  Activation activation = Activation::none;  // none or ReLU after 3x3 with stride 1
  FeatureMap residual{};                     // (H', W', O), may be out
  const float* bias = nullptr;               // (O) instead of the convolution's own
  // only of 3x3 with stride 1
  FeatureMap second{};   // like residual
  bool in_relu = false;  // the convolution is of max(in, 0)
};

/// Neighboring pixels of one row of a map.
struct PixelRun {
  std::size_t y, x, count;
};

/// A kernel of 1x1, or of 3x3 with a padding of 1.
class Convolution {
 public:
  /// weight (O, I, k, k), k = 1 or 3; bias (O) or empty. Copies both in the layout of `kernels`, in float32.
  /// Throws Error if shapes disagree.
  Convolution(TensorView<const float> weight, std::span<const float> bias, std::size_t stride,
              const kernels::KernelTable& kernels)
      : Convolution(weight, bias, stride, kernels, *kernels.float32->linear) {}
  /// The same in the arithmetic of `products`, unless it is of 3x3 with stride 1.
  Convolution(TensorView<const float> weight, std::span<const float> bias, std::size_t stride,
              const kernels::KernelTable& kernels, const kernels::LinearKernels& products);

  std::size_t in_channels() const noexcept { return in_channels_; }
  std::size_t out_channels() const noexcept { return out_channels_; }
  std::size_t edge() const noexcept { return edge_; }  // of the kernel: 1 or 3
  /// Floats that a thread needs: a multiple of 16, 0 for products of float32.
  std::size_t scratch_floats() const noexcept;
  /// ceil(size / stride).
  MapSize out_size(MapSize in) const;

  /// in (H, W, I) -> out (H', W', O), which must not overlap; of 3x3 `in` has a border. scratch (threads,
  /// scratch_floats() or more), 64-byte aligned rows, may be empty where that is 0. With 3x3 and stride 1 the
  /// bits of a pixel depend on the 6x6 pixels around the tile of 4x4 pixels that it is in, else on its
  /// window. Throws Error if shapes disagree.
  void forward(const FeatureMap& in, const FeatureMap& out, int threads, TensorView<float> scratch,
               const MapEpilogue& epilogue = {}) const;
  /// The same in the calling thread; scratch (scratch_floats()).
  void forward_in_thread(const FeatureMap& in, const FeatureMap& out, float* scratch,
                         const MapEpilogue& epilogue = {}) const;

 private:
  void check(const FeatureMap& in, const FeatureMap& out, const MapEpilogue& epilogue) const;
  const float* window(const FeatureMap& in, PixelRun run) const;
  kernels::GemmArgs product_of(PixelRun run, const FeatureMap& out, const MapEpilogue& epilogue) const;
  bool converts() const noexcept { return tiles_.empty() && weight_.kernels().convert_rows != nullptr; }
  void multiply_rows(const FeatureMap& in, const FeatureMap& out, RowRange rows,
                     const MapEpilogue& epilogue) const;
  void convert_windows(const FeatureMap& in, PixelRun run, std::byte* converted, float* gathered) const;
  void multiply_converted(const FeatureMap& in, const FeatureMap& out, RowRange pixels, float* scratch,
                          const MapEpilogue& epilogue) const;
  void convolve_tiles(const FeatureMap& in, const FeatureMap& out, std::size_t first, std::size_t last,
                      float* scratch, const MapEpilogue& epilogue) const;

  std::size_t in_channels_, out_channels_, edge_, stride_;
  kernels::PackedMatrix weight_;  // (O, k k I): concatenated rows of the window; empty if there are tiles
  const kernels::ConvolutionKernels* kernels_;
  Tensor<float> tiles_;  // the weight for 3x3 with stride 1
  Tensor<float> bias_;   // (O) or empty
};

/// A transposed convolution whose kernel is as large as its stride: every pixel becomes k x k pixels.
class TransposedConvolution {
 public:
  /// weight (I, O, k, k); bias (O) or empty. Throws Error if shapes disagree.
  TransposedConvolution(TensorView<const float> weight, std::span<const float> bias,
                        const kernels::LinearKernels& kernels);

  std::size_t in_channels() const noexcept { return rows_.front().in_features(); }
  std::size_t out_channels() const noexcept { return rows_.front().out_features() / edge_; }
  /// As that of a Convolution.
  std::size_t scratch_floats() const noexcept;
  MapSize out_size(MapSize in) const { return {in.height * edge_, in.width * edge_}; }

  /// in (H, W, I) -> out (k H, k W, O), which must not overlap; scratch as that of a Convolution. Throws
  /// Error if shapes disagree.
  void forward(const FeatureMap& in, const FeatureMap& out, int threads, TensorView<float> scratch,
               Activation activation = Activation::none) const;

 private:
  void multiply_run(const FeatureMap& in, const FeatureMap& out, PixelRun run, float* scratch,
                    Activation activation) const;

  std::size_t edge_;
  std::vector<kernels::PackedMatrix> rows_;  // k of (k O, I): the pixels of one row of the result
  Tensor<float> bias_;                       // (k O) or empty
};

/// A kernel of 3x3 with a padding of 1 for each channel, without bias.
class DepthwiseConvolution {
 public:
  /// weight (C, 1, 3, 3). Throws Error for another shape.
  explicit DepthwiseConvolution(TensorView<const float> weight);

  std::size_t channels() const noexcept { return taps_.dim(1); }
  /// Row `y` of in (H, W, C), which has a border, to `out` (W * C).
  void forward_row(const FeatureMap& in, std::size_t y, float* out) const;

 private:
  Tensor<float> taps_;  // (9, C)
};

}  // namespace vit::internal
