// Under the address sanitizer, which detects overruns only of operator new, every block comes from there.
#include "vit/base/memory.h"

#include <cstdint>
#include <cstring>
#include <limits>
#include <new>

#include "vit/base/checked.h"
#include "vit/base/system.h"

#if defined(__SANITIZE_ADDRESS__)
#define VIT_CHECKS_OVERRUNS
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define VIT_CHECKS_OVERRUNS
#endif
#endif

namespace vit::internal {
namespace {

constexpr std::size_t kAskedBytes = std::size_t{256} << 20;  // smaller blocks are not checked
constexpr std::size_t kAlignment = 64;                       // one cache line, one AVX-512 register

#if !defined(VIT_CHECKS_OVERRUNS)

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Starts at a huge page and ends at a small one: a partial last huge page would waste memory.
void* map_zeroed(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() - 2 * kHugePage) throw std::bad_alloc();
  const std::size_t size = round_up(bytes, system::page_bytes());
  const std::size_t slack = size < kHugePage ? 0 : kHugePage;
  void* const mapped = system::map_pages(size + slack);
  if (mapped == nullptr) throw std::bad_alloc();
  if (slack == 0) return mapped;
  char* const begin = static_cast<char*>(mapped);
  const std::size_t before = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (before != 0) system::unmap_pages(begin, before);
  if (before != slack) system::unmap_pages(begin + before + size, slack - before);
  system::advise_huge_pages(begin + before, size);  // small pages work as well
  return begin + before;
}

#endif

#if defined(VIT_CHECKS_OVERRUNS)  // byte-exact

void* allocate_aligned(std::size_t bytes) {
  return ::operator new (bytes, std::align_val_t{kAlignment});
}
void release_aligned(void* memory) noexcept {
  ::operator delete (memory, std::align_val_t{kAlignment});
}

#else

// Not from the aligned operator new: the C library (glibc before 2.38) takes an aligned block from a larger
// one and, once it is freed, does not reuse it for the next block of that size. Streams of images grew
// because of the holes in the heap.
void* allocate_aligned(std::size_t bytes) {
  if (bytes > std::numeric_limits<std::size_t>::max() - kAlignment) throw std::bad_alloc();
  void* const whole = ::operator new(bytes + kAlignment);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(whole) % kAlignment;
  char* const begin = static_cast<char*>(whole) + (kAlignment - past);
  std::memcpy(begin - sizeof whole, &whole, sizeof whole);
  return begin;
}
void release_aligned(void* memory) noexcept {
  void* whole;
  std::memcpy(&whole, static_cast<char*>(memory) - sizeof whole, sizeof whole);
  ::operator delete(whole);
}

#endif

}  // namespace

void* allocate_zeroed(std::size_t bytes) {
  // The system overcommits memory, and kills the process when the block is touched.
  if (bytes >= kAskedBytes && bytes > system::available_memory()) throw std::bad_alloc();
#if !defined(VIT_CHECKS_OVERRUNS)
  if (bytes >= kMappedBytes) return map_zeroed(bytes);
#endif
  return std::memset(allocate_aligned(bytes), 0, bytes);
}

void release_zeroed(void* memory, std::size_t bytes) noexcept {
#if !defined(VIT_CHECKS_OVERRUNS)
  if (bytes >= kMappedBytes) {
    system::unmap_pages(memory, bytes);
    return;
  }
#endif
  static_cast<void>(bytes);
  release_aligned(memory);
}

}  // namespace vit::internal
