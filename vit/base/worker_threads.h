// The library's own threads, for teams without OpenMP: they sleep until needed, shared by all teams of
// the process. parallel.cpp runs work on them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace vit::internal {

/// Polls `value` until it is no longer `old` or the time is over; returns its value.
std::uint32_t spin_while(const std::atomic<std::uint32_t>& value, std::uint32_t old,
                         std::chrono::microseconds time);

/// Waits until `value` is no longer `old` and returns it. Sleeping and waking cost tens of
/// microseconds, more than the serial parts of a forward pass; a thread that waits longer releases its core.
///
std::uint32_t await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old);

/// Whether this process was created by fork() from one that used this library: without its parent's threads.
bool is_forked_child() noexcept;

/// Whether the system provides this process `count` more threads. Twice as many are requested, because those
/// that have just ended may still be counted.
bool can_create_threads(int count);

class Worker;

/// Threads on loan, each in one call of function(context, i) for i = 1 ... count. They are sleeping
/// ones; missing ones are created and kept. A child of fork() starts without any,
/// and does not wait for those of its parent.
class WorkerLoan {
 public:
  using Function = void (*)(void* context, int thread);

  /// Throws Error (io) if the system provides too few threads; then no call has started. Allocates only for
  /// threads that are created.
  WorkerLoan(int count, Function function, void* context);
  /// Waits until every call has returned.
  ~WorkerLoan();
  WorkerLoan(const WorkerLoan&) = delete;
  WorkerLoan& operator=(const WorkerLoan&) = delete;

 private:
  Worker* first_ = nullptr;
  std::uint32_t generation_ = 0;
};

}  // namespace vit::internal
