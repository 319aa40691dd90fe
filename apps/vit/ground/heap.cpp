#include "apps/vit/ground/heap.h"

#include <cstdlib>  // defines __GLIBC__
#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace vit::app {

void return_free_memory() noexcept {
#ifdef __GLIBC__
  ::malloc_trim(0);
#endif
}

bool fill_taken_memory([[maybe_unused]] int value) noexcept {
#ifdef __GLIBC__
  return ::mallopt(M_PERTURB, value) != 0;
#else
  return false;
#endif
}

}  // namespace vit::app
