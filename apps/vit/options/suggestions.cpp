#include "apps/vit/options/suggestions.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "vit/base/edit_distance.h"

namespace vit::app {
namespace {

/// "; did you mean X?", or "" if nothing is similar: one byte in three may differ, or one name starts the
/// other.
std::string did_you_mean(const std::string& word, std::span<const std::string> known) {
  const std::string bounded = word.substr(0, 100);
  const std::string* best = nullptr;
  std::size_t least = bounded.size() / 3 + 1;
  for (const std::string& name : known) {
    const bool begins = bounded.size() > 3 && (name.starts_with(bounded) || bounded.starts_with(name));
    const std::size_t distance = begins ? 1 : internal::edit_distance(bounded, name);
    if (distance >= least) continue;
    least = distance;
    best = &name;
  }
  return best == nullptr ? "" : "; did you mean " + *best + "?";
}

}  // namespace

std::string unknown_option(const std::string& option, std::span<const std::string> known) {
  const std::string name = option.substr(0, option.find('='));
  if (name == "--device" || name == "--gpu" || name == "--cuda")
    return name + ": no such option; vit computes on CPUs only";
  return name + ": no such option" + did_you_mean(name, known);
}

std::string unknown_command(const std::string& word, std::span<const std::string> known) {
  std::error_code failure;
  if (std::filesystem::exists(word, failure))
    return "\"" + word + "\" is not a command; to classify it: vit classify " + word;
  return "\"" + word + "\" is not a command" + did_you_mean(word, known);
}

}  // namespace vit::app
