// What is known of a model without running it.
#pragma once

#include <optional>

#include "apps/vit/common/options.h"
#include "vit/config.h"
#include "vit/image/preprocess.h"
#include "vit/weights/checkpoint/loader.h"

namespace vit::app {

struct ModelFacts {
  ModelConfig config;
  std::optional<PreprocessConfig> preprocess;  // for the --size asked for; nothing where no file tells
  LoadReport report;
};

/// Reads a checkpoint, or makes one up from --architecture where no --model is given; packs no weights.
ModelFacts load_model_facts(const CommonOptions& options);

/// The preprocessing of a checkpoint, nothing where no file tells it; its configuration files suffice.
std::optional<Preprocessor> find_preprocessor(const CommonOptions& options);

}  // namespace vit::app
