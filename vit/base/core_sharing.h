// Threads beside other programs. A busy program takes part of a core; the system may then let two threads of
// a team share another core, or keep a thread waiting for its own while the rest of the team waits for that
// thread. Both are noticed here, and the thread is moved. The set of cores that a thread may use is the same
// before and after. Linux only; elsewhere nothing is noticed.
#pragma once

#include <cstdint>
#include <optional>

#ifdef __linux__
#include <pthread.h>
#include <time.h>
#endif

namespace vit::internal {

/// The core that the calling thread runs on; -1 if that is unknown.
int current_core() noexcept;

/// Moves the calling thread to another core that it may use. Does nothing if it was moved a moment ago: then
/// there is none that is better.
void leave_core() noexcept;

/// The calling thread, for others that wait for it.
class AwaitedThread {
 public:
  AwaitedThread() noexcept;

  /// The processor time that it has had, in nanoseconds: the same twice, and it did not run in between.
  std::optional<std::int64_t> processor_time() const noexcept;
  /// Moves it to the core of the caller, who is about to wait for it.
  void move_here() const noexcept;

 private:
#ifdef __linux__
  pthread_t thread_;
  clockid_t clock_{};
  bool has_clock_ = false;
#endif
};

}  // namespace vit::internal
