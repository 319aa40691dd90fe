// Builds layers from weights, shared by image and text towers. Each tensor is read, packed and released
// again.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "vit/base/choices.h"
#include "vit/encoder/block.h"
#include "vit/head/merger.h"
#include "vit/kernels/kernels.h"
#include "vit/weights/model_weights.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// Builds layers from weights, with one arithmetic for blocks and float32 elsewhere. `config` must outlive
/// it: its fields about blocks are used.
class LayerBuilder {
 public:
  LayerBuilder(const ModelConfig& config, const kernels::KernelTable& kernels, Precision precision);

  const kernels::Arithmetic& arithmetic() const noexcept { return arithmetic_; }
  const kernels::LinearKernels& float32() const noexcept { return float32_; }

  Linear linear(const LinearWeights& weights, const kernels::LinearKernels& kernels) const;
  /// In the arithmetic of blocks.
  Linear linear(const LinearWeights& weights) const;
  LayerNorm norm(const NormWeights& weights) const;
  LayerNorm norm(const NormWeights& weights, float epsilon) const;
  /// RMSNorm without weights.
  LayerNorm plain_rms_norm(std::size_t width, float epsilon) const;
  std::optional<LayerNorm> optional_norm(const NormWeights& weights) const;
  std::vector<Block> blocks(std::span<const BlockWeights> weights) const;
  /// In the arithmetic of blocks.
  MergerLayers merger(const MergerConfig& config, const MergerWeights& weights) const;

 private:
  struct StepBuilder;
  /// Of the inputs of a layer that reads this norm, for int8.
  std::vector<std::uint32_t> outliers(const NormWeights& norm) const;
  /// In the arithmetic of blocks: reads `norm` if that is present, with bounds if there are any.
  Linear linear(const LinearWeights& weights, const NormWeights& norm, const WeightTensor& clip = {}) const;
  Linear fc2(const BlockWeights& block) const;
  /// Bounds of a gated MLP, if the model has a limit.
  void limit(std::optional<Linear>& gate, Linear& value) const;
  std::vector<Linear> clipped_qkv(const BlockWeights& block) const;
  Differential differential(const BlockWeights& block, std::size_t index) const;
  Block block(const BlockWeights& block, std::size_t index) const;

  const ModelConfig& config_;
  const kernels::KernelTable& kernels_;
  const kernels::Arithmetic& arithmetic_;
  const kernels::LinearKernels& float32_;
};

}  // namespace vit::internal
