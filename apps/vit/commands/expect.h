// vit info --expect: compares a model with what the person's own script computed, and where they differ tries
// the choices of its layout file that no tensor determines.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "apps/vit/ground/json_value.h"
#include "apps/vit/options/options.h"

namespace vit::app {

/// Another value of a choice in a layout file.
struct LayoutChange {
  std::string choice;  // "pairing"
  JsonValue value;     // "halves"
  std::function<void(JsonValue& layout)> apply;
};

/// All changes of choices that no tensor determines: rotation, activation, pooling, epsilon, the order of q,
/// k and v, of gate and value, heads first or not.
std::vector<LayoutChange> layout_changes(const JsonValue& layout);

struct ExpectOptions {
  std::filesystem::path pixels, outputs;  // .npy
  std::string feature;                    // "" = whichever fits the shape
  bool json = false;
};

/// Prints the comparison. Returns 0 if the model agrees as it is, 1 if not.
int expect_outputs(const CommonOptions& common, const ExpectOptions& options);

}  // namespace vit::app
