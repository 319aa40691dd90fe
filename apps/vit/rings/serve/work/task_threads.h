// A few threads that read requests and write answers, so that the one that moves bytes never waits for them.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "vit/base/check.h"

namespace vit::app {

class TaskThreads {
 public:
  /// Throws Error if the system provides fewer.
  explicit TaskThreads(std::size_t threads) {
    try {
      for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      end();
      internal::fail("threads", "the system provides no more than ", threads_.size(),
                     " threads: ", error.what());
    }
  }
  /// What was posted is done first.
  ~TaskThreads() { end(); }
  TaskThreads(const TaskThreads&) = delete;
  TaskThreads& operator=(const TaskThreads&) = delete;

  /// `task` must not throw.
  void post(std::function<void()> task) {
    {
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    is_posted_.notify_one();
  }

 private:
  void end() {
    {
      const std::lock_guard lock(mutex_);
      is_stopped_ = true;
    }
    is_posted_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      is_posted_.wait(lock, [this] { return is_stopped_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
      task = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable is_posted_;
  std::deque<std::function<void()>> tasks_;
  bool is_stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vit::app
