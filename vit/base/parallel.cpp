#include "vit/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>

#include "vit/base/error.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace vit {

int resolve_threads(int threads) {
  if (threads > 0) return threads;
#ifdef _OPENMP
  return omp_get_num_procs();
#else
  return 1;
#endif
}

namespace {

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waits until `value` is no longer `old` and returns what it is then. Sleeping and waking cost tens of
/// microseconds, more than the serial stretches of a forward pass; a thread that waits longer gives its core
/// away.
std::uint32_t await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  constexpr auto kSpinTime = std::chrono::microseconds(50);
  const auto end = std::chrono::steady_clock::now() + kSpinTime;
  do {
    const std::uint32_t now = value;
    if (now != old) return now;
    pause_briefly();
  } while (std::chrono::steady_clock::now() < end);
  value.wait(old);
  return value;
}

/// One leader hands tasks to whoever of the team comes for them. A job ends when its tasks have ended:
/// threads that took none are not waited for.
class Team {
 public:
  explicit Team(int num_threads) : num_threads_(num_threads) {}

  int num_threads() const { return num_threads_; }

  /// The leader's call: runs all tasks together with the team.
  void run(std::size_t num_tasks, detail::TaskFunction function, void* context) {
    VIT_CHECK(num_tasks < kDismissed, "parallel_for", num_tasks, " tasks, at most ", kDismissed - 1,
              " can be told apart");
    function_ = function;
    context_ = context;
    num_tasks_ = static_cast<std::uint32_t>(num_tasks);
    running_ = num_tasks_;
    waiting_ = num_tasks_;
    waiting_.notify_all();
    take_tasks(0);
    for (std::uint32_t left = running_; left != 0;) left = await_change(running_, left);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// The others' call: returns after dismiss().
  void serve(int thread) {
    while (await_change(waiting_, 0) != kDismissed) take_tasks(thread);
  }

  void dismiss() {
    waiting_ = kDismissed;
    waiting_.notify_all();
  }

 private:
  static constexpr std::uint32_t kDismissed = UINT32_MAX;

  // A job is replaced only after all its tasks have ended, so whoever took one reads the job that it belongs
  // to.
  void take_tasks(int thread) {
    std::uint32_t waiting = waiting_;
    while (waiting != 0 && waiting != kDismissed) {
      if (!waiting_.compare_exchange_weak(waiting, waiting - 1)) continue;
      run_task(num_tasks_ - waiting, thread);
      waiting = waiting_;
    }
  }

  void run_task(std::uint32_t task, int thread) {
    try {
      function_(context_, task, thread);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
    if (running_.fetch_sub(1) == 1) running_.notify_one();
  }

  const int num_threads_;
  detail::TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  std::uint32_t num_tasks_ = 0;
  std::exception_ptr error_;
  std::mutex error_mutex_;
  // Each on a cache line of its own: one is fought over, the other watched. Sequentially consistent, so that
  // no store passes the look at who sleeps.
  alignas(64) std::atomic<std::uint32_t> waiting_{0};  // tasks that nobody has taken, or kDismissed
  alignas(64) std::atomic<std::uint32_t> running_{0};  // tasks that have not ended
};

/// The team that this thread leads, null while it leads none or is inside a task.
thread_local Team* led_team = nullptr;

/// Gives the calling thread its team back at the end of a job.
class Resumption {
 public:
  explicit Resumption(Team& team) : team_(team) {}
  ~Resumption() { led_team = &team_; }
  Resumption(const Resumption&) = delete;
  Resumption& operator=(const Resumption&) = delete;

 private:
  Team& team_;
};

}  // namespace

namespace detail {

void run_with_team(int threads, BodyFunction function, void* context) {
#ifdef _OPENMP
  const int wanted = resolve_threads(threads);
  if (wanted > 1 && led_team == nullptr && !omp_in_parallel()) {
    Team team(wanted);
    std::exception_ptr error;
#pragma omp parallel num_threads(wanted)
    if (omp_get_thread_num() == 0) {
      led_team = &team;
      try {
        function(context);
      } catch (...) {
        error = std::current_exception();
      }
      led_team = nullptr;
      team.dismiss();
    } else {
      team.serve(omp_get_thread_num());
    }
    if (error) std::rethrow_exception(error);
    return;
  }
#endif
  static_cast<void>(threads);
  function(context);
}

void run_tasks(std::size_t num_tasks, int threads, TaskFunction function, void* context) {
#ifdef _OPENMP
  const int wanted = resolve_threads(threads);
  if (num_tasks > 1 && wanted > 1) {
    if (led_team == nullptr && !omp_in_parallel()) {
      const auto used = static_cast<int>(std::min(num_tasks, static_cast<std::size_t>(wanted)));
      with_team(used, [&] { run_tasks(num_tasks, used, function, context); });
      return;
    }
    if (led_team != nullptr && led_team->num_threads() <= wanted) {
      Team& team = *std::exchange(led_team, nullptr);  // tasks lead nobody
      const Resumption resumption(team);
      team.run(num_tasks, function, context);
      return;
    }
  }
#endif
  static_cast<void>(threads);
  for (std::size_t task = 0; task < num_tasks; ++task) function(context, task, 0);
}

}  // namespace detail
}  // namespace vit
