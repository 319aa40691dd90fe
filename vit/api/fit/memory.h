// What fitting a head takes, asked before it is taken: the system promises more than it has, and ends the
// process when the memory is touched.
#pragma once

#include <cstddef>

#include "vit/fit.h"

namespace vit::internal {

/// Bytes that a fit takes beyond its features, the most that a system can have if the number is larger.
std::size_t fit_memory(FitMethod method, std::size_t num_images, std::size_t num_features,
                       std::size_t num_classes) noexcept;

/// Throws Error of kind io if the system cannot give that, and `more` bytes beside it.
void check_fit_memory(FitMethod method, std::size_t num_images, std::size_t num_features,
                      std::size_t num_classes, std::size_t more);

}  // namespace vit::internal
