// Properties of a model, of its text tower and of its dense head that are known without running them.
#pragma once

#include <optional>

#include "apps/vit/ground/json_value.h"
#include "apps/vit/options/options.h"
#include "vit/checkpoint.h"
#include "vit/image/preprocess.h"
#include "vit/text_encoder.h"

namespace vit::app {

/// Reads a checkpoint, or creates one from --architecture if no --model is given; packs no weights. The
/// preprocessing is for --size.
CheckpointDescription load_model_facts(const CommonOptions& options);

/// The preprocessing of a checkpoint for --size, nothing if no file defines it; its configuration files
/// are sufficient.
std::optional<Preprocessor> find_preprocessor(const CommonOptions& options);

/// Nothing if the checkpoint has no text tower, or there is no checkpoint.
std::optional<TextDescription> find_text_facts(const CommonOptions& options);

/// Configuration, score and tokenizer, in the order in which they are printed.
JsonValue to_json(const TextDescription& text);

/// Parameters, FLOPs at the model's own size, and the configuration of each branch; for checkpoints with a
/// dense head.
JsonValue dense_json(const CheckpointDescription& facts);

}  // namespace vit::app
