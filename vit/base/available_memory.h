// How much memory the system can still give, asked before it is taken.
#pragma once

#include <cstddef>

namespace vit::internal {

/// Bytes that this process can take without others losing theirs: what is free or only caches files, of the
/// machine and of the control group around the process, swap included. The largest number if the system does
/// not tell. Allocates nothing.
std::size_t available_memory() noexcept;

}  // namespace vit::internal
