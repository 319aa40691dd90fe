// vit bench --serve: what a server of a model holds on this machine, measured by clients on the loopback
// address.
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "apps/vit/ground/base64.h"
#include "apps/vit/ground/data_dir.h"
#include "apps/vit/ground/interrupt.h"
#include "apps/vit/ground/json_value.h"
#include "apps/vit/ground/standard_streams.h"
#include "apps/vit/ground/text_format.h"
#include "apps/vit/options/load_model.h"
#include "apps/vit/rings/rings.h"
#include "apps/vit/rings/serve/http/http_client.h"
#include "vit/base/check.h"
#include "vit/base/parallel.h"
#include "vit/io/source_file.h"

namespace vit::app {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr Where kBenchWhere{"bench", ErrorKind::io};
constexpr std::chrono::seconds kStartTime{300}, kAnswerTime{300};
constexpr int kPollMilliseconds = 100;

/// The options of this run that say what the server loads.
std::vector<std::string> server_arguments(const CommonOptions& common) {
  std::vector<std::string> out{
      "serve", "--port", "0", "--log", "none", "--model", "m=" + fs::absolute(model_path(common)).string()};
  for (const auto& [name, values] : common.given) {
    for (const std::string& value : values) out.insert(out.end(), {name, value});
  }
  const InputSize& size = common.session.input_size;
  if (size.kind == InputSize::Kind::native) out.insert(out.end(), {"--size", "native"});
  if (size.kind == InputSize::Kind::fixed)
    out.insert(out.end(), {"--size", text(size.height, "x", size.width)});
  out.insert(out.end(), {"--dtype", to_string(common.model_options.precision)});
  out.insert(out.end(), {"--threads", std::to_string(common.session.threads)});
  return out;
}

/// This program as a server, ended at the end of the scope.
class ServerProcess {
 public:
  explicit ServerProcess(std::vector<std::string> arguments) {
    int lines[2];
    VIT_CHECK(::pipe2(lines, O_CLOEXEC) == 0, kBenchWhere, "no pipe: ", std::strerror(errno));
    std::string program = fs::read_symlink("/proc/self/exe").string();
    std::vector<char*> words{program.data()};
    for (std::string& argument : arguments) words.push_back(argument.data());
    words.push_back(nullptr);
    const pid_t parent = ::getpid();
    process_ = ::fork();
    VIT_CHECK(process_ >= 0, kBenchWhere, "no process: ", std::strerror(errno));
    if (process_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // whatever ends this process
      if (::getppid() != parent) ::_exit(127);
      ::dup2(lines[1], STDERR_FILENO);
      ::execv(program.c_str(), words.data());
      ::_exit(127);
    }
    ::close(lines[1]);
    lines_ = lines[0];
    try {
      read_address();
    } catch (...) {
      end();
      throw;
    }
  }
  ~ServerProcess() { end(); }
  ServerProcess(const ServerProcess&) = delete;
  ServerProcess& operator=(const ServerProcess&) = delete;

  const HttpTarget& target() const noexcept { return target_; }

  /// MiB of the server and the processes that it started; shared pages in parts.
  double mebibytes() const {
    double sum = 0;
    for (const pid_t process : family_of(process_)) {
      std::ifstream file(text("/proc/", process, "/smaps_rollup"));
      std::string word;
      for (double kibibytes = 0; file >> word;) {
        if (word == "Pss:" && file >> kibibytes) sum += kibibytes / 1024.0;
      }
    }
    return sum;
  }

 private:
  static std::vector<pid_t> family_of(pid_t process) {
    std::vector<pid_t> out{process};
    std::error_code error;
    for (const auto& thread : fs::directory_iterator(text("/proc/", process, "/task"), error)) {
      std::ifstream children(thread.path() / "children");
      for (pid_t child = 0; children >> child;) {
        const std::vector<pid_t> further = family_of(child);
        out.insert(out.end(), further.begin(), further.end());
      }
    }
    return out;
  }

  /// Of its first line: "listening on http://127.0.0.1:PORT". None after an interrupt.
  void read_address() {
    std::string log;
    while (log.find('\n') == std::string::npos) {
      if (interrupted()) return;
      pollfd waited{.fd = lines_, .events = POLLIN, .revents = 0};
      if (::poll(&waited, 1, kPollMilliseconds) <= 0) continue;
      char part[512];
      const ssize_t count = ::read(lines_, part, sizeof part);
      if (count < 0 && errno == EINTR) continue;
      VIT_CHECK(count > 0, kBenchWhere, "the server did not start: ", log);
      log.append(part, static_cast<std::size_t>(count));
    }
    constexpr std::string_view kHost = "127.0.0.1:";
    const std::size_t at = log.find(kHost);
    VIT_CHECK(at != std::string::npos, kBenchWhere, "the server did not state its address: ", log);
    const std::size_t begin = at + kHost.size(), end = log.find_first_not_of("0123456789", begin);
    target_ = {.host = "127.0.0.1", .port = log.substr(begin, end - begin), .path = ""};
  }

  void end() {
    ::kill(process_, SIGTERM);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
    ::close(lines_);
  }

