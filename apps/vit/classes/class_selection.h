// Which classes of an image are told: the most probable ones, or all from a threshold on.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/vit/classes/class_values.h"
#include "apps/vit/command_line.h"
#include "vit/outputs.h"

namespace vit::app {

/// P or CATEGORY=P.
struct Threshold {
  std::string category;  // "" = of all that have none of their own
  float value = 0;
};

/// --top, --threshold and --activation.
struct SelectionOptions {
  std::optional<std::size_t> top;
  std::vector<Threshold> thresholds;
  std::optional<ClassActivation> activation;  // nothing = as the classes want it
};
void add_selection_options(std::vector<Option>& list, SelectionOptions& options);

class ClassSelection {
 public:
  /// Keeps a reference to `classes`. Throws UsageError for options that contradict each other or the classes.
  ClassSelection(const SelectionOptions& options, const ClassValues& classes);

  /// Whether Prediction::probability is one, and not the value of a regression.
  bool are_probabilities() const { return activation_ != ClassActivation::none; }
  /// The classes that these values tell, best first.
  std::vector<Prediction> of(std::span<const float> values) const;

 private:
  const ClassValues& classes_;
  ClassActivation activation_;
  std::size_t top_;
  std::vector<float> thresholds_;  // (classes), or none
};

}  // namespace vit::app
