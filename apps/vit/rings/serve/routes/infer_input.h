// The input tensor of a request of the Open Inference Protocol.
#pragma once

#include <cstddef>
#include <vector>

#include "apps/vit/rings/serve/routes/binary_tensors.h"
#include "apps/vit/rings/serve/work/work.h"

namespace vit::app {

/// Of a request in JSON: 26 images of 224 x 224.
inline constexpr std::size_t kMaxInferNumbers = 4'000'000;

inline constexpr const char* kImageTensor = "image";
inline constexpr const char* kTextTensor = "text";

struct InferLimits {
  std::size_t num_channels = 3;  // of preprocessed pixels
  std::size_t max_inputs = 2048;
};
/// The one tensor of `inputs`: preprocessed pixels, files of images, or texts; one item at least. Throws
/// ApiError or Error.
std::vector<WorkItem> read_infer_input(InferBody& infer, const InferLimits& limits);

}  // namespace vit::app
