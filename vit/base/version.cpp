// The version that CMake compiled in.
#include "vit/version.h"

namespace vit {

const char* version() noexcept {
  return VIT_VERSION;
}

}  // namespace vit
