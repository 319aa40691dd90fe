#include "vit/layers/convolution.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/parallel.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"Convolution", ErrorKind::argument};

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

/// Pixels whose rows, in the format of a product, a thread makes at a time: they stay in its L2 cache while
/// the weights pass by.
std::size_t converted_at_once(const kernels::LinearKernels& kernels, std::size_t features) {
  constexpr std::size_t kBytes = std::size_t{1} << 19, kMost = 256;
  const std::size_t rows = std::clamp(kBytes / kernels.row_bytes(features), kernels.tile_rows, kMost);
  return rows / kernels.tile_rows * kernels.tile_rows;
}

/// Of that many; 0 if the product takes float32.
std::size_t converted_floats(const kernels::LinearKernels& kernels, std::size_t features) {
  if (kernels.convert_rows == nullptr) return 0;
  return converted_at_once(kernels, features) * kernels.row_bytes(features) / sizeof(float);
}

/// Pixels of a map that a task computes: whole rows of it if several fit.
std::size_t pixels_per_task(MapSize out, std::size_t at_once, int threads) {
  constexpr std::size_t kTasksPerThread = 4;
  const std::size_t even =
      ceil_div(out.height * out.width, kTasksPerThread * static_cast<std::size_t>(resolve_threads(threads)));
  const std::size_t pixels = std::clamp<std::size_t>(even, 1, at_once);
  return pixels < out.width ? std::min(out.width, at_once) : pixels / out.width * out.width;
}

/// Calls use(run, pixels before it) for the pixels `range` of a map, counted row by row.
template <class Use>
void for_each_run(RowRange range, std::size_t width, const Use& use) {
  for (std::size_t done = 0; done < range.count;) {
    const std::size_t pixel = range.first + done, x = pixel % width;
    const PixelRun run{pixel / width, x, std::min(width - x, range.count - done)};
    use(run, done);
    done += run.count;
  }
}

void check_scratch(TensorView<float> scratch, std::size_t floats, int threads) {
  VIT_CHECK(floats == 0 || (scratch.num_columns() >= floats &&
                            scratch.num_rows() >= static_cast<std::size_t>(resolve_threads(threads))),
            kWhere, "scratch memory of ", scratch.num_elements(), " floats where each of ",
            resolve_threads(threads), " threads needs ", floats);
}

float* scratch_of(TensorView<float> scratch, std::size_t floats, int thread) {
  return floats == 0 ? nullptr : scratch.row(static_cast<std::size_t>(thread));
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
                         const kernels::KernelTable& kernels, const kernels::LinearKernels& products)
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
    weight_ = kernels::PackedMatrix(window_rows(weight), products);
  }
}

