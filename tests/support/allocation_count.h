// Counts calls of operator new in the whole test program, to show that warm passes make none.
#pragma once

#include <cstddef>

namespace vit::test {

/// Calls of any operator new so far, by all threads.
std::size_t allocation_count() noexcept;

}  // namespace vit::test
