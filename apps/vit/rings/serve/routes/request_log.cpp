#include "apps/vit/rings/serve/routes/request_log.h"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>

#include "apps/vit/ground/text_format.h"
#include "vit/base/check.h"

namespace vit::app {
namespace {

constexpr std::size_t kMaxLines = 10'000;  // that wait to be written
constexpr int kPollMilliseconds = 100, kTriesAtEnd = 10;

/// 2026-01-31T12:00:00.123Z
std::string utc_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto rest =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> out;
  std::snprintf(out.data(), out.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900,
                parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec,
                static_cast<int>(rest));
  return out.data();
}

std::string milliseconds(double seconds) {
  std::array<char, 32> out;
  std::snprintf(out.data(), out.size(), "%.1f", 1e3 * seconds);
  return out.data();
}

}  // namespace

std::string log_line(LogFormat format, const HttpRecord& record, std::string_view time) {
  if (format == LogFormat::json) {
    std::string line;
    JsonWriter json(line);
    json.begin_object().member("time", time).member("id", record.id).member("method", record.method);
    json.member("path", record.path).member("status", record.status);
    json.key("milliseconds").json(milliseconds(record.seconds));
    json.member("bytes_in", record.bytes_in).member("bytes_out", record.bytes_out);
    json.member("peer", record.peer).end_object();
    return line;
  }
  return vit::text(time, " ", record.status, " ", printable(record.method.empty() ? "-" : record.method), " ",
                   printable(record.path.empty() ? "-" : record.path), " ", milliseconds(record.seconds),
                   " ms ", record.bytes_in, " B ", record.bytes_out, " B ", record.peer, " ", record.id);
}

RequestLog::RequestLog(LogFormat format) : format_(format), thread_([this] { write_loop(); }) {}

RequestLog::~RequestLog() {
  {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void RequestLog::post(std::string line) const {
  line += '\n';
  {
    const std::lock_guard lock(mutex_);
    if (lines_.size() >= kMaxLines) {
      ++num_dropped_;
      return;
    }
    lines_.push_back(std::move(line));
  }
  changed_.notify_all();
}

/// Writes whole lines in one call, so that those of several processes do not mix. A pipe that can be written
/// has room for what POSIX writes as one.
void RequestLog::write_loop() {
  std::unique_lock lock(mutex_);
  for (int num_tries = 0; num_tries < kTriesAtEnd;) {
    changed_.wait(lock, [this] { return is_stopped_ || !lines_.empty(); });
    if (lines_.empty()) return;
    if (is_stopped_) ++num_tries;
    lock.unlock();
    pollfd waited{.fd = STDERR_FILENO, .events = POLLOUT, .revents = 0};
    const bool is_ready = ::poll(&waited, 1, kPollMilliseconds) > 0;
    lock.lock();
    if (!is_ready) continue;
    const std::string line = std::move(lines_.front());
    lines_.pop_front();
    num_tries = 0;
    lock.unlock();
    if (::write(STDERR_FILENO, line.data(), line.size()) < 0) ++num_dropped_;
    lock.lock();
  }
}

void RequestLog::add(const HttpRecord& record) const {
  if (format_ != LogFormat::none) post(log_line(format_, record, utc_now()));
}

void RequestLog::add_event(std::string_view event, std::string_view text,
                           const std::vector<std::pair<std::string, std::string>>& fields,
                           bool is_needed) const {
  if (format_ == LogFormat::none && !is_needed) return;
  if (format_ != LogFormat::json) return post(vit::text("vit serve: ", printable(text)));
  std::string line;
  JsonWriter json(line);
  json.begin_object().member("time", utc_now()).member("event", event).member("message", text);
  for (const auto& [name, value] : fields) json.member(name, value);
  json.end_object();
  post(std::move(line));
}

}  // namespace vit::app
