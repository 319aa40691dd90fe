// One line on stderr for each request, and for what happens to the server itself.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/vit/rings/serve/http/http.h"

namespace vit::app {

enum class LogFormat { text, json, none };

/// text: `TIME STATUS METHOD PATH MILLISECONDS ms IN B OUT B PEER ID`. json: an object with `time`, `id`,
/// `method`, `path`, `status`, `milliseconds`, `bytes_in`, `bytes_out`, `peer`; events have `time`, `event`
/// and what belongs to it. Times are UTC. Threads may share it.
class RequestLog {
 public:
  explicit RequestLog(LogFormat format) : format_(format) {}
  void add(const HttpRecord& record) const;
  /// `text` is for people; `fields` follow the event in JSON. Written with LogFormat::none too where
  /// `is_needed`.
  void add_event(std::string_view event, std::string_view text,
                 const std::vector<std::pair<std::string, std::string>>& fields = {},
                 bool is_needed = false) const;

 private:
  LogFormat format_;
};

/// The line of a request, without its end; `time` as the log writes it.
std::string log_line(LogFormat format, const HttpRecord& record, std::string_view time);

}  // namespace vit::app
