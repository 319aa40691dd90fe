// Properties of a text tower that are known without running it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "apps/vit/options/options.h"
#include "vit/text_encoder.h"

namespace vit::app {

/// Nothing if the checkpoint has no text tower, or there is no checkpoint.
std::optional<TextDescription> find_text_facts(const CommonOptions& options);

/// Configuration, score and tokenizer, in the order in which they are printed.
nlohmann::ordered_json to_json(const TextDescription& text);

}  // namespace vit::app
