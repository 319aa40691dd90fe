// Prepares items ahead on other threads and returns them in order, so that reading images overlaps with
// writing.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "vit/base/check.h"

namespace vit::app {

struct StreamLimits {
  int threads = 1;
  std::size_t max_items = 32;                      // prepared or in work, ahead of the reader
  std::size_t max_bytes = std::size_t{512} << 20;  // prepared; one item is always allowed
};

/// Calls prepare(0), prepare(1), ... prepare(count - 1) on several threads; next() returns the results in
/// this order. `prepare` must not throw (put errors into the item) and Item needs bytes(), the memory it
/// uses.
template <typename Item>
class OrderedStream {
 public:
  OrderedStream(std::size_t count, std::function<Item(std::size_t)> prepare, const StreamLimits& limits)
      : count_(count), prepare_(std::move(prepare)), limits_(limits) {
    const std::size_t threads = std::min(count, static_cast<std::size_t>(std::max(limits.threads, 1)));
    try {
      for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error& error) {
      stop();
      fail("threads", "the system provides no more than ", threads_.size(),
           " threads; try a smaller --threads: ", error.what());
    } catch (...) {  // out of memory
      stop();
      throw;
    }
  }
  ~OrderedStream() { stop(); }
  OrderedStream(const OrderedStream&) = delete;
  OrderedStream& operator=(const OrderedStream&) = delete;

  /// Waits for the next item; nothing at the end.
  std::optional<Item> next() {
    std::unique_lock lock(mutex_);
    if (next_out_ == count_) return std::nullopt;
    is_ready_.wait(lock, [this] { return ready_.contains(next_out_); });
    auto node = ready_.extract(next_out_);
    ++next_out_;
    ready_bytes_ -= node.mapped().bytes();
    lock.unlock();
    may_start_.notify_all();
    return std::move(node.mapped());
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    may_start_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      may_start_.wait(lock, [this] { return stopped_ || next_in_ == count_ || has_room(); });
      if (stopped_ || next_in_ == count_) return;
      const std::size_t index = next_in_++;
      lock.unlock();
      Item item = prepare_(index);
      lock.lock();
      ready_bytes_ += item.bytes();
      ready_.emplace(index, std::move(item));
      is_ready_.notify_one();
    }
  }
  bool has_room() const {
    if (next_in_ == next_out_) return true;  // the reader waits for exactly this item
    return next_in_ - next_out_ < limits_.max_items && ready_bytes_ < limits_.max_bytes;
  }

  const std::size_t count_;
  const std::function<Item(std::size_t)> prepare_;
  const StreamLimits limits_;
  std::mutex mutex_;
  std::condition_variable may_start_, is_ready_;
  std::map<std::size_t, Item> ready_;
  std::size_t ready_bytes_ = 0;
  std::size_t next_in_ = 0, next_out_ = 0;
  bool stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace vit::app
