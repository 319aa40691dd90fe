// Holds the tensors of a file against those of its model: every one of the file is used or ignored for a
// stated reason, and every expected one is found with its shape.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "vit/config/load_report.h"
#include "vit/text_config.h"
#include "vit/weights/checkpoint/head_names.h"
#include "vit/weights/checkpoint/stored_numbers.h"
#include "vit/weights/dense_weights.h"
#include "vit/weights/families/family.h"
#include "vit/weights/model_weights.h"
#include "vit/weights/page_weights.h"
#include "vit/weights/prompt_weights.h"
#include "vit/weights/text_tower_weights.h"

namespace vit {
struct ModelConfig;
}

namespace vit::internal {

/// What the tensors of a tower need besides their shapes.
FormSizes form_sizes(const ModelConfig& config);
FormSizes form_sizes(const TextConfig& config);
inline FormSizes form_sizes(const PromptConfig&) {
  return {};
}
inline FormSizes form_sizes(const PageConfig&) {
  return {};
}

class TensorMatcher {
 public:
  /// `parsed.config` must be valid. The weights that match() makes keep the file open.
  template <typename Config>
  TensorMatcher(const SourceFiles& files, const ParsedCheckpoint<Config>& parsed,
                std::shared_ptr<const TensorFile> tensors)
      : files_(files),
        match_(parsed.match),
        layout_(parsed.layout),
        ignored_(parsed.ignored),
        named_(parsed.named),
        tensors_(std::move(tensors)),
        sizes_(form_sizes(parsed.config)),
        dropped_heads_(files.drops_classifier() ? heads() : std::vector<StoredHead>()) {}

  /// Finds every tensor of a tower; collects what is missing or wrong.
  template <typename Config>
  WeightsOf<Config> match(const Config& config) {
    WeightsOf<Config> weights;
    if constexpr (std::is_same_v<Config, PromptConfig>) {
      for_each_tensor(config, weights, matching(named_, "detector."));
    } else {
      for_each_tensor(config, weights, matching());
    }
    return weights;
  }
  /// The same of a dense head on an image tower of `embed_dim` channels.
  DenseWeights match(const DenseReading& dense, std::size_t embed_dim);
  /// Throws one Error for everything that is missing, misshaped or left over; fills the uses of the report.
  void finish(LoadReport& report);
  /// Whether every tensor has its place, in both directions. Stops at the first that has none.
  bool fits(const ModelConfig& config);

 private:
  VisitTensor matching();
  /// By the names of `tables`, which must outlive it; `use` is in front of those in the report.
  VisitDenseTensor matching(std::span<const HeadTable> tables, const char* use);
  bool find(TensorId id, const Shape& shape, std::vector<StoredRows>& pieces);
  const TensorEntry* take(const std::string& name, Place place, const std::vector<std::size_t>& shape,
                          Form form, const std::string& use);
  bool is_outside(const std::string& name) const;
  std::string ignore_reason(const std::string& name) const;
  std::vector<StoredHead> heads() const;
  std::string advice() const;

  const SourceFiles& files_;
  const Match& match_;
  const Layout& layout_;
  std::span<const std::span<const Ignored>> ignored_;
  std::span<const HeadTable> named_;
  std::shared_ptr<const TensorFile> tensors_;
  FormSizes sizes_;
  std::vector<StoredHead> dropped_heads_;
  std::map<const TensorEntry*, std::string> uses_;
  std::vector<std::string> missing_, wrong_, unexpected_;
};

}  // namespace vit::internal
