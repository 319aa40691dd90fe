// The version of the library. It is defined in the top CMakeLists.txt; a test compares.
//
// The public (installed) headers and the command line are stable: while the major version is 0,
// a new minor version may change them, a new patch version does not. The C++ binary interface is stable
// only within a minor version: programs must be recompiled for another one; that of C (c.h) stays compatible.
// Everything in vit::internal may change at any time.
#pragma once

#include "vit/base/error.h"

#define VIT_VERSION_MAJOR 0  // of these headers
#define VIT_VERSION_MINOR 3  // of these headers
#define VIT_VERSION_PATCH 0  // of these headers

namespace vit {

/// "major.minor.patch" of the linked library; the macros are those of the headers.
VIT_API const char* version() noexcept;

}  // namespace vit
