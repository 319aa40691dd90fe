// The library speaks of its options, the program of flags.
#pragma once

#include <string>

#include "vit/base/error.h"

namespace vit::app {

/// overrides["K"] = "V" becomes --set K=V, overrides["K"] --set K, ModelOptions::architecture --architecture.
std::string with_flag_names(std::string text);
/// Whether the caller overrides what the model does not have, or with a value that makes no sense.
bool is_about_override(const Error& error);

}  // namespace vit::app
