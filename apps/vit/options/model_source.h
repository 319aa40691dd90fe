// How a model was loaded, as text that is kept with what was made of it: a later run needs no options again.
#pragma once

#include <string>

#include "apps/vit/options/options.h"

namespace vit::app {

/// A JSON object: the absolute path of --model, and what options say that the model is and how its images are
/// preprocessed. Options with their default values are left out.
std::string model_source(const CommonOptions& options);

/// Gives the options what `source`, a text of model_source(), says, unless --model is given. Throws Error
/// naming `place` if the text is something else.
void inherit_model(CommonOptions& options, const std::string& source, const std::string& place);

}  // namespace vit::app
