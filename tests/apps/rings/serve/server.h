// A server of one test, and clients that send it bytes as they are. Everything on the loopback address,
// bounded in time.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tests/apps/program.h"
#include "vit/io/json.h"

namespace vit::test {

/// How many times as long passes take here: tests of what waits compute so many images fewer.
#if defined(__SANITIZE_ADDRESS__)
inline constexpr std::size_t kSlowness = 8;
#else
inline constexpr std::size_t kSlowness = 1;
#endif

/// One answer; names of headers in lower case.
struct HttpAnswer {
  unsigned status = 0;  // 0: the connection ended without one
  std::map<std::string, std::string> headers;
  std::string body;

  internal::Json json() const { return internal::parse_json(body, "answer"); }
};

/// `vit serve --port 0 ...`, ready once it is made; killed at the end.
class ServeProcess {
 public:
  explicit ServeProcess(const std::vector<std::string>& arguments,
                        const std::map<std::string, std::string>& environment = {}, bool waits = true);
  ~ServeProcess();
  ServeProcess(const ServeProcess&) = delete;
  ServeProcess& operator=(const ServeProcess&) = delete;

  std::uint16_t port() const { return port_; }
  pid_t process() const { return process_; }
  /// stderr so far.
  std::string log() const;
  /// Sends a signal and waits; the exit code, 128 + signal where one ended it.
  int end(int signal = 15);
  void wait_until_ready() const;

  /// A number of /metrics; 0 if it is not there (yet). A label is part of the name.
  std::size_t metric(const std::string& name) const;
  /// Waits until this holds for a number of /metrics; false after a minute.
  bool await_metric(const std::string& name, const std::function<bool(std::size_t)>& holds) const;

  HttpAnswer get(const std::string& path, const std::vector<std::string>& headers = {}) const;
  HttpAnswer post(const std::string& path, const std::string& body,
                  const std::vector<std::string>& headers = {"Content-Type: application/json"}) const;

 private:
  TestFolder folder_;
  pid_t process_ = -1;
  std::uint16_t port_ = 0;
};

/// A TCP connection to a server, or one to a socket in the file system.
class Client {
 public:
  explicit Client(std::uint16_t port);
  explicit Client(const std::string& unix_path);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  /// False where the other end is closed.
  bool send(std::string_view bytes) const;
  /// The next answer; status 0 where none comes within the time. `has_body`: false for HEAD.
  HttpAnswer read(std::chrono::milliseconds time = std::chrono::seconds(60), bool has_body = true);
  /// Waits until the server closes; false if it does not within a minute.
  bool awaits_end();

 private:
  bool receive(std::chrono::steady_clock::time_point deadline);

  int socket_ = -1;
  std::string buffer_;
};

/// Whether decoding processes can be confined here.
bool has_sandbox();

/// A request as text.
std::string http_request(const std::string& method, const std::string& path, const std::string& body = "",
                         const std::vector<std::string>& headers = {});

/// A CLIP model with both towers and its preprocessing in `folder`/clip, made of a golden one; its path.
std::string clip_model(const TestFolder& folder);
/// `data:image/...;base64,` of a file.
std::string data_uri(const std::string& path);

}  // namespace vit::test
