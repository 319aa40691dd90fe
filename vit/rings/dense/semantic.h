// Semantic segments from scores of classes: of pixels, or of pixels that masks were joined to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "vit/dense.h"

namespace vit::internal {

/// Segments of an image from Output::classes, at its size.
SegmentMap semantic_segments(const ImageOutputs& outputs, std::span<const std::string> labels, int threads);

/// A map of classes with the segment of each class that it has, by index.
SegmentMap with_areas(Tensor<std::int32_t> classes, std::size_t num_classes,
                      std::span<const std::string> labels);

}  // namespace vit::internal
