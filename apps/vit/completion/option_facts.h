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

/// Whether its values may be paths; all positional arguments are.
inline bool takes_paths(const Option& option) {
  if (is_positional(option)) return true;
  for (const char* const part : {"PATH", "FILE", "FOLDER", "HEAD", "BANK", "OUT", ".html", ".npy"})
    if (option.type_name.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace vit::app
