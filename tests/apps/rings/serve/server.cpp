#include "tests/apps/rings/serve/server.h"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>

#include "apps/vit/ground/base64.h"
#include "apps/vit/ground/sandbox.h"
#include "tests/support/files.h"
#include "tests/support/shared_data.h"

namespace vit::test {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kStartTime = std::chrono::seconds(60), kAnswerTime = kStartTime;

template <typename Condition>
bool wait_until(const Condition& condition, std::chrono::milliseconds time) {
  const auto deadline = Clock::now() + time;
  while (!condition()) {
    if (Clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string lowered(std::string text) {
  std::ranges::transform(text, text.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? char(c + 32) : c; });
  return text;
}

}  // namespace

ServeProcess::ServeProcess(const std::vector<std::string>& arguments,
                           const std::map<std::string, std::string>& environment, bool waits) {
  std::vector<std::string> all{"serve", "--port", "0"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  if (!has_sandbox()) all.emplace_back("--no-sandbox");
  process_ = start_vit(all, environment, folder_ / "out", folder_ / "err");
  constexpr std::string_view kAddress = "http://127.0.0.1:";
  const bool listens = wait_until(
      [&] {
        const std::string text = log();
        const std::size_t at = text.find(kAddress);
        if (at == std::string::npos || text.find('\n', at) == std::string::npos) return false;
        port_ = static_cast<std::uint16_t>(std::stoul(text.substr(at + kAddress.size())));
        return true;
      },
      kStartTime);
  const std::string what = log();
  REQUIRE_MESSAGE(listens, what);
  if (waits) wait_until_ready();
}

ServeProcess::~ServeProcess() {
  if (process_ < 0) return;
  ::kill(process_, SIGKILL);
  ::waitpid(process_, nullptr, 0);
}

void ServeProcess::wait_until_ready() const {
  REQUIRE(wait_until([&] { return get("/health").status == 200; }, kStartTime));
}

std::string ServeProcess::log() const {
  return read_text(folder_ / "err");
}

int ServeProcess::end(int signal) {
  ::kill(process_, signal);
  int status = 0;
  const bool ends =
      wait_until([&] { return ::waitpid(process_, &status, WNOHANG) == process_; }, std::chrono::seconds(60));
  REQUIRE(ends);
  process_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::size_t ServeProcess::metric(const std::string& name) const {
  const std::string metrics = get("/metrics").body;
  const std::size_t at = metrics.find("\n" + name + " ");
  return at == std::string::npos ? 0 : std::stoul(metrics.substr(at + name.size() + 2));
}

bool ServeProcess::await_metric(const std::string& name,
                                const std::function<bool(std::size_t)>& holds) const {
  return wait_until([&] { return holds(metric(name)); }, kAnswerTime);
}

HttpAnswer ServeProcess::get(const std::string& path, const std::vector<std::string>& headers) const {
  Client client(port_);
  client.send(http_request("GET", path, "", headers));
  return client.read();
}

HttpAnswer ServeProcess::post(const std::string& path, const std::string& body,
                              const std::vector<std::string>& headers) const {
  Client client(port_);
  client.send(http_request("POST", path, body, headers));
  return client.read();
}

Client::Client(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

Client::Client(const std::string& unix_path) : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(unix_path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, unix_path.c_str(), unix_path.size() + 1);
  REQUIRE(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
}

Client::~Client() {
  ::close(socket_);
}

bool Client::send(std::string_view bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool Client::receive(Clock::time_point deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  pollfd waited{.fd = socket_, .events = POLLIN, .revents = 0};
  if (left <= 0 || ::poll(&waited, 1, static_cast<int>(left)) <= 0) return false;
  char bytes[65536];
  const ssize_t count = ::recv(socket_, bytes, sizeof bytes, 0);
  if (count <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(count));
  return true;
}

HttpAnswer Client::read(std::chrono::milliseconds time, bool has_body) {
  const auto deadline = Clock::now() + time;
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!receive(deadline)) return {};
  }
  HttpAnswer answer;
  answer.status = static_cast<unsigned>(std::stoul(buffer_.substr(buffer_.find(' ') + 1, 3)));
  for (std::size_t line = buffer_.find("\r\n"); line < end;) {
    const std::size_t next = buffer_.find("\r\n", line + 2);
    const std::string header = buffer_.substr(line + 2, next - line - 2);
    const std::size_t colon = header.find(": ");
    answer.headers[lowered(header.substr(0, colon))] = header.substr(colon + 2);
    line = next;
  }
  buffer_.erase(0, end + 4);
  const auto length = answer.headers.find("content-length");
  const std::size_t bytes = has_body && length != answer.headers.end() ? std::stoul(length->second) : 0;
  while (buffer_.size() < bytes) {
    if (!receive(deadline)) return {};
  }
  answer.body = buffer_.substr(0, bytes);
  buffer_.erase(0, bytes);
  return answer;
}

bool Client::awaits_end() {
  const auto deadline = Clock::now() + kAnswerTime;
  while (Clock::now() < deadline) {
    pollfd waited{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&waited, 1, 20) <= 0) continue;
    char bytes[4096];
    if (::recv(socket_, bytes, sizeof bytes, 0) <= 0) return true;
  }
  return false;
}

bool has_sandbox() {
  try {
    const app::Confinement confinement;
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string http_request(const std::string& method, const std::string& path, const std::string& body,
                         const std::vector<std::string>& headers) {
  std::string out = method + " " + path + " HTTP/1.1\r\nHost: localhost\r\n";
  for (const std::string& header : headers) out += header + "\r\n";
  if (!body.empty() || method == "POST") out += "Content-Length: " + std::to_string(body.size()) + "\r\n";
  return out + "\r\n" + body;
}

std::string clip_model(const TestFolder& folder) {
  namespace fs = std::filesystem;
  const fs::path to = folder / "clip";
  fs::copy(data_path("golden/text/hf-clip"), to, fs::copy_options::recursive);
  std::string preprocessing = read_text(data_path("golden/models/hf-clip/preprocessor_config.json"));
  for (std::size_t at = 0; (at = preprocessing.find(": 24", at)) != std::string::npos;)
    preprocessing.replace(at, 4, ": 16");  // the size of this model's images
  write_text(to / "preprocessor_config.json", preprocessing);
  return to.string();
}

std::string data_uri(const std::string& path) {
  return "data:image/x-portable-pixmap;base64," + app::encode_base64(read_text(path));
}

}  // namespace vit::test
