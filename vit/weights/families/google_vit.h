// The form of Google's files that is brought to the other one before a family looks at them.
#pragma once

#include "vit/io/tensor_file.h"

namespace vit::internal {

/// The blocks that big_vision's scan=True stores as one (all blocks, ...) under "encoderblock/", one by one
/// under the names "encoderblock_0/" and so on. Other tensors stay as they are.
TensorFile with_blocks_apart(TensorFile file);

}  // namespace vit::internal
