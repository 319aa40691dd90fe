// A loaded checkpoint, and models of random weights in the same form. Where a checkpoint is found is
// checkpoint_folder.h.
#pragma once

#include <string>

#include "vit/config.h"
#include "vit/image/preprocess.h"
#include "vit/weights/checkpoint/load_options.h"
#include "vit/weights/model_weights.h"
#include "vit/weights/text_tower_weights.h"

namespace vit::internal {

struct Checkpoint {
  ModelConfig config;
  ModelWeights weights;
  LoadReport report;
};

/// A loaded text tower.
struct TextCheckpoint {
  TextConfig config;
  TextTowerWeights weights;
  LoadReport report;
};

/// CheckpointFolder(path, options).load().
Checkpoint load_checkpoint(const std::filesystem::path& path, const LoadOptions& options = {});

/// A checkpoint of a known architecture with seeded random weights.
Checkpoint random_checkpoint(const std::string& architecture, const LoadOptions& options = {},
                             unsigned seed = 0);

/// How the published weights of config.architecture want their images, for the model's native size: what a
/// bare weight file cannot tell. The evaluation of config.library where it differs from timm's. Throws Error
/// for an unknown name.
PreprocessConfig architecture_preprocess(const ModelConfig& config,
                                         const PreprocessLoadOptions& options = {});

}  // namespace vit::internal
