// Which release of the library this is. The number stands once, in the top CMakeLists.txt; a test compares.
//
// Stable are the public headers (those that are installed) and the command line: while the major number is 0,
// a new minor number may change them, a new patch number does not. The binary interface of C++ is stable
// within a minor number only: programs are compiled anew for another one; that of C (c.h) stays compatible.
// What lies in vit::internal may change at any time.
#pragma once

#include "vit/base/error.h"

#define VIT_VERSION_MAJOR 0  // of these headers
#define VIT_VERSION_MINOR 2  // of these headers
#define VIT_VERSION_PATCH 0  // of these headers

namespace vit {

/// "major.minor.patch" of the library that is linked; the macros are those of the headers.
VIT_API const char* version() noexcept;

}  // namespace vit
