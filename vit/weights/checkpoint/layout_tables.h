// The members `tensors` and `ignore` of a layout file, as the tables that the families are written in.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "vit/io/json.h"
#include "vit/weights/families/layout.h"

namespace vit::internal {

/// Rows and reasons, with the texts that they point into.
struct LayoutTables {
  std::vector<Row> rows;
  std::vector<Ignored> ignored;
  std::deque<std::string> texts;
};

/// Throws Error naming file and key for a tensor that no model has, a name without the number of its block,
/// and pieces that do not fill a tensor.
std::shared_ptr<LayoutTables> read_layout_tables(const Json& layout);

}  // namespace vit::internal
