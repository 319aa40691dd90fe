#include "vit/base/task_recorder.h"

#include "vit/base/check.h"
#include "vit/base/team.h"

namespace vit::internal {
namespace {

thread_local TaskRecorder* recorder_of_thread = nullptr;
thread_local int loop_label = -1;

/// Sets a flag until the end of the scope.
class Flagged {
 public:
  explicit Flagged(bool& flag) : flag_(flag) { flag_ = true; }
  ~Flagged() { flag_ = false; }
  Flagged(const Flagged&) = delete;
  Flagged& operator=(const Flagged&) = delete;

 private:
  bool& flag_;
};

double seconds_between(std::chrono::steady_clock::time_point begin,
                       std::chrono::steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

}  // namespace

TaskRecorder::TaskRecorder(std::size_t private_cache_bytes) : others_(private_cache_bytes, 1) {
  VIT_CHECK(recorder_of_thread == nullptr, "TaskRecorder", "this thread is recorded already");
  recorder_of_thread = this;
}

TaskRecorder::~TaskRecorder() {
  recorder_of_thread = nullptr;
}

TaskRecorder* TaskRecorder::current() noexcept {
  return recorder_of_thread;
}

void TaskRecorder::run(std::size_t num_tasks, int threads, void (*function)(void*, std::size_t, int),
                       void* context) {
  const Clock::time_point begin = Clock::now();
  RecordedLoop& loop = recording_.loops.emplace_back();
  loop.label = loop_label;
  loop.threads = threads;
  loop.seconds_before = seconds_between(last_end_, begin);
  loop.tasks.reserve(num_tasks);
  const Flagged in_task(is_in_task_);
  const bool is_divided = num_tasks > 1 && threads > 1;  // else it runs in the calling thread
  const TaskParts parts(num_tasks, is_divided ? threads : 1);
  std::size_t last_thread = parts.count();
  for (std::size_t task = 0; task < num_tasks; ++task) {
    const std::size_t thread = parts.of_task(task);
    if (is_divided && thread != last_thread) evict();
    last_thread = thread;
    const Clock::time_point start = Clock::now();
    function(context, task, static_cast<int>(thread));
    loop.tasks.push_back(seconds_between(start, Clock::now()));
  }
  if (is_divided) evict();
  last_end_ = Clock::now();
}

void TaskRecorder::evict() {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < others_.size(); i += kLine) read_ ^= others_[i];
}

Recording TaskRecorder::take() {
  recording_.seconds_after = seconds_between(last_end_, Clock::now());
  Recording out = std::exchange(recording_, {});
  last_end_ = Clock::now();
  return out;
}

int set_loop_label(int label) noexcept {
  return std::exchange(loop_label, label);
}

}  // namespace vit::internal
