#include "vit/rings/dense/box_head.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/rounded.h"

namespace vit::internal {
namespace {

constexpr Where kWhere{"BoxHead", ErrorKind::mismatch};

/// Log-odds as the library has them, in float32: near 1 the rounding of the sum is part of the bias.
float log_odds(float part) {
  constexpr float kLeast = 1e-4f;
  return rounded_log(part + kLeast) - rounded_log1p(-part + kLeast);
}

}  // namespace

BoxHead::BoxHead(const DenseBranch& branch, BoxLayers layers, std::size_t num_prefix,
                 std::size_t num_registers)
    : config_(std::get<BoxConfig>(branch.layers)),
      outputs_(branch.outputs),
      layers_(std::move(layers)),
      num_prefix_(num_prefix),
      num_registers_(num_registers) {}

std::size_t BoxHead::num_boxes(GridSize grid) const {
  return config_.tokens == BoxTokens::registers ? num_registers_ : grid.rows * grid.columns;
}

Shape BoxHead::output_shape(std::size_t output, GridSize grid) const {
  return {1, num_boxes(grid), outputs_[output].channels};
}

void BoxHead::finish_boxes(GridSize grid, TensorView<float> boxes) const {
  const std::array<float, 2> edges{static_cast<float>(grid.columns), static_cast<float>(grid.rows)};
  for (std::size_t i = 0; i < boxes.dim(1); ++i) {
    float* const box = boxes.row(i);
    if (config_.from_patch) {
      const std::array<std::size_t, 2> place{i % grid.columns, i / grid.columns};
      for (std::size_t axis = 0; axis < 2; ++axis) {
        box[axis] += log_odds(static_cast<float>(place[axis] + 1) / edges[axis]);
        box[2 + axis] += log_odds(1.0f / edges[axis]);
      }
    }
    std::transform(box, box + 4, box, rounded_sigmoid);
  }
}

/// The normalized tokens of the boxes, (N, C).
TensorView<float> BoxHead::input_rows(TensorView<const float> tokens, GridSize grid, int threads,
                                      const BoxMaps& maps) const {
  const std::size_t width = tokens.num_columns(), boxes = num_boxes(grid);
  const std::size_t first =
      config_.tokens == BoxTokens::registers ? num_prefix_ - num_registers_ : num_prefix_;
  VIT_CHECK(tokens.dim(0) >= first + boxes, kWhere, tokens.dim(0), " tokens for ", boxes, " boxes");
  if (layers_.norm) {
    layers_.norm->forward(tokens, maps.tokens, threads);
  } else {
    std::ranges::copy(tokens.flat(), maps.tokens.data());
  }
  const TensorView<float> rows(maps.tokens.row(first), Shape{boxes, width});
  if (config_.times_class_token) {
    const float* const token = maps.tokens.row(0);
    for (std::size_t i = 0; i < boxes; ++i) {
      for (std::size_t c = 0; c < width; ++c) rows.row(i)[c] *= token[c];
    }
    layers_.times_norm->forward(rows, rows, threads);
  }
  return rows;
}

void BoxHead::forward(std::span<const TensorView<const float>> taps, GridSize grid,
                      std::span<const TensorView<float>> outputs, int threads, DenseMemory& memory) const {
  VIT_CHECK(taps.size() == 1 && outputs.size() == layers_.outputs.size(), kWhere, taps.size(), " taps and ",
            outputs.size(), " results for a head of 1 and ", layers_.outputs.size());
  const TensorView<const float> tokens = taps.front();
  const std::size_t width = tokens.num_columns(), boxes = num_boxes(grid);
  BoxMaps& maps = memory.boxes;
  memory.lay_out([&](Arena::Taker& arena) {
    maps.tokens = arena.take<float>({tokens.dim(0), width});
    for (TensorView<float>& hidden : maps.hidden) hidden = arena.take<float>({boxes, width});
    maps.scratch = take_scratch(arena, threads, layers_.outputs);
  });
  const TensorView<float> rows = input_rows(tokens, grid, threads, maps);
  // the boxes as pixels of a map: rows of the grid, or one row
  const MapSize size =
      config_.tokens == BoxTokens::patches ? MapSize{grid.rows, grid.columns} : MapSize{1, boxes};
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    FeatureMap in = FeatureMap::of_tokens(rows, size);
    const std::vector<Convolution>& layers = layers_.outputs[o];
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const bool is_last = l + 1 == layers.size();
      const FeatureMap out = FeatureMap::of_tokens(is_last ? outputs[o][0] : maps.hidden[l % 2], size);
      layers[l].forward(in, out, threads, maps.scratch,
                        {.activation = is_last ? Activation::none : config_.activation});
      in = out;
    }
    if (outputs_[o].meaning == Output::boxes) finish_boxes(grid, outputs[o]);
  }
}

}  // namespace vit::internal
