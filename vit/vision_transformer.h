// VisionTransformer: normalised pixels in, logits and features out; the whole forward pass is on the page
// model.cpp. Letters: B images, H, W pixels, N patches, T = prefix + N tokens, C = embed_dim, E =
// projection_dim.
#pragma once

#include <cstddef>
#include <memory>

#include "vit/base/dtype.h"
#include "vit/base/stage_times.h"
#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/outputs.h"

namespace vit {

namespace internal {
struct ModelWeights;
}

namespace internal::kernels {
struct KernelTable;
}

/// Working memory of forward passes, grown to the largest one seen; serves one pass at a time.
class ForwardMemory {
 public:
  ForwardMemory();
  ~ForwardMemory();
  ForwardMemory(ForwardMemory&&) noexcept;
  ForwardMemory& operator=(ForwardMemory&&) noexcept;
  std::size_t bytes() const noexcept;
  /// Passes add their time per stage to `times`, which must outlive them; null = measure nothing.
  void measure_stages(StageTimes* times) noexcept;

 private:
  friend class VisionTransformer;
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

/// An immutable model: many threads may call forward() at once, each with its own memory.
class VisionTransformer {
 public:
  /// Packs the weights for `kernels`, tensor by tensor. `weights` may be discarded afterwards. `dtype`: how
  /// the products of blocks and attention pooling compute; f32, bf16 for rounded weights (kernels/bf16.h), or
  /// i8 for whole numbers with scales (kernels/int8.h), rounded or quantised here. Inside attention the
  /// kernels may round as well (AttentionKernels), and where they multiply bfloat16, i8 rounds patches before
  /// they are embedded. Throws Error for others.
  VisionTransformer(ModelConfig config, const ModelWeights& weights, const kernels::KernelTable& kernels,
                    Dtype dtype = Dtype::f32);
  ~VisionTransformer();
  VisionTransformer(VisionTransformer&&) noexcept;
  VisionTransformer& operator=(VisionTransformer&&) noexcept;

  const ModelConfig& config() const noexcept;
  const kernels::KernelTable& kernels() const noexcept;
  Dtype dtype() const noexcept;

  /// The patch grid of an input of this size. Throws Error where the model cannot take it: edges below the
  /// patch size, or another size than the native one where the reference library refuses that
  /// (config().fixed_size).
  GridSize grid_for(std::size_t height, std::size_t width) const;

  /// Leading tokens of an image that suffice for `request`, and that the last block computes alone; 0 = it
  /// computes all.
  std::size_t num_leading_tokens(const Request& request) const;

  /// Runs `pixels` (B, 3, H, W), normalised as the checkpoint asks. Edges that the patch size does not divide
  /// lose the remainder. The result for an image has the same bits for any batch, place in the batch and
  /// number of threads (0 = all). Where only logits or pooled vectors are asked for and they read leading
  /// tokens alone, the last block computes those rows alone. A warm pass allocates nothing. Throws Error
  /// where the request does not fit the model.
  void forward(TensorView<const float> pixels, const Request& request, int threads, ForwardMemory& memory,
               Outputs& outputs) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

}  // namespace vit
