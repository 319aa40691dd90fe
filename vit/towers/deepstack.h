// Mergers between the blocks, each of which turns the output of one block into visual tokens: DeepStack
// (Qwen3-VL), and the merger of a model that does not read the last block (LLaVA).
#pragma once

#include <cstddef>
#include <span>

#include "vit/encoder/block_hook.h"
#include "vit/head/merger.h"
#include "vit/towers/image_pass.h"

namespace vit::internal {

class DeepStack final : public BlockHook {
 public:
  /// Merger i reads the output of block `layers[i]`; only those that the request names are run.
  DeepStack(std::span<const Merger> mergers, std::span<const std::size_t> layers, const ImagePass& images,
            std::size_t num_prefix, const Pass& pass)
      : mergers_(mergers), layers_(layers), images_(images), num_prefix_(num_prefix), pass_(pass) {}

  void after(std::size_t layer, TensorView<float> x) override;

 private:
  std::span<const Merger> mergers_;
  std::span<const std::size_t> layers_;
  const ImagePass& images_;
  std::size_t num_prefix_;
  const Pass& pass_;
};

/// The merger that reads the outputs of MergerConfig::blocks.
class EarlyMerger final : public BlockHook {
 public:
  /// `merger` may be null.
  EarlyMerger(const Merger* merger, std::span<const std::size_t> blocks, const ImagePass& images,
              std::size_t num_prefix, const Pass& pass)
      : merger_(merger), blocks_(blocks), images_(images), num_prefix_(num_prefix), pass_(pass) {}

  void after(std::size_t layer, TensorView<float> x) override;

 private:
  const Merger* merger_;
  std::span<const std::size_t> blocks_;
  const ImagePass& images_;
  std::size_t num_prefix_;
  const Pass& pass_;
};

}  // namespace vit::internal
