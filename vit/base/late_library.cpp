#include "vit/base/late_library.h"

#include <dlfcn.h>

#include "vit/base/check.h"

namespace vit::internal {

AnyFunction late_function(const char* library, const char* name) {
  void* const opened = ::dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const found = opened == nullptr ? nullptr : ::dlsym(opened, name);
  if (found == nullptr) {
    const char* const why = ::dlerror();
    fail(Where{"open library", ErrorKind::unsupported}, library, " cannot be opened (",
         why == nullptr ? name : why, "); install it");
  }
  return reinterpret_cast<AnyFunction>(found);
}

}  // namespace vit::internal
