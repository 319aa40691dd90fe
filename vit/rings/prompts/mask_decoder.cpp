#include "vit/rings/prompts/mask_decoder.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace vit::internal {
namespace {

constexpr std::size_t kGroups = 8;

/// out (2 H, 2 W, D), with its border = each pixel of `coarse` (H W, D) four times, plus fine (4 H W, D).
void enlarge_and_add(TensorView<const float> coarse, TensorView<const float> fine, const FeatureMap& out,
                     int threads) {
  const std::size_t width = out.width(), dim = out.channels();
  parallel_for(out.height(), threads, [&](std::size_t y, int) {
    float* to = out.row(static_cast<std::ptrdiff_t>(y));
    const float* from = fine.row(y * width);
    for (std::size_t x = 0; x < width; ++x, to += dim, from += dim) {
      const float* const pixel = coarse.row(y / 2 * (width / 2) + x / 2);
      for (std::size_t c = 0; c < dim; ++c) to[c] = from[c] + pixel[c];
    }
  });
}

}  // namespace

void GroupNormRelu::forward(const FeatureMap& map, int threads) const {
  constexpr double kEps = 1e-5;
  const std::size_t dim = map.channels(), of_group = dim / kGroups, height = map.height();
  Tensor<double> sums(Shape{height, 2 * kGroups});
  parallel_for(height, threads, [&](std::size_t y, int) {
    const float* pixel = map.row(static_cast<std::ptrdiff_t>(y));
    double* const to = sums.view().row(y);
    for (std::size_t x = 0; x < map.width(); ++x, pixel += dim) {
      for (std::size_t c = 0; c < dim; ++c) {
        const double value = pixel[c];
        to[c / of_group] += value;
        to[kGroups + c / of_group] += value * value;
      }
    }
  });
  std::vector<float> scale(dim), shift(dim);
  const double count = static_cast<double>(height * map.width() * of_group);
  for (std::size_t c = 0; c < dim; ++c) {
    double sum = 0.0, squares = 0.0;
    for (std::size_t y = 0; y < height; ++y) {
      sum += sums.view().row(y)[c / of_group];
      squares += sums.view().row(y)[kGroups + c / of_group];
    }
    const double mean = sum / count, variance = std::max(squares / count - mean * mean, 0.0);
    const double factor = gamma_.data()[c] / std::sqrt(variance + kEps);
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(beta_.data()[c] - mean * factor);
  }
  parallel_for(height, threads, [&](std::size_t y, int) {
    float* pixel = map.row(static_cast<std::ptrdiff_t>(y));
    for (std::size_t x = 0; x < map.width(); ++x, pixel += dim) {
      for (std::size_t c = 0; c < dim; ++c) pixel[c] = std::max(pixel[c] * scale[c] + shift[c], 0.0f);
    }
  });
}

MaskDecoder::MaskDecoder(MaskDecoderLayers layers, const kernels::LinearKernels& float32)
    : layers_(std::move(layers)), float32_(&float32) {}

FeatureMap MaskDecoder::refine(TensorView<const float> encoded, TensorView<const float> prompt,
                               const ImageMaps& maps, std::size_t grid, PromptMemory& memory) const {
  const std::size_t dim = encoded.num_columns();
  const TensorView<float> rows = memory.key_rows.rows(encoded.num_rows(), dim);
  std::copy_n(encoded.data(), encoded.num_elements(), rows.data());
  const TensorView<float> normed = memory.normed.rows(encoded.num_rows(), dim);
  layers_.attention_norm.forward(encoded, normed, memory.threads);
  layers_.attention.forward({normed, prompt, prompt}, rows, memory);
  TensorView<const float> coarse = rows;
  FeatureMap map;
  for (std::size_t i = 0; i < 2; ++i) {
    const MapSize size{grid << (i + 1), grid << (i + 1)};
    const TensorView<const float> fine = i == 0 ? maps.finer.view() : maps.finest.view();
    const FeatureMap enlarged = memory.enlarged.map(size, dim);
    enlarge_and_add(coarse, fine, enlarged, memory.threads);
    RowBuffer& buffer = i == 0 ? memory.finer : memory.convolved;
    map = FeatureMap::of_tokens(buffer.rows(size.height * size.width, dim), size);
    const Convolution& convolution = layers_.refine[i];
    convolution.forward(enlarged, map, memory.threads, memory.scratch(convolution.scratch_floats()));
    layers_.refine_norm[i].forward(map, memory.threads);
    coarse = {map.row(0), Shape{size.height * size.width, dim}};
  }
  return map;
}

void multiply_pixels(const FeatureMap& pixels, TensorView<const float> weights, TensorView<float> masks,
                     const kernels::LinearKernels& kernels, PromptMemory& memory) {
  const std::size_t count = weights.num_rows(), dim = pixels.channels(), width = pixels.width();
  const std::size_t bytes = kernels.packed_bytes(round_up(count, kernels.panel_columns), dim);
  auto* const packed =
      reinterpret_cast<std::byte*>(memory.packed_keys.rows(1, ceil_div(bytes, sizeof(float))).data());
  kernels.pack({.weight = weights.data(),
                .stride = weights.row_stride(),
                .out_features = count,
                .in_features = dim,
                .packed = packed});
  std::vector<float> added(count);
  for (std::size_t q = 0; q < count; ++q) added[q] = weights.row(q)[dim];
  const TensorView<float> rows = memory.products.rows(
      static_cast<std::size_t>(resolve_threads(memory.threads)), round_up(width * count, 16));
  parallel_for(pixels.height(), memory.threads, [&](std::size_t y, int thread) {
    float* const row = rows.row(static_cast<std::size_t>(thread));
    kernels.gemm({.in = reinterpret_cast<const std::byte*>(pixels.row(static_cast<std::ptrdiff_t>(y))),
                  .in_step = dim * sizeof(float),
                  .rows = width,
                  .packed = packed,
                  .in_features = dim,
                  .column_begin = 0,
                  .column_end = count,
                  .out = row,
                  .out_stride = count,
                  .epilogue = {.bias = added.data()}});
    for (std::size_t q = 0; q < count; ++q) {
      float* const to = masks[q].row(y);
      for (std::size_t x = 0; x < width; ++x) to[x] = row[x * count + q];
    }
  });
}

void MaskDecoder::multiply(const FeatureMap& pixels, TensorView<const float> states, TensorView<float> masks,
                           TensorView<float> semantic, PromptMemory& memory) const {
  const std::size_t count = masks.empty() ? 0 : states.num_rows(), dim = pixels.channels();
  if (count != 0) {
    const TensorView<float> embedded = memory.positions.rows(count, dim);
    layers_.embed.forward(states, embedded, memory);
    memory.keep("mask_embed", 0, embedded);
    const TensorView<float> weights = memory.weights.rows(count, dim + 1);
    layers_.fold.forward(embedded, weights, memory.pass());
    multiply_pixels(pixels, weights, masks, *float32_, memory);
  }
  if (semantic.empty()) return;
  const TensorView<const float> weight(layers_.semantic.data(), Shape{1, dim + 1});
  multiply_pixels(pixels, weight, {semantic.data(), Shape{1, pixels.height(), pixels.width()}}, *float32_,
                  memory);
}

}  // namespace vit::internal
