// The memory needed to fit a head, checked in advance: the system overcommits memory, and kills the
// process when the memory is touched.
#pragma once

#include <cstddef>

#include "vit/fit.h"

namespace vit::internal {

/// Bytes that a fit needs in addition to its features, capped at the largest representable number.
std::size_t fit_memory(FitMethod method, std::size_t num_images, std::size_t num_features,
                       std::size_t num_classes) noexcept;

/// Throws Error of kind io if the system cannot provide that plus `more` bytes.
void check_fit_memory(FitMethod method, std::size_t num_images, std::size_t num_features,
                      std::size_t num_classes, std::size_t more);

}  // namespace vit::internal
