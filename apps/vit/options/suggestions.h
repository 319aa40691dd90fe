// Suggestions for a command or an option that does not exist.
#pragma once

#include <span>
#include <string>

namespace vit::app {

/// One line about an option, "--topk" or "--topk=3", that is not in `known`.
std::string unknown_option(const std::string& option, std::span<const std::string> known);

/// One line about a first argument that is not in `known` commands; it may be an input file.
std::string unknown_command(const std::string& word, std::span<const std::string> known);

}  // namespace vit::app
