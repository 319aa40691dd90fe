// What is known of a model without running it.
#pragma once

#include <optional>

#include "apps/vit/options/options.h"
#include "vit/image/preprocess.h"
#include "vit/model.h"

namespace vit::app {

/// Reads a checkpoint, or makes one up from --architecture where no --model is given; packs no weights. The
/// preprocessing is for --size.
CheckpointDescription load_model_facts(const CommonOptions& options);

/// The preprocessing of a checkpoint for --size, nothing where no file tells it; its configuration files
/// suffice.
std::optional<Preprocessor> find_preprocessor(const CommonOptions& options);

}  // namespace vit::app
