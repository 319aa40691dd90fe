#include "vit/base/parallel.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <thread>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/cpu_quota.h"
#include "vit/base/task_recorder.h"
#include "vit/base/team.h"
#include "vit/base/worker_threads.h"

#ifdef _OPENMP
#include <omp.h>
#elif defined(__linux__)
#include <sched.h>
#endif

namespace vit::internal {
namespace {

/// No machine benefits from more: a larger number is a mistake, whose working memory would fill the
/// machine.
constexpr int kMaxThreads = 1024;

/// The team that this thread leads, null while it leads none or is inside a task.
thread_local Team* led_team = nullptr;
/// Whether this thread leads or serves a team, inside a task or not.
thread_local bool is_in_team = false;

/// Restores the team of the calling thread at the end of a job.
class Resumption {
 public:
  explicit Resumption(Team& team) : team_(team) {}
  ~Resumption() { led_team = &team_; }
  Resumption(const Resumption&) = delete;
  Resumption& operator=(const Resumption&) = delete;

 private:
  Team& team_;
};

/// Makes the calling thread the leader of a team, until the end of the scope.
class Leadership {
 public:
  explicit Leadership(Team& team) : team_(team) {
    led_team = &team;
    is_in_team = true;
  }
  ~Leadership() {
    led_team = nullptr;
    is_in_team = false;
    team_.dismiss();
  }
  Leadership(const Leadership&) = delete;
  Leadership& operator=(const Leadership&) = delete;

 private:
  Team& team_;
};

void serve_team(void* team, int thread) {
  is_in_team = true;
  static_cast<Team*>(team)->serve(thread);
  is_in_team = false;  // the thread belongs to OpenMP and may get other work
}

/// Runs the body in the calling thread, with a team of the library's own workers.
void lead_workers(Team& team, detail::BodyFunction function, void* context) {
  const WorkerLoan members(team.num_threads() - 1, serve_team, &team);
  const Leadership leadership(team);
  function(context);
}

#ifdef _OPENMP

/// The default number of threads of this thread's regions. OpenMP does not see quotas of containers: those
/// limit its own default, not what the environment or the caller set.
int default_threads() {
  const int threads = std::min(omp_get_max_threads(), omp_get_thread_limit());
  static const double quota = std::getenv("OMP_NUM_THREADS") == nullptr ? cpu_quota() : kMaxThreads;
  if (quota >= static_cast<double>(threads) || omp_get_max_threads() != omp_get_num_procs()) return threads;
  return threads_within(quota, threads);
}

/// Whether a region opened here would have one thread: by default, inside another one with several.
bool is_innermost_level() {
  return omp_get_active_level() >= omp_get_max_active_levels();
}

/// Whether the environment configures how OpenMP's threads wait or where they run.
bool is_openmp_configured() {
  static const bool is_configured = [] {
    for (const char* name : {"OMP_WAIT_POLICY", "OMP_PROC_BIND", "OMP_PLACES", "GOMP_SPINCOUNT",
                             "GOMP_CPU_AFFINITY", "KMP_BLOCKTIME", "KMP_AFFINITY"}) {
      if (std::getenv(name) != nullptr) return true;
    }
    return false;
  }();
  return is_configured;
}

/// Decides when the calling thread may open a region.
class Regions {
 public:
  using Clock = std::chrono::steady_clock;

  /// Whether to use OpenMP for `threads` threads. libgomp waits forever in a child of fork(), for threads of
  /// the parent. OpenMP's libraries end the process if the system refuses a thread, so this is checked.
  bool can_open(int threads) {
    if (is_forked_child() || (own_until_ != Clock::time_point() && Clock::now() < own_until_)) return false;
    const bool is_outermost = omp_get_level() == 0;
    const int kept = is_outermost ? num_kept_ : 1;
    grows_ = threads > kept;
    if (grows_ && !can_create_threads(threads - kept)) return false;
    if (is_outermost) num_kept_ = threads;
    return true;
  }

