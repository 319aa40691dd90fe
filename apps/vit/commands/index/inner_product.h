// The one loop of the program whose speed counts: it is built for speed, the rest of the program is not.
#pragma once

#include <cstddef>

namespace vit::app {

/// Sum of a[i] b[i] in float32. The order of the sums is fixed, so that scores do not depend on the machine.
float inner_product(const float* a, const float* b, std::size_t count);

}  // namespace vit::app
