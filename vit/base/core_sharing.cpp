#include "vit/base/core_sharing.h"

#include <atomic>
#include <chrono>

#ifdef __linux__
#include <sched.h>
#endif

namespace vit::internal {

#ifdef __linux__

namespace {

/// Cores of a thread are read and written by one mover at a time: what another one reads in between would be
/// the restriction. Who does not get the turn moves nothing.
class Turn {
 public:
  Turn() noexcept : is_ours_(!taken_.test_and_set(std::memory_order_acquire)) {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (is_ours_) taken_.clear(std::memory_order_release);
  }
  explicit operator bool() const noexcept { return is_ours_; }

 private:
  static inline std::atomic_flag taken_;
  const bool is_ours_;
};

/// Restricts `thread` to the cores of `wanted`, which moves it there, and then allows all of its own again.
void move_thread(pthread_t thread, const cpu_set_t& own, const cpu_set_t& wanted) noexcept {
  if (CPU_COUNT(&wanted) == 0) return;
  if (::pthread_setaffinity_np(thread, sizeof wanted, &wanted) == 0)
    ::pthread_setaffinity_np(thread, sizeof own, &own);
}

}  // namespace

int current_core() noexcept {
  return ::sched_getcpu();
}

void leave_core() noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr auto kMoment = std::chrono::milliseconds(4);  // a time slice of the system
  thread_local Clock::time_point last;
  const Clock::time_point now = Clock::now();
  if (now - last < kMoment) return;
  last = now;
  const Turn turn;
  cpu_set_t own;
  const int core = current_core();
  if (!turn || core < 0 || ::pthread_getaffinity_np(::pthread_self(), sizeof own, &own) != 0) return;
  cpu_set_t others = own;
  CPU_CLR(static_cast<std::size_t>(core), &others);
  move_thread(::pthread_self(), own, others);
}

AwaitedThread::AwaitedThread() noexcept
    : thread_(::pthread_self()), has_clock_(::pthread_getcpuclockid(thread_, &clock_) == 0) {}

std::optional<std::int64_t> AwaitedThread::processor_time() const noexcept {
  timespec time = {};
  if (!has_clock_ || ::clock_gettime(clock_, &time) != 0) return std::nullopt;
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void AwaitedThread::move_here() const noexcept {
  const Turn turn;
  cpu_set_t own;
  const int core = current_core();
  if (!turn || core < 0 || ::pthread_getaffinity_np(thread_, sizeof own, &own) != 0) return;
  cpu_set_t here;
  CPU_ZERO(&here);
  if (CPU_ISSET(static_cast<std::size_t>(core), &own)) CPU_SET(static_cast<std::size_t>(core), &here);
  move_thread(thread_, own, here);
}

#else

int current_core() noexcept {
  return -1;
}
void leave_core() noexcept {}

AwaitedThread::AwaitedThread() noexcept = default;
std::optional<std::int64_t> AwaitedThread::processor_time() const noexcept {
  return std::nullopt;
}
void AwaitedThread::move_here() const noexcept {}

#endif

}  // namespace vit::internal
