// Activations: all intermediate results of a pass, as named views of one block. Listed once, laid out
// for a shape; a pass of the same or a smaller shape allocates nothing. Used by one pass at a time. Letters:
// B = images, N = patches, T = tokens, R = leading tokens, C = embed_dim, A = attention_dim, F = hidden_dim.
#pragma once

#include "vit/base/arena.h"
#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"

namespace vit::internal {

/// Tokens of a task of attention: whole tiles of queries for any vector width.
inline constexpr std::size_t kAttentionTaskTokens = 32;

struct ActivationShape {
  std::size_t num_images = 1;      // B
  std::size_t num_patches = 0;     // N
  std::size_t patch_dim = 0;       // values of a patch
  std::size_t num_tokens = 1;      // T, prefix included; of the longest text
  std::size_t num_rows = 0;        // tokens of all texts of a pass; 0 = B * T, as for images
  std::size_t num_leading = 0;     // R, 0 = the last block computes all tokens
  std::size_t embed_dim = 0;       // C
  std::size_t attention_dim = 0;   // A, all heads concatenated
  std::size_t num_heads = 1;       // that divide A
  std::size_t window_keys = 0;     // of a window that is completed; 0 = none is
  std::size_t bias_axes = 0;       // rows and columns of relative positions, the most of a block
  std::size_t num_pool_heads = 0;  // that divide C in attention pooling, 0 = none
  std::size_t pooled_dim = 0;      // of the pooled vector; 0 = C
  std::size_t hidden_dim = 0;      // F, inner width of the MLP; of one branch if gated
  bool is_differential = false;    // heads attend twice
  bool clips = false;              // layers of blocks, and of mergers, clip
  bool is_parallel = false;        // both branches of a block read what came in
  std::size_t num_cells = 0;       // of a merger, at a time; 0 = none
  std::size_t cell_dim = 0;        // widest vector of a cell in a merger
  std::size_t map_rows = 0;        // cells of all images, if a merger has convolutions
  std::size_t map_dim = 0;         // channels of what they read
  std::size_t merged_dim = 0;      // channels of visual tokens that are pooled; 0 = they are not
  int threads = 0;                 // 0 = all

  bool operator==(const ActivationShape&) const = default;
};

class Activations {
 public:
  /// Lays the views out for `shape`; discards earlier contents if the shape or the arithmetic changes.
  /// Throws Error on sizes that overflow.
  void reserve(ActivationShape shape, const kernels::Arithmetic& arithmetic);

  const ActivationShape& shape() const noexcept { return shape_; }
  std::size_t capacity_bytes() const noexcept { return arena_.capacity_bytes(); }

  /// A member as `rows` rows of `columns` numbers: for a layer that needs fewer or other rows. Throws Error
  /// if the member is too small.
  static TensorView<float> view_rows(const TensorView<float>& member, std::size_t rows, std::size_t columns);

  // between the parts of a model
  TensorView<float> patches;   // (B, N, patch_dim)
  TensorView<float> tokens;    // (B, T, C); (1, num_rows, C) of texts
  TensorView<float> leading;   // (B, R, C), output of the last block for the first R tokens
  TensorView<float> pooled;    // (B, pooled_dim), or (B, C)
  TensorView<float> head_row;  // (B, 2C), input of a pooling or classifier

  // inside a block; qkv and heads on the one hand and hidden on the other are never alive together
  TensorView<float> normed;       // (B * T, C), output of a LayerNorm, input of attention and MLP
  TensorView<float> qkv;          // (B * T, 3A)
  TensorView<float> heads;        // (B * T, A), concatenated heads
  TensorView<float> query_pairs;  // (B * T, 2A) of heads that attend twice
  TensorView<float> head_pairs;   // (B * T, 2A) alike
  TensorView<float> hidden;       // (B * T, F)
  TensorView<float> gates;        // (B * T, F) of layers that clip
  TensorView<float> block_input;  // (B * T, C) of blocks whose branches are parallel

  // inside a merger, when no block is running: input and output of alternating steps
  TensorView<float> cells;       // (num_cells, cell_dim)
  TensorView<float> cell_steps;  // (num_cells, cell_dim)
  TensorView<float> cell_gates;  // (num_cells, cell_dim) of layers that clip

  TensorView<float> map, next_map;  // (map_rows, map_dim), vectors of all cells between convolutions
  TensorView<float> merged;         // (num_cells of all images, merged_dim), visual tokens that are pooled

  // inside a kernel
  TensorView<float> packed_heads;    // (packed_images * H, floats), packed keys and values
  TensorView<float> thread_scratch;  // (threads, floats)
  TensorView<float> padded_heads;    // (threads, floats), keys and values of a window that is completed
  TensorView<std::byte> converted;   // (B * T, bytes), the rows of a product in the format of its kernels

  /// The block for other uses until the next reserve(), which lays the views out anew.
  Arena& lend() noexcept;

  /// Images whose keys and values are packed at a time.
  std::size_t packed_images() const noexcept { return packed_images_; }

 private:
  void lay_out(Arena::Taker& arena, const ActivationShape& shape, const kernels::Arithmetic& arithmetic);

  Arena arena_;
  ActivationShape shape_;
  const kernels::Arithmetic* arithmetic_ = nullptr;
  std::size_t packed_images_ = 1;
};

}  // namespace vit::internal
