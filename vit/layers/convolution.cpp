#include "vit/layers/convolution.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Convolution", ErrorKind::mismatch};

/// A part of the outputs whose weights stay in the L2 cache while rows of the map are processed.
std::size_t columns_at_once(std::size_t in_features, std::size_t panel) {
  constexpr std::size_t kWeightFloats = std::size_t{1} << 17;  // half a MiB
  return std::max(kWeightFloats / in_features / panel, std::size_t{1}) * panel;
}

/// Rows of the map that a task computes: few enough for even shares, enough to amortize the weights.
std::size_t rows_per_task(MapSize out, int threads) {
  constexpr std::size_t kPixels = 256, kTasksPerThread = 8;
  const std::size_t even =
      ceil_div(out.height, kTasksPerThread * static_cast<std::size_t>(resolve_threads(threads)));
  return std::clamp<std::size_t>(even, 1, std::max<std::size_t>(1, ceil_div(kPixels, out.width)));
}

std::size_t num_tiles(MapSize size) {
  return ceil_div(size.height, kernels::kConvolutionTile) * ceil_div(size.width, kernels::kConvolutionTile);
}

/// Of so many tiles: as many as share weights, or fewer for even shares.
std::size_t tiles_per_task(std::size_t tiles, std::size_t at_once, int threads) {
  constexpr std::size_t kTasksPerThread = 4, kRows = 12;  // of a product
  const std::size_t even =
      ceil_div(tiles, kTasksPerThread * static_cast<std::size_t>(resolve_threads(threads)));
  return std::clamp<std::size_t>(round_up(even, kRows), 1, at_once);
}

void check_kernel(TensorView<const float> weight) {
  VIT_CHECK(
      weight.rank() == 4 && weight.dim(2) == weight.dim(3) && (weight.dim(2) == 1 || weight.dim(2) == 3),
      kWhere, "a kernel has the shape (out, in, k, k) with k = 1 or 3, got ", weight.shape().to_string());
}

Tensor<float> packed_tiles(TensorView<const float> weight, const kernels::ConvolutionKernels& kernels) {
  const std::size_t out = weight.dim(0), in = weight.dim(1);
  Tensor<float> packed(Shape{kernels.packed_floats(out, in)});
  parallel_for_parts(out, kernels.panel_columns, 0, [&](std::size_t first, std::size_t count) {
    kernels.pack({.weight = weight.data() + first * in * 9,
                  .out_channels = count,
                  .in_channels = in,
                  .packed = packed.data() + kernels.packed_floats(first, in)});
  });
  return packed;
}

/// (O, I, k, k) as (O, k, k, I): the weights of a row of the window are contiguous.
Tensor<float> window_rows(TensorView<const float> weight) {
  const std::size_t out = weight.dim(0), in = weight.dim(1), places = weight.dim(2) * weight.dim(3);
  Tensor<float> rows(Shape{out, places * in});
  for (std::size_t o = 0; o < out; ++o) {
    const float* const from = weight.data() + o * in * places;
    float* const to = rows.data() + o * in * places;
    for (std::size_t i = 0; i < in; ++i) {
      for (std::size_t place = 0; place < places; ++place) to[place * in + i] = from[i * places + place];
    }
  }
  return rows;
}

Tensor<float> repeated(std::span<const float> bias, std::size_t out, std::size_t times) {
  if (bias.empty()) return {};
  VIT_CHECK(bias.size() == out, kWhere, "bias of ", bias.size(), " numbers for ", out, " channels");
  Tensor<float> copy(Shape{times * out});
  for (std::size_t i = 0; i < times; ++i) std::ranges::copy(bias, copy.data() + i * out);
  return copy;
}

}  // namespace

Convolution::Convolution(TensorView<const float> weight, std::span<const float> bias, std::size_t stride,
                         const kernels::KernelTable& kernels)
    : in_channels_(weight.rank() == 4 ? weight.dim(1) : 0),
      out_channels_(weight.rank() == 4 ? weight.dim(0) : 0),
      edge_(weight.rank() == 4 ? weight.dim(3) : 0),
      stride_(stride),
      kernels_(&kernels.convolution),
      bias_(repeated(bias, out_channels_, 1)) {
  VIT_CHECK(stride != 0, kWhere, "stride ", stride);
  check_kernel(weight);
  if (edge_ == 3 && stride == 1) {
    tiles_ = packed_tiles(weight, *kernels_);
  } else {
    weight_ = kernels::PackedMatrix(window_rows(weight), *kernels.float32->linear);
  }
}

std::size_t Convolution::scratch_floats() const noexcept {
  return tiles_.empty() ? 0 : round_up(kernels_->scratch_floats(in_channels_), 16);
}

MapSize Convolution::out_size(MapSize in) const {
  return {ceil_div(in.height, stride_), ceil_div(in.width, stride_)};
}

