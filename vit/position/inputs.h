// What a model gives its position encodings besides their configuration: its sizes, and tensors of its file.
// Letters: p = prefix rows of the learned table, N = patches, C = embed_dim, H = num_heads, d = head_dim.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "vit/base/tensor.h"
#include "vit/position/config.h"

namespace vit::internal {

/// Sizes of a model.
struct PositionShape {
  std::size_t embed_dim = 0;
  std::size_t depth = 0;
  std::size_t num_heads = 0;
  std::size_t head_dim = 0;
  std::size_t num_prefix = 0;        // tokens before the patches
  std::size_t window = 0;            // edge of the windows in which tokens attend, in patches; 0 = none
  std::size_t windows_per_side = 0;  // of windows of equal size instead
  bool windows_have_tokens = false;  // each of those begins with a token
  bool completes_windows = false;    // those at the edges of the grid, by tokens of zeros
  std::span<const std::size_t> global_blocks{};  // blocks without windows nevertheless
  GridSize trained_grid{};                       // used if config.rope_scaling is set
};

/// Two layers that compute the bias of a distance: fc2(relu(fc1 x)).
struct RelativeLayers {
  Tensor<float> fc1{}, fc1_bias{};  // (hidden, 2), (hidden)
  Tensor<float> fc2{}, fc2_bias{};  // (H, hidden), (H)
};

/// The tensors of relative positions of a block, or of all blocks; those of their kind.
struct RelativeTensors {
  Tensor<float> table{};  // (distances + those of the class token, H)
  RelativeLayers layers{};
  Tensor<float> rows{}, columns{};  // (2 U - 1, d), (2 V - 1, d)
};

/// Those of a model, shared by what reads them.
struct StoredRelative {
  std::vector<RelativeTensors> blocks;  // of each block
  RelativeTensors shared;               // of all blocks
};

/// The stored position tensors of a file; views of memory owned elsewhere, empty if the model has none.
struct PositionWeights {
  TensorView<const float> added_table{};        // (p + N, C) for added_grid, or (2, L, C)
  TensorView<const float> between_tables{};     // (depth - 1, p + N, C), of all tokens
  TensorView<const float> mixed_frequencies{};  // (2, depth, H, d / 2), x first
  std::span<const float> periods{};             // (d / 4), 1 / frequency before angle_scale
  std::span<const float> class_angles{};        // (d / 2), of the class token
  std::shared_ptr<const StoredRelative> relative{};
};

}  // namespace vit::internal
