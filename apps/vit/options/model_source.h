// How a model was loaded, as text and as facts stored with results: a later run does not need the options
// again, or is compared.
#pragma once

#include <span>
#include <string>

#include "apps/vit/options/options.h"
#include "apps/vit/outputs/run_facts.h"
#include "vit/model.h"

namespace vit::app {

/// A JSON object: the absolute path of --model, and the options that define the model and how its images are
/// preprocessed. Options with their default values are left out.
std::string model_source(const CommonOptions& options);

/// Sets the options from `source`, a text of model_source(), unless --model is given. Throws Error
/// naming `place` if the text is anything else.
void inherit_model(CommonOptions& options, const std::string& source, const std::string& place);

/// What a run with these options and features computes.
RunModel run_model(const CommonOptions& options, const Model& model, std::span<const std::string> features);

}  // namespace vit::app
