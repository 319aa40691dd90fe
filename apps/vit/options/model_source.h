// How a model was loaded, as text stored with results, so that a later run does not need the options again.
#pragma once

#include <string>

#include "apps/vit/options/options.h"

namespace vit::app {

/// A JSON object: the absolute path of --model, and the options that define the model and how its images are
/// preprocessed. Options with their default values are left out.
std::string model_source(const CommonOptions& options);

/// Sets the options from `source`, a text of model_source(), unless --model is given. Throws Error
/// naming `place` if the text is anything else.
void inherit_model(CommonOptions& options, const std::string& source, const std::string& place);

}  // namespace vit::app
