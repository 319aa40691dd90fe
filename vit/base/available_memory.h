// How much memory is still available, checked before large allocations.
#pragma once

#include <cstddef>

namespace vit::internal {

/// Bytes that this process can use without taking memory from others: free memory and file caches of the
/// machine and of the process's control group, swap included. The largest number if the system does
/// not report it. Allocates nothing.
std::size_t available_memory() noexcept;

}  // namespace vit::internal
