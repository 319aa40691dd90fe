// TaskRecorder: what the parallel loops of a thread consist of, for simulations of more threads than a
// machine has.
#pragma once

#include <chrono>
#include <cstddef>
#include <utility>
#include <vector>

namespace vit::internal {

/// One parallel_for.
struct RecordedLoop {
  int label = -1;             // the last set_loop_label() of its thread
  int threads = 1;            // that it was divided for
  double seconds_before = 0;  // of the calling thread, since the loop before
  std::vector<double> tasks;  // seconds of each, in order
};

/// What a thread did while it was recorded.
struct Recording {
  std::vector<RecordedLoop> loops;
  double seconds_after = 0;  // since the last loop
};

/// While it lives, every parallel_for of the calling thread is divided as for the threads that it asks for,
/// but its tasks run one after the other in the calling thread, as those of the thread that starts with them,
/// and are timed. Loops inside tasks are parts of these. One per thread.
class TaskRecorder {
 public:
  /// Threads of a machine have caches of their own, the recorded ones share that of the calling thread. If
  /// `private_cache_bytes` is not 0, that many other bytes are read before the tasks of each of several
  /// threads, which then find nothing in it that another thread has read or written; nor what they had
  /// themselves before the loop, which makes this the worse of two limits.
  explicit TaskRecorder(std::size_t private_cache_bytes = 0);
  ~TaskRecorder();
  TaskRecorder(const TaskRecorder&) = delete;
  TaskRecorder& operator=(const TaskRecorder&) = delete;

  /// That of the calling thread; null if there is none.
  static TaskRecorder* current() noexcept;
  bool is_in_task() const noexcept { return is_in_task_; }

  /// Runs and records the tasks of a loop; if one throws, the loop ends there.
  void run(std::size_t num_tasks, int threads, void (*function)(void*, std::size_t, int), void* context);
  /// What was recorded since the constructor or the last call.
  Recording take();

 private:
  using Clock = std::chrono::steady_clock;

  void evict();

  Recording recording_;
  std::vector<unsigned char> others_;  // what evicts data from the cache
  unsigned char read_ = 0;             // of them
  bool is_in_task_ = false;
  Clock::time_point last_end_ = Clock::now();
};

/// Labels the following loops of the calling thread. Returns the label before.
int set_loop_label(int label) noexcept;

}  // namespace vit::internal
