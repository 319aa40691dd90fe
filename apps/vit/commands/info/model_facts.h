// Properties of a model that are known without running it.
#pragma once

#include <optional>

#include "apps/vit/options/options.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"

namespace vit::app {

/// Reads a checkpoint, or creates one from --architecture if no --model is given; packs no weights. The
/// preprocessing is for --size.
CheckpointDescription load_model_facts(const CommonOptions& options);

/// The preprocessing of a checkpoint for --size, nothing if no file defines it; its configuration files
/// are sufficient.
std::optional<Preprocessor> find_preprocessor(const CommonOptions& options);

}  // namespace vit::app
