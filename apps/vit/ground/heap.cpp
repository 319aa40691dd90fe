#include "apps/vit/ground/heap.h"

#include <cstdlib>  // defines __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

#ifdef __has_feature
#define VIT_HAS_ADDRESS_SANITIZER __has_feature(address_sanitizer)
#else
#define VIT_HAS_ADDRESS_SANITIZER 0
#endif

namespace vit::app {

void return_free_memory() noexcept {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

bool fill_taken_memory([[maybe_unused]] int value) noexcept {
#if defined(__SANITIZE_ADDRESS__) || VIT_HAS_ADDRESS_SANITIZER
  return value != 0;  // its heap fills by an option of its own, max_malloc_fill_size in CMakePresets.json
#elif defined(__GLIBC__)
  return ::mallopt(M_PERTURB, value) != 0;
#else
  return false;
#endif
}

}  // namespace vit::app
