// Hugging Face image processors as data: class defaults and the keys of their JSON. Called by
// preprocess_config.cpp.
#pragma once

#include <string>

#include "vit/weights/checkpoint/preprocess_config.h"
#include "vit/weights/files/json.h"

namespace vit::internal {

/// `file` is the object that describes the image processor, `model_type` that of config.json ("" where
/// unknown), which names the class where the object does not.
PreprocessConfig read_hf_preprocess(const Json& file, const std::string& model_type,
                                    const PreprocessLoadOptions& options, const std::string& source);

}  // namespace vit::internal