void Convolution::check(const FeatureMap& in, const FeatureMap& out, const MapEpilogue& epilogue) const {
  VIT_CHECK(in.channels() == in_channels_ && out.channels() == out_channels() &&
                out.size() == out_size(in.size()) && (edge_ == 1 || in.has_border()),
            kWhere, "a kernel (", out_channels(), ", ", in_channels_, ", ", edge_, ", ", edge_,
            ") with stride ", stride_, " cannot be applied to a map of ", in.height(), " x ", in.width(),
            " x ", in.channels(), " to one of ", out.height(), " x ", out.width(), " x ", out.channels());
  for (const FeatureMap& added : {epilogue.residual, epilogue.second}) {
    VIT_CHECK(added.empty() || (added.size() == out.size() && added.channels() == out.channels()), kWhere,
              "a residual of another size than the result");
  }
  const bool of_tiles = epilogue.activation == Activation::none || epilogue.activation == Activation::relu;
  VIT_CHECK(tiles_.empty() ? epilogue.second.empty() && !epilogue.in_relu : of_tiles, kWhere,
            "an epilogue that a kernel of ", edge_, " x ", edge_, " with stride ", stride_, " does not have");
}

void Convolution::multiply_rows(const FeatureMap& in, const FeatureMap& out, RowRange rows,
                                const MapEpilogue& epilogue) const {
  const kernels::LinearKernels& kernels = weight_.kernels();
  const std::size_t features = weight_.in_features(), outputs = out_channels();
  const std::size_t at_once = columns_at_once(features, kernels.panel_columns);
  const std::ptrdiff_t before = edge_ == 3 ? 1 : 0;
  const bool adds = !epilogue.residual.empty();
  for (std::size_t column = 0; column < outputs; column += at_once) {
    for (std::size_t y = rows.first; y < rows.first + rows.count; ++y) {
      const float* const window = in.row(static_cast<std::ptrdiff_t>(y * stride_) - before) -
                                  before * static_cast<std::ptrdiff_t>(in_channels_);
      const auto row = static_cast<std::ptrdiff_t>(y);
      kernels.gemm({.in = reinterpret_cast<const std::byte*>(window),
                    .in_step = stride_ * in_channels_ * sizeof(float),
                    .rows = out.width(),
                    .pieces = edge_,
                    .piece_step = in.row_stride() * sizeof(float),
                    .packed = weight_.data(),
                    .in_features = features,
                    .column_begin = column,
                    .column_end = std::min(column + at_once, outputs),
                    .out = out.row(row),
                    .out_stride = outputs,
                    .epilogue = {.bias = epilogue.bias != nullptr ? epilogue.bias : bias_.data(),
                                 .activation = epilogue.activation,
                                 .residual = adds ? epilogue.residual.row(row) : nullptr,
                                 .residual_stride = outputs}});
    }
  }
}

void Convolution::convolve_tiles(const FeatureMap& in, const FeatureMap& out, std::size_t first,
                                 std::size_t last, float* scratch, const MapEpilogue& epilogue) const {
  const auto start = [](const FeatureMap& map) { return map.empty() ? nullptr : map.row(0); };
  kernels_->convolve({.in = in.row(0),
                      .in_stride = in.row_stride(),
                      .in_channels = in_channels_,
                      .in_relu = epilogue.in_relu,
                      .height = in.height(),
                      .width = in.width(),
                      .first_tile = first,
                      .last_tile = last,
                      .packed = tiles_.data(),
                      .out_channels = out_channels_,
                      .bias = epilogue.bias != nullptr ? epilogue.bias : bias_.data(),
                      .relu = epilogue.activation == Activation::relu,
                      .residual = start(epilogue.residual),
                      .residual_stride = epilogue.residual.row_stride(),
                      .second = start(epilogue.second),
                      .second_stride = epilogue.second.row_stride(),
                      .out = out.row(0),
                      .out_stride = out.row_stride(),
                      .scratch = scratch});
}

void Convolution::forward(const FeatureMap& in, const FeatureMap& out, int threads, TensorView<float> scratch,
                          const MapEpilogue& epilogue) const {
  check(in, out, epilogue);
  if (tiles_.empty()) {
    return parallel_for_parts(out.height(), rows_per_task(out.size(), threads), threads,
                              [&](std::size_t first, std::size_t count) {
                                multiply_rows(in, out, {first, count}, epilogue);
                              });
  }
  const std::size_t tiles = num_tiles(out.size());
  const std::size_t at_once = tiles_per_task(tiles, kernels_->tiles_at_once(in_channels_), threads);
  VIT_CHECK(scratch_floats() == 0 || scratch.num_columns() >= scratch_floats(), kWhere, "scratch memory of ",
            scratch.num_elements(), " floats where a thread needs ", scratch_floats());
  parallel_for(ceil_div(tiles, at_once), threads, [&](std::size_t task, int thread) {
    float* const own = scratch_floats() == 0 ? nullptr : scratch.row(static_cast<std::size_t>(thread));
    convolve_tiles(in, out, task * at_once, std::min((task + 1) * at_once, tiles), own, epilogue);
  });
}

