// Functions of a shared library that is opened when the first of them is called, so that a process that does
// without it does not load it (libavif is 23 libraries, with what it needs). A build links the
// library instead if it is static, or with VIT_LATE_LIBRARIES=OFF.
//
//   struct Avif {  // the name of the library is a definition of this source (vit_late in
//   cmake/VitLate.cmake)
//     VIT_LATE_FUNCTION(avifDecoderCreate);
//   };
//   const Avif& avif() {
//     static const Avif functions;  // throws Error if the library is missing, and tries again at the next
//     call return functions;
//   }
#pragma once

#ifdef VIT_LATE_LIBRARY
#define VIT_LATE_FUNCTION(name)  \
  decltype(&::name) const name = \
      reinterpret_cast<decltype(&::name)>(::vit::internal::late_function(VIT_LATE_LIBRARY, #name))
#else
#define VIT_LATE_FUNCTION(name) decltype(&::name) const name = &::name
#endif

namespace vit::internal {

using AnyFunction = void (*)();

/// Opens a library by its soname, once for all its functions, and returns the address of one. It stays open.
/// Throws Error (unsupported) with the loader's reason if either is missing.
AnyFunction late_function(const char* library, const char* name);

}  // namespace vit::internal
