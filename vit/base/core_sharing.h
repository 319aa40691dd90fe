// Threads next to other programs. A busy program takes part of a core; the system may then let two threads of
// a team share another core, or keep a thread waiting for its own while the rest of the team waits for that
// thread. Both are detected here, and the thread is moved. The set of cores that a thread may use is the same
// before and after. Linux only; elsewhere nothing is detected.
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

/// Moves the calling thread to another core that it may use. Does nothing if it was moved recently: then
/// there is no better one.
void leave_core() noexcept;

/// The calling thread, for others that wait for it.
class AwaitedThread {
 public:
  AwaitedThread() noexcept;

  /// Its processor time so far, in nanoseconds: if it is unchanged, the thread did not run in between.
  std::optional<std::int64_t> processor_time() const noexcept;
  /// Moves it to the core of the caller, which is about to wait for it.
  void move_here() const noexcept;

 private:
#ifdef __linux__
  pthread_t thread_;
  clockid_t clock_{};
  bool has_clock_ = false;
#endif
};

}  // namespace vit::internal