void Convolution::forward_in_thread(const FeatureMap& in, const FeatureMap& out, float* scratch,
                                    const MapEpilogue& epilogue) const {
  check(in, out, epilogue);
  if (tiles_.empty()) return multiply_rows(in, out, {0, out.height()}, epilogue);
  convolve_tiles(in, out, 0, num_tiles(out.size()), scratch, epilogue);
}

TransposedConvolution::TransposedConvolution(TensorView<const float> weight, std::span<const float> bias,
                                             const kernels::LinearKernels& kernels)
    : edge_(weight.rank() == 4 ? weight.dim(3) : 0) {
  VIT_CHECK(weight.rank() == 4 && edge_ != 0 && weight.dim(2) == edge_ && kernels.convert_rows == nullptr,
            kWhere, "a transposed kernel has the shape (in, out, k, k), got ", weight.shape().to_string());
  const std::size_t in = weight.dim(0), out = weight.dim(1);
  for (std::size_t u = 0; u < edge_; ++u) {
    Tensor<float> row(Shape{edge_ * out, in});
    for (std::size_t i = 0; i < in; ++i) {
      for (std::size_t o = 0; o < out; ++o) {
        const float* const from = weight.data() + ((i * out + o) * edge_ + u) * edge_;
        for (std::size_t v = 0; v < edge_; ++v) row.data()[(v * out + o) * in + i] = from[v];
      }
    }
    rows_.emplace_back(row, kernels);
  }
  bias_ = repeated(bias, out, edge_);
}

DepthwiseConvolution::DepthwiseConvolution(TensorView<const float> weight) {
  VIT_CHECK(weight.rank() == 4 && weight.dim(1) == 1 && weight.dim(2) == 3 && weight.dim(3) == 3, kWhere,
            "a kernel for each channel has the shape (channels, 1, 3, 3), got ", weight.shape().to_string());
  constexpr std::size_t kTaps = 9;
  const std::size_t channels = weight.dim(0);
  taps_ = Tensor<float>(Shape{kTaps, channels});
  for (std::size_t c = 0; c < channels; ++c) {
    for (std::size_t tap = 0; tap < kTaps; ++tap)
      taps_.data()[tap * channels + c] = weight.data()[c * kTaps + tap];
  }
}

void DepthwiseConvolution::forward_row(const FeatureMap& in, std::size_t y, float* out) const {
  const std::size_t channels = in.channels();
  const auto row = static_cast<std::ptrdiff_t>(y);
  const float* const above = in.row(row - 1) - channels;
  const float* const here = in.row(row) - channels;
  const float* const below = in.row(row + 1) - channels;
  for (std::size_t x = 0; x < in.width(); ++x, out += channels) {
    std::fill_n(out, channels, 0.0f);
    const float* taps = taps_.data();
    for (const float* const from : {above, here, below}) {
      for (std::size_t k = 0; k < 3; ++k, taps += channels) {
        const float* const pixel = from + (x + k) * channels;
        for (std::size_t c = 0; c < channels; ++c) out[c] += pixel[c] * taps[c];
      }
    }
  }
}

void TransposedConvolution::forward(const FeatureMap& in, const FeatureMap& out, int threads,
                                    Activation activation) const {
  VIT_CHECK(
      in.channels() == in_channels() && out.channels() == out_channels() && out.size() == out_size(in.size()),
      kWhere, "a transposed kernel (", in_channels(), ", ", out_channels(), ", ", edge_, ", ", edge_,
      ") cannot be applied to a map of ", in.height(), " x ", in.width(), " x ", in.channels(), " to one of ",
      out.height(), " x ", out.width(), " x ", out.channels());
  const std::size_t outputs = edge_ * out_channels();
  parallel_for(in.height(), threads, [&](std::size_t y, int) {
    for (std::size_t u = 0; u < edge_; ++u) {
      const kernels::PackedMatrix& weight = rows_[u];
      weight.kernels().gemm({.in = reinterpret_cast<const std::byte*>(in.row(static_cast<std::ptrdiff_t>(y))),
                             .in_step = in_channels() * sizeof(float),
                             .rows = in.width(),
                             .packed = weight.data(),
                             .in_features = in_channels(),
                             .column_begin = 0,
                             .column_end = outputs,
                             .out = out.row(static_cast<std::ptrdiff_t>(y * edge_ + u)),
                             .out_stride = outputs,
                             .epilogue = {.bias = bias_.data(), .activation = activation}});
    }
  });
}

}  // namespace vit::internal
