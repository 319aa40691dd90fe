// Configurations as JSON, for `vit info`.
#pragma once

#include <nlohmann/json.hpp>

#include "vit/config.h"

namespace vit::app {

/// Every value of a model's configuration, except the labels.
nlohmann::ordered_json to_json(const ModelConfig& config);
/// Every value of a preprocessing configuration.
nlohmann::ordered_json to_json(const PreprocessConfig& config);

}  // namespace vit::app