std::size_t Convolution::scratch_floats() const noexcept {
  if (!tiles_.empty()) return round_up(kernels_->scratch_floats(in_channels_), 16);
  if (!converts()) return 0;
  const std::size_t gathered = edge_ == 1 ? 0 : round_up(weight_.in_features(), 16);
  return converted_floats(weight_.kernels(), weight_.in_features()) + gathered;
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

/// The first number that a pixel of the result reads.
const float* Convolution::window(const FeatureMap& in, PixelRun run) const {
  const std::ptrdiff_t before = edge_ == 3 ? 1 : 0;
  return in.row(static_cast<std::ptrdiff_t>(run.y * stride_) - before) + run.x * stride_ * in_channels_ -
         before * static_cast<std::ptrdiff_t>(in_channels_);
}

/// The product for some pixels of the result, without its input and columns.
kernels::GemmArgs Convolution::product_of(PixelRun run, const FeatureMap& out,
                                          const MapEpilogue& epilogue) const {
  const std::size_t outputs = out_channels();
  const auto pixel = [&](const FeatureMap& map) {
    return map.row(static_cast<std::ptrdiff_t>(run.y)) + run.x * outputs;
  };
  return {.rows = run.count,
          .packed = weight_.data(),
          .in_features = weight_.in_features(),
          .out = pixel(out),
          .out_stride = outputs,
          .epilogue = {.bias = epilogue.bias != nullptr ? epilogue.bias : bias_.data(),
                       .activation = epilogue.activation,
                       .residual = epilogue.residual.empty() ? nullptr : pixel(epilogue.residual),
                       .residual_stride = outputs}};
}

void Convolution::multiply_rows(const FeatureMap& in, const FeatureMap& out, RowRange rows,
                                const MapEpilogue& epilogue) const {
  const kernels::LinearKernels& kernels = weight_.kernels();
  const std::size_t at_once = columns_at_once(weight_.in_features(), kernels.panel_columns);
  for (std::size_t column = 0; column < out_channels(); column += at_once) {
    for (std::size_t y = rows.first; y < rows.first + rows.count; ++y) {
      const PixelRun run{y, 0, out.width()};
      kernels::GemmArgs product = product_of(run, out, epilogue);
      product.in = reinterpret_cast<const std::byte*>(window(in, run));
      product.in_step = stride_ * in_channels_ * sizeof(float);
      product.pieces = edge_;
      product.piece_step = in.row_stride() * sizeof(float);
      product.column_begin = column;
      product.column_end = std::min(column + at_once, out_channels());
      kernels.gemm(product);
    }
  }
}

/// The windows of some pixels as rows of the product; `gathered` has room for one.
void Convolution::convert_windows(const FeatureMap& in, PixelRun run, std::byte* converted,
                                  float* gathered) const {
  const kernels::LinearKernels& kernels = weight_.kernels();
  const std::size_t features = weight_.in_features(), step = stride_ * in_channels_;
  const float* from = window(in, run);
  if (edge_ == 1) {
    return kernels.convert_rows(
        {.in = from, .in_stride = step, .rows = run.count, .in_features = features, .out = converted});
  }
  const std::size_t row_bytes = kernels.row_bytes(features), piece = edge_ * in_channels_;
  for (std::size_t i = 0; i < run.count; ++i, from += step, converted += row_bytes) {
    for (std::size_t u = 0; u < edge_; ++u)
      std::copy_n(from + u * in.row_stride(), piece, gathered + u * piece);
    kernels.convert_rows({.in = gathered, .rows = 1, .in_features = features, .out = converted});
  }
}

/// The pixels [first, first + count) of the result, counted row by row.
void Convolution::multiply_converted(const FeatureMap& in, const FeatureMap& out, RowRange pixels,
                                     float* scratch, const MapEpilogue& epilogue) const {
  const kernels::LinearKernels& kernels = weight_.kernels();
  const std::size_t features = weight_.in_features(), row_bytes = kernels.row_bytes(features);
  auto* const converted = reinterpret_cast<std::byte*>(scratch);
  for_each_run(pixels, out.width(), [&](PixelRun run, std::size_t before) {
    convert_windows(in, run, converted + before * row_bytes, scratch + converted_floats(kernels, features));
  });
  const std::size_t at_once = columns_at_once(row_bytes / sizeof(float), kernels.panel_columns);
  for (std::size_t column = 0; column < out_channels(); column += at_once) {
    for_each_run(pixels, out.width(), [&](PixelRun run, std::size_t before) {
      kernels::GemmArgs product = product_of(run, out, epilogue);
      product.in = converted + before * row_bytes;
      product.in_step = row_bytes;
      product.column_begin = column;
      product.column_end = std::min(column + at_once, out_channels());
      kernels.gemm(product);
    });
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
  const std::size_t floats = scratch_floats();
  check_scratch(scratch, floats, threads);
  if (converts()) {
    const std::size_t pixels = out.height() * out.width();
    const std::size_t at_once =
        pixels_per_task(out.size(), converted_at_once(weight_.kernels(), weight_.in_features()), threads);
    return parallel_for(ceil_div(pixels, at_once), threads, [&](std::size_t task, int thread) {
      const std::size_t first = task * at_once;
      multiply_converted(in, out, {first, std::min(at_once, pixels - first)},
                         scratch_of(scratch, floats, thread), epilogue);
    });
  }
  if (tiles_.empty()) {
    return parallel_for_parts(out.height(), rows_per_task(out.size(), threads), threads,
                              [&](std::size_t first, std::size_t count) {
                                multiply_rows(in, out, {first, count}, epilogue);
                              });
  }
  const std::size_t tiles = num_tiles(out.size());
  const std::size_t at_once = tiles_per_task(tiles, kernels_->tiles_at_once(in_channels_), threads);
  parallel_for(ceil_div(tiles, at_once), threads, [&](std::size_t task, int thread) {
    convolve_tiles(in, out, task * at_once, std::min((task + 1) * at_once, tiles),
                   scratch_of(scratch, floats, thread), epilogue);
  });
}

void Convolution::forward_in_thread(const FeatureMap& in, const FeatureMap& out, float* scratch,
                                    const MapEpilogue& epilogue) const {
  check(in, out, epilogue);
  if (!tiles_.empty()) return convolve_tiles(in, out, 0, num_tiles(out.size()), scratch, epilogue);
  if (!converts()) return multiply_rows(in, out, {0, out.height()}, epilogue);
  const std::size_t pixels = out.height() * out.width();
  const std::size_t at_once = converted_at_once(weight_.kernels(), weight_.in_features());
  for (std::size_t first = 0; first < pixels; first += at_once)
    multiply_converted(in, out, {first, std::min(at_once, pixels - first)}, scratch, epilogue);
}

TransposedConvolution::TransposedConvolution(TensorView<const float> weight, std::span<const float> bias,
                                             const kernels::LinearKernels& kernels)
    : edge_(weight.rank() == 4 ? weight.dim(3) : 0) {
  VIT_CHECK(weight.rank() == 4 && edge_ != 0 && weight.dim(2) == edge_, kWhere,
            "a transposed kernel has the shape (in, out, k, k), got ", weight.shape().to_string());
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

std::size_t TransposedConvolution::scratch_floats() const noexcept {
  return converted_floats(rows_.front().kernels(), in_channels());
}

/// The squares of some pixels of `in`.
void TransposedConvolution::multiply_run(const FeatureMap& in, const FeatureMap& out, PixelRun run,
                                         float* scratch, Activation activation) const {
  const kernels::LinearKernels& kernels = rows_.front().kernels();
  const std::size_t channels = in_channels(), outputs = edge_ * out_channels();
  const float* const pixels = in.row(static_cast<std::ptrdiff_t>(run.y)) + run.x * channels;
  const auto* rows = reinterpret_cast<const std::byte*>(pixels);
  std::size_t step = channels * sizeof(float);
  if (kernels.convert_rows != nullptr) {
    auto* const converted = reinterpret_cast<std::byte*>(scratch);
    kernels.convert_rows(
        {.in = pixels, .in_stride = channels, .rows = run.count, .in_features = channels, .out = converted});
    rows = converted;
    step = kernels.row_bytes(channels);
  }
  for (std::size_t u = 0; u < edge_; ++u) {
    kernels.gemm({.in = rows,
                  .in_step = step,
                  .rows = run.count,
                  .packed = rows_[u].data(),
                  .in_features = channels,
                  .column_begin = 0,
                  .column_end = outputs,
                  .out = out.row(static_cast<std::ptrdiff_t>(run.y * edge_ + u)) + run.x * outputs,
                  .out_stride = outputs,
                  .epilogue = {.bias = bias_.data(), .activation = activation}});
  }
}

void TransposedConvolution::forward(const FeatureMap& in, const FeatureMap& out, int threads,
                                    TensorView<float> scratch, Activation activation) const {
  VIT_CHECK(
      in.channels() == in_channels() && out.channels() == out_channels() && out.size() == out_size(in.size()),
      kWhere, "a transposed kernel (", in_channels(), ", ", out_channels(), ", ", edge_, ", ", edge_,
      ") cannot be applied to a map of ", in.height(), " x ", in.width(), " x ", in.channels(), " to one of ",
      out.height(), " x ", out.width(), " x ", out.channels());
  const std::size_t floats = scratch_floats();
  check_scratch(scratch, floats, threads);
  const std::size_t at_once =
      floats == 0 ? in.width() : converted_at_once(rows_.front().kernels(), in_channels());
  parallel_for(in.height(), threads, [&](std::size_t y, int thread) {
    for (std::size_t x = 0; x < in.width(); x += at_once) {
      multiply_run(in, out, {y, x, std::min(at_once, in.width() - x)}, scratch_of(scratch, floats, thread),
                   activation);
    }
  });
}

}  // namespace vit::internal
