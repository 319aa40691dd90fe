// Preprocessed pixels of an image source of any kind.
#pragma once

#include "vit/session.h"

namespace vit::internal {

struct SourcePixels {
  Tensor<float> pixels;  // (planes, H, W), normalized
  ImageSize size;        // of the image as decoded, or of preprocessed pixels
};

/// Throws Error for unreadable sources, and for pixels of another shape.
SourcePixels read_pixels(const Session& session, const ImageSource& source, PreprocessMemory& memory,
                         int threads = 1);

}  // namespace vit::internal
