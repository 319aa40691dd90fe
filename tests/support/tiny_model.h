// Small models with random weights for tests that need a model but no particular numbers.
#pragma once

#include <map>
#include <random>
#include <string>

#include "vit/base/tensor.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit::test {
using namespace internal;

/// A checkpoint of a known architecture shrunk to width 48, 3 heads, 2 blocks, 48 x 48 pixels and 7 classes.
inline internal::LoadedTower<ModelConfig> tiny_checkpoint(
    const std::string& architecture, const std::map<std::string, std::string>& overrides = {}) {
  ModelOptions options;
  options.overrides = {
      {"embed_dim", "48"}, {"num_heads", "3"}, {"depth", "2"}, {"img_size", "48"}, {"num_classes", "7"}};
  for (const auto& [key, value] : overrides) options.overrides[key] = value;
  return random_checkpoint(architecture, options, /*seed=*/7);
}

/// Pixels (B, 3, H, W) from a normal distribution.
inline Tensor<float> random_pixels(std::size_t num_images, std::size_t height, std::size_t width,
                                   unsigned seed = 1) {
  Tensor<float> pixels(Shape{num_images, 3, height, width});
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (float& value : pixels.flat()) value = normal(random);
  return pixels;
}

}  // namespace vit::test
