#include "vit/base/worker_threads.h"

#include <exception>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "vit/base/check.h"
#include "vit/base/system.h"

#if defined(__unix__) || defined(__APPLE__)
#include <pthread.h>
#endif

namespace vit::internal {
namespace {

constexpr std::uint32_t kIdle = 0, kLent = 1;

void pause_briefly() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

std::uint32_t spin_while(const std::atomic<std::uint32_t>& value, std::uint32_t old,
                         std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  do {
    const std::uint32_t now = value;
    if (now != old) return now;
    pause_briefly();
  } while (std::chrono::steady_clock::now() < end);
  return value;
}

std::uint32_t await_change(const std::atomic<std::uint32_t>& value, std::uint32_t old) {
  const std::uint32_t now = spin_while(value, old, std::chrono::microseconds(50));
  if (now != old) return now;
  system::sleep_while(value, old);
  return value;
}

/// State shared between a thread and the loan that uses it. Lives as long as the process.
class Worker {
 public:
  void start(WorkerLoan::Function function, void* context, int thread) {
    function_ = function;
    context_ = context;
    thread_ = thread;
    state_ = kLent;
    system::wake_one(state_);
  }

  void await_idle() const {
    while (state_ != kIdle) await_change(state_, kLent);
  }

  /// The thread itself; never returns.
  void serve() {
    while (true) {
      while (state_ != kLent) await_change(state_, kIdle);
      function_(context_, thread_);
      state_ = kIdle;
      system::wake_one(state_);
    }
  }

  Worker* next = nullptr;  // in the list that holds it: of the idle, or of a loan

 private:
  alignas(64) std::atomic<std::uint32_t> state_{kIdle};
  WorkerLoan::Function function_ = nullptr;
  void* context_ = nullptr;
  int thread_ = 0;
};

namespace {

/// Workers not on loan. Never destroyed: its threads may outlive every static object.
class IdleWorkers {
 public:
  /// Nullptr if all are on loan.
  Worker* take() {
    const std::lock_guard lock(mutex_);
    return first_ == nullptr ? nullptr : std::exchange(first_, first_->next);
  }

  void put(Worker* worker) {
    const std::lock_guard lock(mutex_);
    worker->next = std::exchange(first_, worker);
  }

  /// Number of forks between the first process and this one. Threads of another generation do not exist.
  std::uint32_t generation() const { return generation_; }

  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void begin_generation() {  // in the child, which holds the lock of its parent
    first_ = nullptr;
    ++generation_;
    mutex_.unlock();
  }

 private:
  std::mutex mutex_;
  Worker* first_ = nullptr;
  std::atomic<std::uint32_t> generation_ = 0;
};

IdleWorkers& idle_workers() {
  static IdleWorkers& workers = *new IdleWorkers;
  return workers;
}

#if defined(__unix__) || defined(__APPLE__)
[[maybe_unused]] const int watches_forks =
    ::pthread_atfork([] { idle_workers().lock(); }, [] { idle_workers().unlock(); },
                     [] { idle_workers().begin_generation(); });
#endif

/// Throws std::system_error or std::bad_alloc.
Worker* create_worker() {
  auto worker = std::make_unique<Worker>();
  std::thread([serving = worker.get()] { serving->serve(); }).detach();
  return worker.release();
}

void give_back(Worker* first) {
  while (first != nullptr) idle_workers().put(std::exchange(first, first->next));
}

}  // namespace

bool is_forked_child() noexcept {
  return idle_workers().generation() != 0;
}

bool can_create_threads(int count) {
  const auto tried = 2 * static_cast<std::size_t>(count);
  std::atomic<std::uint32_t> all_counted = 0;
  std::vector<std::thread> threads;
  threads.reserve(tried);
  try {
    while (threads.size() < tried) threads.emplace_back([&] { system::sleep_while(all_counted, 0); });
  } catch (const std::exception&) {  // no thread, or no memory for one
  }
  all_counted = 1;
  system::wake_all(all_counted);
  for (std::thread& thread : threads) thread.join();
  return threads.size() == tried;
}

WorkerLoan::WorkerLoan(int count, Function function, void* context) {
  generation_ = idle_workers().generation();
  int found = 0;
  try {
    for (; found < count; ++found) {
      Worker* worker = idle_workers().take();
      if (worker == nullptr) worker = create_worker();
      worker->next = std::exchange(first_, worker);
    }
  } catch (const std::system_error& error) {
    give_back(std::exchange(first_, nullptr));
    fail(Where{"threads", ErrorKind::io}, "the system provides no more than ", found + 1, " of ", count + 1,
         " threads; request fewer: ", error.what());
  } catch (...) {  // out of memory
    give_back(std::exchange(first_, nullptr));
    throw;
  }
  int thread = 0;
  for (Worker* worker = first_; worker != nullptr; worker = worker->next)
    worker->start(function, context, ++thread);
}

WorkerLoan::~WorkerLoan() {
  if (idle_workers().generation() != generation_) return;
  for (const Worker* worker = first_; worker != nullptr; worker = worker->next) worker->await_idle();
  give_back(first_);
}

}  // namespace vit::internal
