// A loaded checkpoint, and models of random weights in the same form. Where a checkpoint is found is
// checkpoint_folder.h.
#pragma once

#include <optional>
#include <string>

#include "vit/config.h"
#include "vit/config/load_options.h"
#include "vit/config/load_report.h"
#include "vit/image/preprocess.h"
#include "vit/weights/dense_weights.h"
#include "vit/weights/model_weights.h"
#include "vit/weights/prompt_weights.h"
#include "vit/weights/text_tower_weights.h"

namespace vit::internal {

/// A loaded dense head.
struct DenseCheckpoint {
  DenseConfig config;
  DenseWeights weights;
};

/// A tower of a checkpoint, checked tensor by tensor.
template <typename Config>
struct LoadedTower {
  Config config;
  WeightsOf<Config> weights;
  LoadReport report;
  std::optional<DenseCheckpoint> dense{};  // a head that gives maps
};

/// CheckpointFolder(path, options).load<ModelConfig>().
LoadedTower<ModelConfig> load_checkpoint(const std::filesystem::path& path, const ModelOptions& options = {});

/// A checkpoint of a known architecture with seeded random weights.
LoadedTower<ModelConfig> random_checkpoint(const std::string& architecture, const ModelOptions& options = {},
                                           unsigned seed = 0);

/// How the published weights of config.architecture want their images, for the model's native size: what a
/// bare weight file does not contain. The evaluation of config.library where it differs from timm's. Throws
/// Error for an unknown name.
PreprocessConfig architecture_preprocess(const ModelConfig& config, const ModelOptions& options = {});

}  // namespace vit::internal
