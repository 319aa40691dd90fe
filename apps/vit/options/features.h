// The outputs that --features names: what they ask the model for, and where they lie in the results.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/outputs/result_writer.h"
#include "vit/outputs.h"

namespace vit::app {

/// Outputs of one run, each once, in the order asked for.
struct FeatureList {
  std::vector<OutputKey> keys;
  Request request;

  std::vector<std::string> names() const;
  /// The arrays of one image; they point into `outputs`.
  std::vector<ResultArray> arrays(const ImageOutputs& outputs) const;
};

/// Parses a list with commas; empty = merged where the model has it, else default_output(), else patches.
/// Throws UsageError for an unknown name and for what this model does not have.
FeatureList parse_features(std::string_view list, const ModelConfig& config);
/// The one vector of each image that a name stands for; empty = default_output(). Throws UsageError for what
/// is no vector.
Output parse_vector_feature(std::string_view name, const ModelConfig& config);
/// Whether each image has one vector of this, of the same length.
bool is_vector(Output output);

/// The names of all outputs that take no number, for completion; of vectors only.
std::vector<std::string> feature_names();
std::vector<std::string> vector_names();
/// The table of outputs for --help, a line for each.
std::string features_help();

}  // namespace vit::app
