// Preprocessed pixels of an image source of any kind.
#pragma once

#include <cstddef>
#include <optional>

#include "vit/session.h"

namespace vit::internal {

struct SourcePixels {
  Tensor<float> pixels;  // (planes, H, W), normalized
  ImageFrame frame;      // of the image as decoded, or of preprocessed pixels
};

/// Throws Error (argument) with the place of the first NaN or infinity in pixels (K, H, W); `image` is the
/// index for the message, if there are several.
void require_finite(TensorView<const float> pixels, std::optional<std::size_t> image);
/// Throws Error for unreadable sources, and for pixels of another shape or that are not finite.
SourcePixels read_pixels(const Session& session, const ImageSource& source, PreprocessMemory& memory,
                         int threads = 1);
/// The image of a source; `memory` keeps one that is decoded. Throws Error for preprocessed pixels.
ImageView image_of(const Session& session, const ImageSource& source, Image& memory);
/// The position of an image of this size in what the session computes of it; of a model without a dense head
/// only its size, since others have no pixels at the size of the image.
ImageFrame frame_of(const Session& session, ImageSize image);
ImageFrame frame_of(const Preprocessor& preprocessor, ImageSize image);  // of a model with a dense head
/// Preprocessed pixels are the image.
ImageFrame frame_of_pixels(ImageSize pixels);

}  // namespace vit::internal
