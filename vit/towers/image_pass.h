// ImagePass: some images of a call, which run through the model together, and the destinations of their
// outputs. Letters: B images, N patches, T = prefix + N tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "vit/config/output_table.h"
#include "vit/head/head.h"
#include "vit/head/merger.h"
#include "vit/position/position.h"
#include "vit/towers/lanes.h"

namespace vit::internal {

struct ImagePass {
  TensorView<const float> pixels;  // (B, planes, H, W)
  std::size_t first = 0;           // image 0 of `pixels` is this one of `outputs`
  const Request& request;
  const PositionContext& position;
  Outputs& outputs;
  ForwardMemory::Lane* lane = nullptr;  // memory of the pass

  std::size_t count() const { return pixels.dim(0); }
  std::size_t num_patches() const {
    return position.num_steps() * position.grid().rows * position.grid().columns;
  }
  TensorView<float> part_of(const OutputKey& key) const {
    return OutputWriter(outputs).find(key).part(first, count());
  }
  std::span<const std::uint32_t> places() const {
    const position::WindowOrder* const order = position.windows();
    if (order == nullptr) return {};
    return order->has_window_tokens() ? order->token_places : order->places;
  }
  TokenGrid tokens(std::size_t num_prefix) const {
    return {.grid = position.grid(), .num_prefix = num_prefix, .places = places()};
  }
};

}  // namespace vit::internal
