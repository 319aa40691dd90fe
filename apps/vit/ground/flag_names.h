// Maps option names in library messages to CLI flags.
#pragma once

#include <string>

#include "vit/base/error.h"

namespace vit::app {

/// overrides["K"] = "V" becomes --set K=V, overrides["K"] --set K, ModelOptions::architecture --architecture.
std::string with_flag_names(std::string text);
/// Whether an error is about an override: of a value that the model does not have, or with an invalid value.
bool is_about_override(const Error& error);

}  // namespace vit::app
