// Holds the tensors of a file against those of its model: every one of the file is used or ignored for a
// stated reason, and every expected one is found with its shape.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "vit/checkpoint.h"
#include "vit/weights/checkpoint/stored_numbers.h"
#include "vit/weights/families/family.h"
#include "vit/weights/model_weights.h"

namespace vit::internal {

class TensorMatcher {
 public:
  /// `reading.config` must be valid. The weights that match() makes keep the file mapped.
  TensorMatcher(const SourceFiles& files, const Reading& reading, std::shared_ptr<const TensorFile> tensors);

  /// Finds every tensor; collects what is missing or wrong.
  ModelWeights match();
  /// Throws one Error for everything that is missing, misshaped or left over; fills the uses of the report.
  void finish(LoadReport& report);
  /// Whether every tensor has its place, in both directions. Stops at the first that has none.
  bool fits();

 private:
  bool find(TensorId id, const Shape& shape, std::vector<StoredRows>& pieces);
  const TensorEntry* take(const std::string& name, Place place, const std::vector<std::size_t>& shape,
                          const std::string& use);
  std::string ignore_reason(const std::string& name) const;

  const SourceFiles& files_;
  const Reading& reading_;
  std::shared_ptr<const TensorFile> tensors_;
  FormSizes sizes_;
  std::map<const TensorEntry*, std::string> uses_;
  std::vector<std::string> missing_, wrong_, unexpected_;
};

}  // namespace vit::internal