  pid_t process_ = -1;
  int lines_ = -1;
  HttpTarget target_;
};

/// Bodies of requests, one for each image.
std::vector<std::string> request_bodies(std::vector<fs::path> images) {
  if (images.empty()) {
    std::error_code error;
    for (const auto& file : fs::directory_iterator(data_dir() / "images", error)) {
      if (file.path().extension() == ".jpg") images.push_back(file.path());
    }
    std::ranges::sort(images);
  }
  VIT_CHECK(!images.empty(), kBenchWhere, "no images to send; name some with --image FILE");
  std::vector<std::string> out;
  for (const fs::path& image : images) {
    const std::string file = internal::SourceFile(image, kBenchWhere).text();
    out.push_back(R"({"modality": "image", "input": ")" + encode_base64(file) + "\"}");
  }
  return out;
}

/// Waits until the model is loaded and answers, or for an interrupt.
void await_answer(const ServerProcess& server, const std::string& body) {
  const Clock::time_point until = Clock::now() + kStartTime;
  while (!interrupted()) {
    const HttpResponse answer =
        post(server.target(), "/v1/embeddings", "application/json", body, {.time = kAnswerTime});
    if (answer.status == 200) return;
    VIT_CHECK(answer.status == 503 && Clock::now() < until, kBenchWhere, "the server answered ",
              answer.status, ": ", answer.body);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

/// What clients saw.
struct Seen {
  std::vector<double> seconds;  // of each request
  double elapsed = 0, most_mebibytes = 0;
};

/// Each client sends one request after the other, until an interrupt.
Seen load_server(const ServerProcess& server, const std::vector<std::string>& bodies,
                 const ServerBench& options) {
  Seen seen;
  std::mutex mutex;
  std::string failure;
  const Clock::time_point start = Clock::now(),
                          end = start + std::chrono::duration_cast<Clock::duration>(
                                            std::chrono::duration<double>(options.seconds));
  const auto ask = [&](std::size_t client) {
    for (std::size_t i = client; Clock::now() < end && !interrupted(); ++i) {
      const Clock::time_point sent = Clock::now();
      std::string wrong;
      try {
        const HttpResponse answer = post(server.target(), "/v1/embeddings", "application/json",
                                         bodies[i % bodies.size()], {.time = kAnswerTime});
        if (answer.status != 200) wrong = text("answered ", answer.status, ": ", answer.body);
      } catch (const Error& error) {
        wrong = error.what();
      }
      const std::chrono::duration<double> time = Clock::now() - sent;
      const std::lock_guard lock(mutex);
      if (!wrong.empty()) failure = wrong;
      if (!failure.empty()) return;
      seen.seconds.push_back(time.count());
    }
  };
  std::vector<std::thread> clients;
  for (std::size_t i = 0; i < options.clients; ++i) clients.emplace_back(ask, i);
  while (Clock::now() < end && !interrupted()) {
    seen.most_mebibytes = std::max(seen.most_mebibytes, server.mebibytes());
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  for (std::thread& client : clients) client.join();
  seen.elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  VIT_CHECK(interrupted() || (failure.empty() && !seen.seconds.empty()), kBenchWhere, "the server ", failure);
  std::ranges::sort(seen.seconds);
  return seen;
}

/// `idle`: MiB of the server before requests.
void print_seen(const CommonOptions& common, const ServerBench& options, const Seen& seen, double idle) {
  const double rate = static_cast<double>(seen.seconds.size()) / seen.elapsed;
  const auto percentile = [&](double part) {
    const auto last = static_cast<double>(seen.seconds.size() - 1);
    return 1000.0 * seen.seconds[static_cast<std::size_t>(std::round(part * last))];
  };
  const auto threads = static_cast<std::size_t>(internal::resolve_threads(common.session.threads));
  const std::string model = model_path(common).filename().string();
  if (options.as_json) {
    const JsonValue result{{"model", model},
                           {"dtype", to_string(common.model_options.precision)},
                           {"threads", threads},
                           {"clients", options.clients},
                           {"requests", seen.seconds.size()},
                           {"images_per_second", rate},
                           {"images_per_hour", std::round(3600.0 * rate)},
                           {"p50_ms", percentile(0.5)},
                           {"p99_ms", percentile(0.99)},
                           {"idle_mib", idle},
                           {"most_mib", std::max(idle, seen.most_mebibytes)}};
    return print_result(result.dump(internal::JsonLayout::indented) + "\n");
  }
  const auto tenths = [](double value) { return std::round(10.0 * value) / 10.0; };
  print_result(text(printable(model), ", ", to_string(common.model_options.precision), ", ", threads,
                    threads == 1 ? " thread" : " threads", ", ", options.clients, " clients: ", tenths(rate),
                    " images/s, ", with_thousands(static_cast<unsigned long long>(3600.0 * rate)),
                    " an hour; p50 ", std::round(percentile(0.5)), " ms, p99 ", std::round(percentile(0.99)),
                    " ms; ", std::round(idle), " MiB idle, ", std::round(std::max(idle, seen.most_mebibytes)),
                    " MiB at work\n"));
}

}  // namespace

int bench_server(const CommonOptions& common, const ServerBench& options) {
  check_has_weights(common);
  const std::vector<std::string> bodies = request_bodies(options.images);
  hold_interrupts();  // from here on there is a process to end
  const ServerProcess server(server_arguments(common));
  await_answer(server, bodies.front());
  const double idle = server.mebibytes();
  static_cast<void>(load_server(server, bodies, {.clients = options.clients, .seconds = 1.0}));  // warm
  const Seen seen = load_server(server, bodies, options);
  if (interrupted()) return interrupted_exit_code();
  print_seen(common, options, seen, idle);
  return 0;
}

}  // namespace vit::app
