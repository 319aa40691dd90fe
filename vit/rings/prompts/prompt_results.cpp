// Masks at the size of the image. Source: transformers, models/sam3, image_processing_sam3.py.
#include <algorithm>
#include <cmath>

#include "vit/base/rounded.h"
#include "vit/layers/resize_map.h"
#include "vit/rings/prompts/prompt_parts.h"

namespace vit::internal {
namespace {

/// The rows of maps (n, h, w) at the size of the image, made when they are needed.
class EnlargedRows {
 public:
  EnlargedRows(TensorView<const float> maps, ImageSize image, const kernels::MapKernels& kernels, int threads)
      : maps_(maps), image_(image), kernels_(kernels) {
    const auto num_threads = static_cast<std::size_t>(resolve_threads(threads));
    const MapSize low{maps.dim(1), maps.dim(2)};
    arena_.lay_out([&](Arena::Taker& taker) {
      resize_ = MapResize::take(taker, low, {image.height, image.width}, 1, num_threads);
      lines_ = taker.take<float>({num_threads, round_up(image.width, 16)});
    });
    resize_.fill(low, Alignment::edges);
  }

  std::size_t count() const { return maps_.dim(0) * image_.height; }
  /// Row `row` of all maps, one after the other; valid until the next call of this thread.
  std::span<const float> row(std::size_t row, int thread) const {
    auto* const values = const_cast<float*>(maps_[row / image_.height].data());  // only read
    const FeatureMap map(values, {maps_.dim(1), maps_.dim(2)}, 1, maps_.row_stride(), /*has_border=*/false);
    float* const line = lines_.row(static_cast<std::size_t>(thread));
    resize_.row(map, row % image_.height, static_cast<std::size_t>(thread), kernels_, line);
    return {line, image_.width};
  }

 private:
  TensorView<const float> maps_;
  ImageSize image_;
  const kernels::MapKernels& kernels_;
  Arena arena_;
  MapResize resize_;
  TensorView<float> lines_;
};

/// Values become probabilities in place.
void to_probabilities(TensorView<float> values, int threads) {
  parallel_for(values.num_rows(), threads, [&](std::size_t y, int) {
    std::transform(values.row(y), values.row(y) + values.num_columns(), values.row(y), rounded_sigmoid);
  });
}

}  // namespace

Tensor<std::uint8_t> masks_above(TensorView<const float> values, ImageSize image, float threshold,
                                 const kernels::MapKernels& kernels, int threads) {
  const EnlargedRows rows(values, image, kernels, threads);
  Tensor<std::uint8_t> out(Shape{values.dim(0), image.height, image.width});
  parallel_for(rows.count(), threads, [&](std::size_t row, int thread) {
    std::ranges::transform(rows.row(row, thread), out.data() + row * image.width,
                           [&](float value) { return static_cast<std::uint8_t>(value > threshold ? 1 : 0); });
  });
  return out;
}

Tensor<std::uint8_t> masks_of(TensorView<float> logits, ImageSize image, const PromptOptions& options,
                              const kernels::MapKernels& kernels, int threads) {
  const double threshold = options.mask_threshold;
  if (options.rule == PromptRule::repository)
    return masks_above(logits, image, static_cast<float>(std::log(threshold / (1.0 - threshold))), kernels,
                       threads);
  to_probabilities(logits, threads);
  return masks_above(logits, image, static_cast<float>(threshold), kernels, threads);
}

Tensor<float> probabilities_of(TensorView<float> logits, ImageSize image, const PromptOptions& options,
                               const kernels::MapKernels& kernels, int threads) {
  const bool grows_logits = options.rule == PromptRule::repository;
  if (!grows_logits) to_probabilities(logits, threads);
  const EnlargedRows rows({logits.data(), Shape{1, logits.dim(0), logits.dim(1)}}, image, kernels, threads);
  Tensor<float> out(Shape{image.height, image.width});
  parallel_for(rows.count(), threads, [&](std::size_t row, int thread) {
    const std::span<const float> line = rows.row(row, thread);
    std::ranges::copy(line, out.view().row(row));
    if (grows_logits) std::transform(line.begin(), line.end(), out.view().row(row), rounded_sigmoid);
  });
  return out;
}

}  // namespace vit::internal
