// Holds the tensors of a file against those of its model: every one of the file is used or ignored for a
// stated reason, and every expected one is found with its shape.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vit/config.h"
#include "vit/weights/checkpoint/stored_numbers.h"
#include "vit/weights/families/family.h"
#include "vit/weights/families/text_family.h"
#include "vit/weights/model_weights.h"
#include "vit/weights/text_tower_weights.h"

namespace vit::internal {

class TensorMatcher {
 public:
  /// `reading.config` must be valid. The weights that match() makes keep the file open.
  TensorMatcher(const SourceFiles& files, const Reading& reading, std::shared_ptr<const TensorFile> tensors);
  /// The same for a text tower, of which `files.match` tells the prefix.
  TensorMatcher(const SourceFiles& files, const TextReading& reading,
                std::shared_ptr<const TensorFile> tensors);

  /// Finds every tensor of an image tower, or of a text tower; collects what is missing or wrong.
  ModelWeights match(const ModelConfig& config);
  TextTowerWeights match(const TextConfig& config);
  /// Throws one Error for everything that is missing, misshaped or left over; fills the uses of the report.
  void finish(LoadReport& report);
  /// Whether every tensor has its place, in both directions. Stops at the first that has none.
  bool fits(const ModelConfig& config);

 private:
  VisitTensor matching();
  bool find(TensorId id, const Shape& shape, std::vector<StoredRows>& pieces);
  const TensorEntry* take(const std::string& name, Place place, const std::vector<std::size_t>& shape,
                          const std::string& use);
  std::string ignore_reason(const std::string& name) const;

  const SourceFiles& files_;
  const Layout& layout_;
  std::span<const std::span<const Ignored>> ignored_;
  std::shared_ptr<const TensorFile> tensors_;
  FormSizes sizes_;
  std::map<const TensorEntry*, std::string> uses_;
  std::vector<std::string> missing_, wrong_, unexpected_;
};

}  // namespace vit::internal
