// The feature names of `vit embed`: what each asks the model for, and where it lies in the results.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "apps/vit/outputs/result_writer.h"
#include "vit/outputs.h"

namespace vit::app {

enum class FeatureKind { pooled, projected, cls, patches, tokens, block, attention, logits };

/// Whether an image has one vector of these features.
constexpr bool is_vector(FeatureKind kind) {
  return kind == FeatureKind::pooled || kind == FeatureKind::projected || kind == FeatureKind::cls ||
         kind == FeatureKind::logits;
}

struct Feature {
  FeatureKind kind = FeatureKind::pooled;
  std::size_t block = 0;         // resolved number, for the kinds block and attention
  std::size_t request_slot = 0;  // place in Request::blocks or Request::attention
  std::string name;              // as written: "pooled", "block.11"
};

/// Features of one run, each once, in the order asked for.
struct FeatureList {
  std::vector<Feature> features;
  Request request;

  std::vector<std::string> names() const;
  /// The arrays of one image; they point into `outputs`.
  std::vector<ResultArray> arrays(const ImageOutputs& outputs) const;
};

/// Parses a list with commas; empty = projected if the model has it, else pooled. Throws UsageError for an
/// unknown name and for what this model does not have.
FeatureList parse_features(std::string_view list, const ModelConfig& config);

}  // namespace vit::app
