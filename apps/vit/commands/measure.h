// What vit evaluate measures besides the accuracy of a classifier.
#pragma once

#include <filesystem>
#include <vector>

#include "apps/vit/ground/command_line.h"
#include "apps/vit/options/options.h"

namespace vit::app {

/// The options of vit evaluate that all measures share.
struct EvaluateRun {
  const std::filesystem::path& folder;
  const CommonOptions& common;
  bool as_json = false;
  const std::filesystem::path& classifier;  // of --classifier; "" = none
};

/// One measure, with options of its own.
class Measure {
 public:
  virtual ~Measure() = default;
  /// Adds its options, which store into this object or, if they are about the model, into `common`.
  virtual void add_options(std::vector<Option>& list, CommonOptions& common) = 0;
  /// Whether its options request it. Throws UsageError for one that requires another that is missing.
  virtual bool is_requested() const = 0;
  /// The refusal of options of classes and of other measures.
  virtual const char* excludes() const = 0;
  /// Whether it measures the classes of --classifier.
  virtual bool takes_classifier() const { return false; }
  /// Measures and prints. Returns the exit code.
  virtual int run(const EvaluateRun& run) = 0;
};

}  // namespace vit::app
