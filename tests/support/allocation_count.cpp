#include "tests/support/allocation_count.h"

#include <atomic>
#include <cstdlib>
#include <new>

#ifdef _WIN32
#include <malloc.h>
#endif

namespace {

std::atomic<std::size_t> count{0};

void* try_to_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  count.fetch_add(1, std::memory_order_relaxed);
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
#ifdef _WIN32
  return ::_aligned_malloc(rounded == 0 ? alignment : rounded, alignment);
#else
  return std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
#endif
}

void release(void* memory) noexcept {
#ifdef _WIN32
  ::_aligned_free(memory);
#else
  std::free(memory);
#endif
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (void* const memory = try_to_allocate(bytes, alignment)) return memory;
  throw std::bad_alloc();
}

}  // namespace

std::size_t vit::test::allocation_count() noexcept {
  return count.load();
}

void* operator new(std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return try_to_allocate(bytes, alignof(std::max_align_t));
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return try_to_allocate(bytes, alignof(std::max_align_t));
}
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
