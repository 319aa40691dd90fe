// Own threads, for teams that OpenMP cannot have: they sleep until they are wanted, shared by all teams of
// the process. What they run is for parallel.cpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace vit::internal {

/// Looks at `value` until it is no longer `old` or the time is over; returns what it is then.
std::uint32_t spin_while(const std::atomic<std::uint32_t>& value, std::uint32_t old,
                         std::chrono::microseconds time);

/// Waits until `value` is no longer `old` and returns what it is then. Sleeping and waking cost tens of
/// microseconds, more than the serial stretches of a forward pass; a thread that waits longer gives its core
/// away.
std::uint32_t await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old);

/// Whether this process began by fork() from one that had this library: without its parent's threads.
bool is_forked_child() noexcept;

/// Whether the system gives this process `count` more threads. It is asked for twice as many, because those
/// that have just ended may still be counted.
bool can_create_threads(int count);

class Worker;

/// Threads on loan, each in one call of function(context, i) for i = 1 ... count. They are taken from those
/// that sleep; what is missing is created, and stays for the next loan. A child of fork() begins without any,
/// and does not wait for those of its parent.
class WorkerLoan {
 public:
  using Function = void (*)(void* context, int thread);

  /// Throws Error (io) if the system gives too few threads; then no call has begun. Allocates only for
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
