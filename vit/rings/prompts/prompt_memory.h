// Working memory of a detector of prompts, which only grows; for one call at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <string_view>

#include "vit/base/checked.h"
#include "vit/base/parallel.h"
#include "vit/base/tensor.h"
#include "vit/layers/map.h"
#include "vit/layers/pass.h"

namespace vit::internal {

/// Rows of numbers, unspecified until they are written.
class RowBuffer {
 public:
  /// Invalidates what an earlier call returned.
  TensorView<float> rows(std::size_t count, std::size_t columns) {
    const std::size_t floats = checked_mul(count, columns, "RowBuffer");
    if (memory_.num_elements() < floats) {
      memory_ = Tensor<float>();
      memory_ = Tensor<float>(Shape{floats});
    }
    return {memory_.data(), Shape{count, columns}};
  }
  /// A map with a border of zeros.
  FeatureMap map(MapSize size, std::size_t channels) {
    const TensorView<float> floats = rows(1, FeatureMap::num_floats(size, channels));
    const FeatureMap out = FeatureMap::over(floats, size, channels);
    out.clear_border();
    return out;
  }
  std::size_t bytes() const { return memory_.empty() ? 0 : memory_.num_elements() * sizeof(float); }

 private:
  Tensor<float> memory_;
};

/// Receives what a detector computes on the way: "encoder" 2 is the output of fusion layer 2. For tests.
using WatchStages =
    std::function<void(std::string_view name, std::size_t index, TensorView<const float> values)>;

/// D, A, H and the width of an MLP.
struct LayerWidths {
  std::size_t dim = 1, inner = 1, heads = 1, hidden = 1;
};

struct PromptMemory {
  /// Room for layers of `rows` rows.
  void reserve(std::size_t rows, const LayerWidths& widths, const kernels::Arithmetic& arithmetic) {
    num_rows = std::max(num_rows, rows);
    activations.reserve({.num_images = 1,
                         .num_tokens = num_rows,
                         .embed_dim = widths.dim,
                         .attention_dim = widths.inner,
                         .num_heads = widths.heads,
                         .hidden_dim = widths.hidden,
                         .threads = threads},
                        arithmetic);
  }
  Pass pass() { return {.activations = activations, .threads = threads}; }
  void keep(std::string_view name, std::size_t index, TensorView<const float> values) const {
    if (watch) watch(name, index, values);
  }
  /// Room of each thread for a convolution.
  TensorView<float> scratch(std::size_t floats) {
    return convolution.rows(static_cast<std::size_t>(resolve_threads(threads)),
                            std::max<std::size_t>(floats, 16));
  }
  std::size_t bytes() const;

  int threads = 0;  // 0 = all
  WatchStages watch{};
  std::size_t num_rows = 0;    // that layers have room for
  std::size_t num_prompt = 0;  // vectors of the prompt
  Activations activations;
  RowBuffer normed, coded, key_rows;             // rows that enter attention and MLPs
  RowBuffer packed_keys, packed_values, scores;  // of attention with a bias
  RowBuffer turned_values;
  RowBuffer prompt, geometry, encoded;                              // (P, D), (boxes + 1, D), (T, D)
  RowBuffer tokens, positions, references, hidden, bias_x, bias_y;  // of the decoder
  RowBuffer states, vectors, small, boxes;
  RowBuffer enlarged, convolved, finer, weights, products, convolution;  // of maps
};

}  // namespace vit::internal
