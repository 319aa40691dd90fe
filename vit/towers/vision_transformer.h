// VisionTransformer: normalized pixels in, logits and features out; the forward pass is in
// vision_transformer.cpp, the sizes that it takes and needs in vision_transformer_shapes.cpp. Letters: B
// images, H, W pixels, N patches, R leading tokens, T = prefix + N tokens, C = embed_dim.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "vit/base/choices.h"
#include "vit/base/tensor.h"
#include "vit/config.h"
#include "vit/config/output_table.h"
#include "vit/kernels/kernels.h"
#include "vit/outputs.h"
#include "vit/towers/image_pass.h"
#include "vit/towers/lanes.h"
#include "vit/towers/map_head.h"
#include "vit/towers/vision_transformer_layers.h"

namespace vit::internal {

/// An immutable model: many threads may call forward() at once, each with its own memory.
class VisionTransformer {
 public:
  /// Packs the weights for `kernels`, tensor by tensor; `weights` may be discarded afterwards. Blocks,
  /// mergers and attention pooling compute in `precision`, patches are embedded in its `fine` arithmetic,
  /// everything else in float32.
  VisionTransformer(ModelConfig config, const ModelWeights& weights, const kernels::KernelTable& kernels,
                    Precision precision = Precision::float32);

  const ModelConfig& config() const noexcept { return config_; }
  const kernels::KernelTable& kernels() const noexcept { return *kernels_; }
  Precision precision() const noexcept { return precision_; }

  /// The patch grid of an input of this size. Throws Error if the model cannot take it: edges below the patch
  /// size or, unless config().patch.drops_remainder or the size is native, not divided by it, or another size
  /// than the native one if the reference library refuses that (config().image.fixed_size). Where a head of
  /// masks takes larger ones as windows, it is the grid of one.
  GridSize grid_for(std::size_t height, std::size_t width) const;
  /// The steps of an input of so many planes: 1 for one image, else images over patch_frames. Throws
  /// Error if the model cannot take it: config().image.stack, or images that do not fill a step.
  std::size_t steps_for(std::size_t num_planes) const;

  /// The head that outputs maps, or null.
  const MapHead* dense() const noexcept { return dense_.get(); }
  void set_dense(std::unique_ptr<const MapHead> dense) { dense_ = std::move(dense); }

  /// Number of leading tokens sufficient for `request`, so that the last block computes only those; 0 = it
  /// computes all.
  std::size_t num_leading_tokens(const Request& request) const;

  /// Runs `pixels` (B, K, H, W), normalized for the checkpoint, or those of several images one after the
  /// other if steps_for() allows them. The result for an image has the same bits
  /// for any batch, position in it and number of threads (0 = all). If only logits or pooled vectors are
  /// requested and they read only leading tokens, the last block computes only those rows. A warm pass
  /// allocates nothing. Throws Error if the model does not have a requested output.
  void forward(TensorView<const float> pixels, const Request& request, int threads, ForwardMemory& memory,
               Outputs& outputs) const;

 private:
  /// forward() without the dense head, for whose outputs there is room afterwards.
  void forward_tokens(TensorView<const float> pixels, const Request& request, const HeadSizes& head,
                      int threads, ForwardMemory& memory, Outputs& outputs) const;
  void run(const ImagePass& images, const Pass& pass) const;
  void run_heads(TensorView<float> tokens, const ImagePass& images, const Pass& pass) const;
  void run_merger(TensorView<float> tokens, const ImagePass& images, bool pools, const Pass& pass) const;
  EncoderInput encoder_input(const ImagePass& images) const;

  // vision_transformer_shapes.cpp
  std::span<const Sequences> sequences_of_blocks(const ImagePass& images, const Sequences& whole) const;
  ActivationShape activation_shape(const ImagePass& images, int threads) const;

  // dense_forward.cpp
  /// A request for outputs of the dense head.
  void forward_maps(TensorView<const float> pixels, const Request& request, int threads,
                    ForwardMemory& memory, Outputs& outputs) const;
  /// Windows as which pixels of this size are computed, by a head that merges their maps; 1 = as a whole.
  std::size_t num_windows(std::size_t height, std::size_t width) const;
  /// Outputs of the dense head for images whose tokens are there, image by image.
  void forward_dense(std::size_t num_images, const Request& request, int threads, ForwardMemory& memory,
                     Outputs& outputs) const;
  std::shared_ptr<const DenseConfig> head_config() const { return dense_ ? dense_->config() : nullptr; }

  ModelConfig config_;
  const kernels::KernelTable* kernels_;
  Precision precision_;
  ModelLayers layers_;
  std::unique_ptr<const MapHead> dense_;
};

}  // namespace vit::internal
