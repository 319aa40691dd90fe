// Workspace: the activations of one forward pass as named views of one block. Sized once for a shape; a pass
// of the same or a smaller shape allocates nothing. One workspace serves one pass at a time. Letters: B =
// images, T = tokens, C = embed_dim, H = heads, F = hidden_dim.
#pragma once

#include "vit/base/arena.h"
#include "vit/base/stage_times.h"
#include "vit/base/tensor.h"
#include "vit/kernels/kernels.h"
#include "vit/layers/linear.h"

namespace vit {

struct WorkspaceShape {
  std::size_t num_images = 1;
  std::size_t num_tokens = 1;  // of one image, prefix included
  std::size_t patch_dim = 0;   // numbers of a patch that is embedded, 0 = none
  std::size_t embed_dim = 0;
  std::size_t num_heads = 1;
  std::size_t pool_heads = 0;  // heads of an attention pooling, 0 = none
  std::size_t hidden_dim = 0;  // inner width of the MLP; of one branch where gated
  int threads = 0;             // 0 = all
  Dtype dtype = Dtype::f32;    // of the products in the blocks

  bool operator==(const WorkspaceShape&) const = default;
};

class Workspace {
 public:
  /// Lays the views out for `shape`; forgets earlier contents where the shape changes. Throws Error on sizes
  /// that overflow.
  void reserve(const WorkspaceShape& shape, const kernels::KernelTable& kernels = kernels::default_kernels());

  const WorkspaceShape& shape() const noexcept { return shape_; }
  std::size_t capacity_bytes() const noexcept { return arena_.capacity_bytes(); }

  /// A member as `rows` rows of `columns` numbers: for a pass that needs fewer rows or others. Throws Error
  /// where the member is too small.
  static TensorView<float> view_rows(const TensorView<float>& member, std::size_t rows, std::size_t columns);

  TensorView<float> normed;  // (B * T, C), output of a LayerNorm, input of attention and MLP

  // qkv and heads on the one hand and hidden on the other are never alive together and share memory.
  TensorView<float> qkv;     // (B * T, 3C)
  TensorView<float> heads;   // (B * T, C), concatenated heads
  TensorView<float> hidden;  // (B * T, F)

  TensorView<float> packed_heads;    // (images_per_pass * H, floats), packed keys and values
  TensorView<float> thread_scratch;  // (threads, floats)

  QuantisedMemory quantised;  // an input of a Linear in bfloat16 or int8

  StageTimes* stages = nullptr;  // where layers note their time; null = nowhere

  /// Images whose keys and values are packed at a time.
  std::size_t images_per_pass() const noexcept { return images_per_pass_; }

 private:
  Arena arena_;
  WorkspaceShape shape_;
  const kernels::KernelTable* kernels_ = nullptr;
  std::size_t images_per_pass_ = 1;
};

}  // namespace vit
