// Properties of an option that both scripts of completion.h need.
#pragma once

#include <string>
#include <vector>

#include "apps/vit/ground/command_line.h"

namespace vit::app {

/// "-o,--output" -> {"-o", "--output"}.
inline std::vector<std::string> names_of(const Option& option) {
  const std::size_t comma = option.name.find(',');
  if (comma == std::string::npos) return {option.name};
  return {option.name.substr(0, comma), option.name.substr(comma + 1)};
}

inline bool is_positional(const Option& option) {
  return !option.name.starts_with("-");
}

/// Whether its values are paths; all positional arguments are.
inline bool takes_paths(const Option& option) {
  const std::string& type = option.type_name;
  return is_positional(option) || type == "PATH" || type == "FILE" || type == "FOLDER" || type == "HEAD";
}

}  // namespace vit::app
