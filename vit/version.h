// Which release of the library is linked. The number stands once, in the top CMakeLists.txt.
#pragma once

namespace vit {

/// "major.minor.patch". While major is 0, a new minor may change the API; a new patch never does.
const char* version() noexcept;

}  // namespace vit
