// The outputs selected by --features: the request for the model, and the arrays of the results.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/outputs/result_writer.h"
#include "vit/model.h"
#include "vit/outputs.h"

namespace vit::app {

/// Outputs of one run, each once, in the requested order.
struct FeatureList {
  std::vector<OutputKey> keys;
  Request request;

  std::vector<std::string> names() const;
  /// The arrays of one image; they point into `outputs`.
  std::vector<ResultArray> arrays(const ImageOutputs& outputs) const;
};

/// Parses a comma-separated list; empty = internal::standard_output().
/// Throws UsageError for an unknown name and for outputs that this model does not have.
FeatureList parse_features(std::string_view list, const Model& model);
/// The named output, which must be one vector per image; empty = default_output(). Throws UsageError for
/// anything else.
Output parse_vector_feature(std::string_view name, const Model& model);
/// Whether each image has one vector of this output, of the same length.
bool is_vector(Output output);

/// The names of all vector outputs without an index, for completion.
std::vector<std::string> feature_names();
std::vector<std::string> vector_names();
/// The table of outputs for --help, one line each.
std::string features_help();

}  // namespace vit::app
