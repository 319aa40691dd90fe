// What the program asks of the heap of the C library; glibc's can do it, others (musl) cannot.
#pragma once

namespace vit::app {

/// Returns to the system what the heap holds and nothing uses, if it can.
void return_free_memory() noexcept;

/// From now on, memory that is taken and not written has this value in every byte. False if the heap cannot
/// do that.
bool fill_taken_memory(int value) noexcept;

}  // namespace vit::app
