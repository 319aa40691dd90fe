// One line on stderr for each request, and for what happens to the server itself.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"

namespace vit::app {

enum class LogFormat { text, json, none };

/// text: `TIME STATUS METHOD PATH MILLISECONDS ms IN B OUT B PEER ID`. json: an object with `time`, `id`,
/// `method`, `path`, `status`, `milliseconds`, `bytes_in`, `bytes_out`, `peer`; events have `time`, `event`,
/// `message` and what belongs to them. Times are UTC. Threads may share it. A thread of its own writes: where
/// nothing reads the lines, or what did is gone, they are dropped and counted, and the server goes on.
class RequestLog {
 public:
  explicit RequestLog(LogFormat format);
  /// Writes what waits, for a second at most.
  ~RequestLog();
  RequestLog(const RequestLog&) = delete;
  RequestLog& operator=(const RequestLog&) = delete;

  void add(const HttpRecord& record) const;
  /// `text` is for people, and the message in JSON, which `fields` follow. Written with LogFormat::none too
  /// where `is_needed`.
  void add_event(std::string_view event, std::string_view text,
                 const std::vector<std::pair<std::string, std::string>>& fields = {},
                 bool is_needed = false) const;
  /// Lines that no program read in time.
  std::size_t num_dropped() const noexcept { return num_dropped_.load(); }

 private:
  void post(std::string line) const;
  void write_loop();

  const LogFormat format_;
  mutable std::mutex mutex_;  // guards the lines
  mutable std::condition_variable changed_;
  mutable std::deque<std::string> lines_;
  mutable std::atomic<std::size_t> num_dropped_{0};
  bool is_stopped_ = false;
  std::thread thread_;
};

/// The line of a request, without its end; `time` as the log writes it.
std::string log_line(LogFormat format, const HttpRecord& record, std::string_view time);

}  // namespace vit::app
