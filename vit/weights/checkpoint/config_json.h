// Configurations as JSON, for humans and for programs in other languages.
#pragma once

#include <string>

#include "vit/image/preprocess.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// Every value of a model's configuration except the labels, as an object on one line.
std::string config_json(const ModelConfig& config);
/// Every value of a preprocessing configuration.
std::string config_json(const PreprocessConfig& config);

}  // namespace vit::internal