  /// By default, OpenMP's threads spin for milliseconds before they sleep. Next to a busy program
  /// one then spins on a core that the leader waits for, and vice versa: a pass of 8 ms takes 0.4 ms
  /// longer, or twice as long. Own workers, which sleep early, are used until that is likely to be over.
  void note_opening(Clock::duration waited) {
    constexpr auto kLate = std::chrono::milliseconds(1);  // without a new thread: a core was missing
    constexpr auto kRest = std::chrono::seconds(1);
    if (!grows_ && waited > kLate && !is_openmp_configured()) own_until_ = Clock::now() + kRest;
  }

 private:
  // Between regions of a thread OpenMP keeps the threads of the last one; for nested regions, none.
  int num_kept_ = 1;
  bool grows_ = false;
  Clock::time_point own_until_;
};

thread_local Regions regions;

/// Runs the body in the calling thread, in an OpenMP region whose other threads serve the team. It may give
/// fewer threads than requested (OMP_THREAD_LIMIT, OMP_DYNAMIC).
void lead_region(Team& team, detail::BodyFunction function, void* context) {
  std::exception_ptr error;
  const auto asked = Regions::Clock::now();
#pragma omp parallel num_threads(team.num_threads())
  {
    if (const int thread = omp_get_thread_num(); thread != 0) {
      serve_team(&team, thread);
    } else {
      regions.note_opening(Regions::Clock::now() - asked);
      try {
        const Leadership leadership(team);
        function(context);
      } catch (...) {
        error = std::current_exception();
      }
      // Here and not in the barrier of the region, where OpenMP lets its threads spin for milliseconds.
      team.await_members(omp_get_num_threads() - 1);
    }
  }
  if (error) std::rethrow_exception(error);
}

#else

int default_threads() {
  static const double quota = cpu_quota();
#ifdef __linux__
  cpu_set_t cores;  // those that this process may use
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return threads_within(quota, CPU_COUNT(&cores));
#endif
  return threads_within(quota, static_cast<int>(std::thread::hardware_concurrency()));
}

#endif

void lead(Team& team, detail::BodyFunction function, void* context) {
#ifdef _OPENMP
  if (regions.can_open(team.num_threads())) return lead_region(team, function, context);
#endif
  lead_workers(team, function, context);
}

/// Whether the caller has already divided its work. OpenMP is queried because users call from its regions.
bool is_divided() {
  if (is_in_team || TaskRecorder::current() != nullptr) return true;
#ifdef _OPENMP
  return is_innermost_level();
#else
  return false;
#endif
}

}  // namespace

int resolve_threads(int threads) {
  VIT_CHECK(threads >= 0, "threads", "threads is ", threads, "; 0 = all cores");
  VIT_CHECK(threads <= kMaxThreads, "threads", threads, " threads; at most ", kMaxThreads, " expected");
  return threads > 0 ? threads : std::clamp(default_threads(), 1, kMaxThreads);
}

namespace detail {

void run_with_team(int threads, BodyFunction function, void* context) {
  const int wanted = resolve_threads(threads);
  if (wanted == 1 || is_divided()) return function(context);
  Team team(wanted);
  lead(team, function, context);
}

void run_tasks(std::size_t num_tasks, int threads, TaskFunction function, void* context) {
  const int wanted = resolve_threads(threads);
  if (TaskRecorder* const recorder = TaskRecorder::current(); recorder && !recorder->is_in_task())
    return recorder->run(num_tasks, wanted, function, context);
  if (num_tasks > 1 && wanted > 1) {
    if (led_team != nullptr && led_team->num_threads() <= wanted) {
      Team& team = *std::exchange(led_team, nullptr);  // tasks lead no team
      const Resumption resumption(team);
      team.run(num_tasks, function, context);
      return;
    }
    if (!is_divided()) {
      // All of them, even for fewer tasks: OpenMP ends the threads that a smaller region does not use.
      with_team(wanted, [&] { run_tasks(num_tasks, wanted, function, context); });
      return;
    }
  }
  for (std::size_t task = 0; task < num_tasks; ++task) function(context, task, 0);
}

}  // namespace detail
}  // namespace vit::internal
