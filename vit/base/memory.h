// Zeroed memory for the numbers of tensors: small blocks from operator new, large ones straight from the
// system.
#pragma once

#include <cstddef>

namespace vit::internal {

/// Blocks of this many bytes and more are mapped.
inline constexpr std::size_t kMappedBytes = std::size_t{1} << 20;

/// `bytes` zero bytes (at least one) at a multiple of 64. A mapped block uses memory only where it has
/// been touched, uses huge pages if available, and is returned to the system when it is
/// released: freed weights leave no holes in the heap. Throws std::bad_alloc.
void* allocate_zeroed(std::size_t bytes);
/// Releases memory from allocate_zeroed(bytes).
void release_zeroed(void* memory, std::size_t bytes) noexcept;

}  // namespace vit::internal
