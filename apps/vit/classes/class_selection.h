// Selects the classes printed for an image: the most probable ones, or all from a threshold on.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "apps/vit/classes/class_options.h"
#include "apps/vit/command_line.h"
#include "vit/classifier.h"

namespace vit::app {

/// P or CATEGORY=P.
struct Threshold {
  std::string category;  // "" = for all without their own threshold
  float value = 0;
};

/// --top, --threshold and --activation.
struct SelectionOptions {
  std::optional<std::size_t> top;
  std::vector<Threshold> thresholds;
  std::optional<ClassActivation> activation;  // nothing = the default of the classes
};
void add_selection_options(std::vector<Option>& list, SelectionOptions& options);

/// The selection that the options describe. Throws UsageError for options that contradict each other or the
/// classes.
Selection make_selection(const SelectionOptions& options, const Classes& classes);

}  // namespace vit::app
