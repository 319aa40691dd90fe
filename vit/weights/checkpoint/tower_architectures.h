// Published sizes of vision towers of language models by name, for models of random weights: each as the
// configuration files of its repository say them.
#pragma once

#include <string_view>
#include <vector>

#include "vit/config/load_options.h"
#include "vit/image/preprocess.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// Whether the name is one of a tower: "qwen2_5_vl_3b", or timm's "qwen3_vit_306m_enc".
bool is_tower_architecture(std::string_view name);
/// All names, sorted.
std::vector<std::string_view> tower_architectures();
/// The configuration of such a name.
ModelConfig tower_architecture(std::string_view name);
/// How such a model wants its images.
PreprocessConfig tower_architecture_preprocess(std::string_view name, const ModelOptions& options);

}  // namespace vit::internal
