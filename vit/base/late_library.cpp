#include "vit/base/late_library.h"

#include "vit/base/check.h"
#include "vit/base/system.h"

namespace vit::internal {

AnyFunction late_function(const char* library, const char* name) {
  void* const opened = system::open_library(library);
  void* const found = opened == nullptr ? nullptr : system::library_symbol(opened, name);
  if (found == nullptr) {
    const char* const why = system::library_error();
    fail(Where{"open library", ErrorKind::unsupported}, library, " cannot be opened (",
         why == nullptr ? name : why, "); install it");
  }
  return reinterpret_cast<AnyFunction>(found);
}

}  // namespace vit::internal
