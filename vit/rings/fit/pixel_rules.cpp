// How an image is preprocessed for the features of its pixels, all of it, and which outputs these are.
#include <algorithm>
#include <cmath>

#include "vit/config.h"
#include "vit/rings/fit/pixel_options.h"

namespace vit {
namespace {

constexpr double kMostAspect = 8.0;  // of edges that keep their ratio; longer images are squashed to it

/// The edge to which the shortest one is resized.
std::size_t shortest_edge(const PixelOptions& options, const PreprocessConfig& rules,
                          const ModelConfig& config) {
  if (options.size.kind == InputSize::Kind::fixed) return options.size.height;
  return rules.crop && rules.crop_multiple == 0 ? std::min(rules.crop_height, rules.crop_width)
                                                : std::min(config.image.height, config.image.width);
}

/// Whether the rules resize an image as a whole: nothing is cropped, and it is not cut into tiles.
bool shows_all(const PreprocessConfig& rules) {
  return !rules.crop && !rules.windows && rules.resize != ResizeRule::tiles &&
         rules.resize != ResizeRule::box;
}

PreprocessConfig squashed(PreprocessConfig rules, std::size_t height, std::size_t width) {
  rules.resize = ResizeRule::squash;
  rules.resize_height = height;
  rules.resize_width = width;
  rules.size_multiple = rules.crop_multiple = rules.pad_multiple = rules.opencv_longest_edge = 0;
  rules.longest_edge = 0;
  rules.crop = rules.windows = rules.pad_at_end = false;
  return rules;
}

}  // namespace

PreprocessConfig pixel_preprocessing(const PixelOptions& options, const PreprocessConfig& rules,
                                     const ModelConfig& config, ImageSize image, double scale) {
  const InputSize& size = options.size;
  const std::size_t unit = std::max(config.patch.size, rules.edge_multiple);
  const auto edge = [&](double pixels) {
    const double units = std::round(pixels * scale / static_cast<double>(unit));
    return static_cast<std::size_t>(std::max(units, 1.0)) * unit;
  };
  if (config.image.fixed_size) return squashed(rules, config.image.height, config.image.width);
  if (size.kind == InputSize::Kind::native) {
    if (scale == 1.0) return with_input_size(rules, size, config.patch.size);
    return squashed(rules, edge(static_cast<double>(image.height)), edge(static_cast<double>(image.width)));
  }
  if (size.kind == InputSize::Kind::fixed && size.height != size.width)
    return squashed(rules, scale == 1.0 ? size.height : edge(static_cast<double>(size.height)),
                    scale == 1.0 ? size.width : edge(static_cast<double>(size.width)));
  if (size.kind == InputSize::Kind::model && scale == 1.0 && shows_all(rules)) return rules;
  const auto shortest = static_cast<double>(shortest_edge(options, rules, config));
  if (rules.pad_to_square) return squashed(rules, edge(shortest), edge(shortest));
  const auto height = static_cast<double>(image.height), width = static_cast<double>(image.width);
  const double least = std::min(height, width);
  const auto longer = [&](double pixels) { return shortest * std::min(pixels / least, kMostAspect); };
  return squashed(rules, edge(longer(height)), edge(longer(width)));
}

Request pixel_request(const PixelOptions& options) {
  if (options.layers.empty()) return Output::patches;
  Request out;
  for (const std::size_t layer : options.layers) out.add({Output::block, layer});
  return out;
}

TensorView<const float> internal::patches_of_layer(const ImageOutputs& outputs, const PixelOptions& options,
                                                   std::size_t index) {
  const std::size_t count = outputs.grid().rows * outputs.grid().columns;
  if (options.layers.empty()) {
    const TensorView<const float> patches = outputs.patches();
    return {patches.data(), Shape{count, patches.num_columns()}, patches.row_stride()};
  }
  const TensorView<const float> tokens = outputs.block(options.layers[index]);
  return tokens.part(tokens.dim(0) - count, count);  // the prefix comes first
}

}  // namespace vit
