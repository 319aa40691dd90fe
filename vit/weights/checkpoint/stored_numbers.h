// From stored tensors to the numbers of one part: joined, split, transposed or masked.
#pragma once

#include <cstddef>
#include <vector>

#include "vit/io/tensor_file.h"
#include "vit/weights/families/layout.h"
#include "vit/weights/model_weights.h"

namespace vit::internal {

/// Some rows of a part, found in the file or made up.
struct StoredRows {
  Row row{};
  const TensorEntry* entry = nullptr;  // null: constant, or computed
  const TensorEntry* mask = nullptr;
};

/// The one tensor whose rows are those of the part as they lie; null if they are joined, moved or masked.
const TensorEntry* stored_alone(const std::vector<StoredRows>& pieces);

/// The numbers of a part of this shape: lent where one tensor stores them as they are, else joined from the
/// pieces, in order. Throws Error naming the tensor whose numbers cannot be what they should be.
Tensor<float> load_numbers(const std::vector<StoredRows>& pieces, const Shape& shape, const FormSizes& sizes);

}  // namespace vit::internal
