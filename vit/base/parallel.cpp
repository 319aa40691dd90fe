#include "vit/base/parallel.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "vit/base/check.h"
#include "vit/base/core_sharing.h"
#include "vit/base/worker_threads.h"

#ifdef __linux__
#include <sched.h>
#endif
#ifdef _OPENMP
#include <omp.h>
#endif

namespace vit::internal {

/// More than any machine gains from: a larger number is a mistake, whose working memory would fill the
/// machine.
constexpr int kMaxThreads = 1024;

int resolve_threads(int threads) {
  VIT_CHECK(threads <= kMaxThreads, "threads", threads, " threads; at most ", kMaxThreads, " expected");
  if (threads > 0) return threads;
#ifdef __linux__
  cpu_set_t cores;  // those that this process may use
  if (::sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
#endif
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

namespace {

/// Whether the caller has divided its work already. OpenMP is asked because users call from its regions.
bool is_inside_region() {
#ifdef _OPENMP
  return omp_in_parallel() != 0;
#else
  return false;
#endif
}

/// One leader hands tasks to a team. Each thread begins with a part of its own: in jobs that go through the
/// same rows in the same order it meets again what it wrote, in its own cache. Then it takes over what others
/// have not begun. A job ends when its tasks have ended: threads that took none are not waited for. Beside
/// other programs, a thread that is on the leader's core looks for another one, and a thread that is waited
/// for and does not run goes on on the leader's.
class Team {
 public:
  explicit Team(int num_threads)
      : num_threads_(num_threads), num_parts_(std::min<std::size_t>(num_threads, kMostParts)) {}

  int num_threads() const { return num_threads_; }

  /// The leader's call: runs all tasks together with the team.
  void run(std::size_t num_tasks, detail::TaskFunction function, void* context) {
    VIT_CHECK(num_tasks <= UINT32_MAX, "parallel_for", num_tasks, " tasks, at most ", UINT32_MAX,
              " can be told apart");
    function_ = function;
    context_ = context;
    running_ = static_cast<std::uint32_t>(num_tasks);
    for (std::size_t part = 0; part < num_parts_; ++part) {
      parts_[part].left = Range{part * num_tasks / num_parts_, (part + 1) * num_tasks / num_parts_}.bits();
    }
    leader_core_.store(current_core(), std::memory_order_relaxed);
    announce(job_ + 1 == kDismissed ? 1 : job_ + 1);
    take_tasks(0);
    for (std::uint32_t left = running_; left != 0; left = running_) await_others(left);
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

  /// The others' call: returns after dismiss().
  void serve(int thread) {
    Member unseen;
    const auto place = static_cast<std::size_t>(thread);
    Member& member = place < kMostParts ? members_[place] : unseen;
    member.thread.emplace();
    for (std::uint32_t seen = 0; (seen = await_change(job_, seen)) != kDismissed;) {
      member.is_working = true;
      take_tasks(thread);
      member.is_working = false;
    }
  }

  void dismiss() { announce(kDismissed); }

 private:
  static constexpr std::uint32_t kDismissed = UINT32_MAX;
  static constexpr std::size_t kMostParts = 64;

  /// Tasks [begin, end), as one number that changes at once.
  struct Range {
    std::uint64_t begin, end;
    static Range of(std::uint64_t bits) { return {bits >> 32, bits & UINT32_MAX}; }
    std::uint64_t bits() const { return begin << 32 | end; }
    bool empty() const { return begin == end; }
  };

  struct alignas(64) Part {              // a cache line of its own
    std::atomic<std::uint64_t> left{0};  // bits of the Range that nobody has taken
  };

  /// A thread of the team, as the leader sees it.
  struct alignas(64) Member {
    std::optional<AwaitedThread> thread;  // there as soon as it works
    std::atomic<bool> is_working{false};  // on tasks of a job

    std::optional<std::int64_t> processor_time() const {
      return is_working ? thread->processor_time() : std::nullopt;
    }
  };

  void announce(std::uint32_t job) {
    job_ = job;
    job_.notify_all();
  }

  /// The leader waits until fewer than `left` tasks run.
  void await_others(std::uint32_t left) {
    constexpr auto kPatience = std::chrono::microseconds(30), kLook = std::chrono::microseconds(20);
    if (spin_while(running_, left, kPatience) != left) return;
    std::array<std::optional<std::int64_t>, kMostParts> before;
    for (std::size_t i = 0; i < num_parts_; ++i) before[i] = members_[i].processor_time();
    if (spin_while(running_, left, kLook) != left) return;
    for (std::size_t i = 0; i < num_parts_; ++i) {
      if (before[i] && members_[i].processor_time() == before[i]) {
        members_[i].thread->move_here();
        break;
      }
    }
    running_.wait(left);
  }

  // A job is replaced only after all its tasks have been counted as ended: whoever took one, however late it
  // looked, reads the job that it belongs to.
  void take_tasks(int thread) {
    const std::size_t own = static_cast<std::size_t>(thread) % num_parts_;
    std::uint32_t ended = take_tasks(parts_[own], thread, [](Range& left) { return left.begin++; });
    for (std::size_t i = 1; i < num_parts_; ++i) {
      ended += take_tasks(parts_[(own + i) % num_parts_], thread, [](Range& left) { return --left.end; });
    }
    if (ended != 0 && running_.fetch_sub(ended) == ended) running_.notify_one();
  }

  /// Runs the tasks that `take` removes from those left of a part; returns how many.
  template <typename Take>
  std::uint32_t take_tasks(Part& part, int thread, const Take& take) {
    std::uint32_t count = 0;
    std::uint64_t bits = part.left;
    for (Range left = Range::of(bits); !left.empty(); left = Range::of(bits)) {
      const std::uint64_t task = take(left);
      if (!part.left.compare_exchange_weak(bits, left.bits())) continue;
      run_task(task, thread);
      ++count;
      bits = part.left;
    }
    return count;
  }

  void run_task(std::size_t task, int thread) {
    if (thread != 0 && current_core() == leader_core_.load(std::memory_order_relaxed)) leave_core();
    try {
      function_(context_, task, thread);
    } catch (...) {
      const std::lock_guard lock(error_mutex_);
      if (!error_) error_ = std::current_exception();
    }
  }

  const int num_threads_;
  const std::size_t num_parts_;
  std::array<Member, kMostParts> members_;  // the leader's is not used
  std::atomic<int> leader_core_{-1};
  detail::TaskFunction function_ = nullptr;
  void* context_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_mutex_;
  std::array<Part, kMostParts> parts_;
  // On lines of their own: one is fought over, the other watched. Sequentially consistent, so that no store
  // passes the look at who sleeps.
  alignas(64) std::atomic<std::uint32_t> job_{0};      // its number, or kDismissed
  alignas(64) std::atomic<std::uint32_t> running_{0};  // tasks that have not ended
};

/// The team that this thread leads, null while it leads none or is inside a task.
thread_local Team* led_team = nullptr;
/// Whether this thread leads or serves a team, inside a task or not.
thread_local bool is_in_team = false;

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
}

}  // namespace

namespace detail {

void run_with_team(int threads, BodyFunction function, void* context) {
  const int wanted = resolve_threads(threads);
  if (wanted == 1 || is_in_team || is_inside_region()) return function(context);
  Team team(wanted);
  const WorkerLoan others(wanted - 1, serve_team, &team);
  const Leadership leadership(team);
  function(context);
}

void run_tasks(std::size_t num_tasks, int threads, TaskFunction function, void* context) {
  const int wanted = resolve_threads(threads);
  if (num_tasks > 1 && wanted > 1) {
    if (!is_in_team && !is_inside_region()) {
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
  for (std::size_t task = 0; task < num_tasks; ++task) function(context, task, 0);
}

}  // namespace detail
}  // namespace vit::internal
