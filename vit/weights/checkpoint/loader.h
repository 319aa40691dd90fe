// From a path to a checked checkpoint: finds the files, picks the family, and holds every tensor against the
// plan.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vit/checkpoint.h"
#include "vit/config.h"
#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/model_weights.h"

namespace vit::internal {

struct Checkpoint {
  ModelConfig config;
  ModelWeights weights;
  LoadReport report;
};

/// Loads a folder as downloaded (timm, Hugging Face, OpenCLIP, publisher), or one weight file. Every tensor
/// of the file is used or ignored for a stated reason and every expected one is found with its shape;
/// otherwise throws Error naming them.
Checkpoint load_checkpoint(const std::filesystem::path& path, const LoadOptions& options = {});

/// A checkpoint of a known architecture with seeded random weights.
Checkpoint random_checkpoint(const std::string& architecture, const LoadOptions& options = {},
                             unsigned seed = 0);

/// How the published weights of config.architecture want their pictures, for the model's native size: what a
/// bare weight file cannot tell. The evaluation of config.library where it differs from timm's. Throws Error
/// for an unknown name.
PreprocessConfig architecture_preprocess(const ModelConfig& config,
                                         const PreprocessLoadOptions& options = {});

/// How a checkpoint that was loaded with these options wants its pictures: as its own files say, or as the
/// architecture's published weights do where the caller named one. OpenCLIP's file counts in either case: it
/// speaks of these very weights. Nothing where no file tells.
std::optional<PreprocessConfig> checkpoint_preprocess(const std::filesystem::path& path,
                                                      const ModelConfig& config, const LoadOptions& options,
                                                      const PreprocessLoadOptions& preprocess_options = {});

/// Names of all architectures known without a config.
std::vector<std::string> known_architectures();

}  // namespace vit::internal
