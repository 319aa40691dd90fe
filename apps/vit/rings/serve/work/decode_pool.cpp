#include "apps/vit/rings/serve/work/decode_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string>
#include <thread>
#include <utility>

#include "apps/vit/rings/serve/work/decode_worker.h"
#include "vit/base/check.h"
#include "vit/config/patch.h"
#include "vit/image/image_file.h"

namespace vit::app {
namespace {

constexpr Where kWhere{"decoding processes", ErrorKind::io};
constexpr std::size_t kPixelBytes = std::size_t{256} << 20;  // room of a place; taken as it is used
constexpr std::size_t kMaxProcesses = 64;
constexpr int kMostReplaced = 20;  // processes of one task

[[noreturn]] void fail_errno(const std::string& what) {
  const int error = errno;
  fail(kWhere, what, ": ", std::strerror(error));
}

/// Whole pages, so that the memory of either part can be given back.
std::size_t whole_pages(std::size_t bytes) {
  constexpr std::size_t kPage = 4096;
  return (bytes + kPage - 1) / kPage * kPage;
}

/// A place and the file of its memory.
struct SharedPlace : DecodePlace {
  int memory_file = -1;

  explicit SharedPlace(std::size_t max_file_bytes) {
    file_bytes = whole_pages(max_file_bytes);
    pixel_bytes = kPixelBytes;
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) fail_errno("no sockets");
    server_socket = ends[0];
    socket = ends[1];
    memory_file = ::memfd_create("vit-decode", MFD_CLOEXEC);
    if (memory_file < 0 || ::ftruncate(memory_file, static_cast<off_t>(file_bytes + pixel_bytes)) != 0)
      fail_errno("no shared memory");
    void* const mapped = ::mmap(nullptr, file_bytes + pixel_bytes, PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_NORESERVE, memory_file, 0);
    if (mapped == MAP_FAILED) fail_errno("no shared memory");
    memory = static_cast<std::byte*>(mapped);
  }

  /// What a task used is zero again: no other task finds it. A little of it stays in memory for the next one.
  void clear(std::size_t used_of_file, std::size_t used_of_pixels) const {
    clear_part(0, std::min(used_of_file, file_bytes));
    clear_part(file_bytes, std::min(used_of_pixels, pixel_bytes));
  }

 private:
  void clear_part(std::size_t begin, std::size_t used) const {
    constexpr std::size_t kKeptBytes = std::size_t{1} << 20;
    constexpr int kHole = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    const bool stays = used <= kKeptBytes || ::fallocate(memory_file, kHole, static_cast<off_t>(begin),
                                                         static_cast<off_t>(whole_pages(used))) != 0;
    if (stays) std::memset(memory + begin, 0, used);
  }
};

}  // namespace

struct DecodePool::Parts {
  std::vector<SharedPlace> places;
  std::vector<DecodePlace> worker_places;
  std::vector<std::uint64_t> numbers;  // of the last task, per place
  std::unique_ptr<Confinement> confinement;
  int control = -1;
  pid_t supervisor = -1;
  std::atomic<std::size_t> num_restarts{0};
  std::atomic<bool> is_ended{false};
  std::thread watcher;

  /// Whether the supervisor has closed its end within `milliseconds`.
  bool is_closed(int milliseconds) const {
    pollfd waited{.fd = control, .events = POLLRDHUP, .revents = 0};
    return ::poll(&waited, 1, milliseconds) > 0 && (waited.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
  }

  /// The next reply at a place; nothing at the deadline.
  std::optional<DecodeReply> receive(const SharedPlace& place, Clock::time_point deadline) const {
    while (true) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      pollfd waited{.fd = place.server_socket, .events = POLLIN, .revents = 0};
      const int ready = ::poll(&waited, 1, static_cast<int>(std::clamp<std::int64_t>(left, 0, 3'600'000)));
      if (ready < 0 && errno == EINTR) continue;
      if (ready == 0) return std::nullopt;
      DecodeReply reply;
      const ssize_t count = ::read(place.server_socket, &reply, sizeof reply);
      if (count < 0 && errno == EINTR) continue;
      VIT_CHECK(count != 0, kWhere, "the processes that decode are gone");
      if (count == static_cast<ssize_t>(sizeof reply)) return reply;
    }
  }

  FilePixels pixels_of(const SharedPlace& place, const DecodeReply& reply) const {
    const bool fits = reply.channels > 0 && reply.channels <= kMaxChannels && reply.height > 0 &&
                      reply.width > 0 && reply.height <= kPixelBytes &&
                      reply.width <= kPixelBytes / reply.height / (reply.channels * sizeof(float));
    VIT_CHECK(fits, kWhere, "a process gave pixels of ", reply.height, " x ", reply.width);
    FilePixels out{.pixels = Tensor<float>(Shape{reply.channels, reply.height, reply.width}),
                   .image_size = {reply.image_height, reply.image_width}};
    std::memcpy(out.pixels.data(), place.memory + place.file_bytes,
                out.pixels.num_elements() * sizeof(float));
    return out;
  }

  [[noreturn]] void fail_as(const SharedPlace& place, const DecodeReply& reply) const {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(reply.text_bytes, kMaxFailureText));
    const std::string text(reinterpret_cast<const char*>(place.memory + place.file_bytes), count);
    const auto kind = reply.error_kind <= static_cast<std::uint32_t>(ErrorKind::mismatch)
                          ? static_cast<ErrorKind>(reply.error_kind)
                          : ErrorKind::format;
    fail(Where{"image", kind}, text);
  }
};

DecodePool::DecodePool(std::span<const std::optional<Preprocessor>> preprocessors,
                       const DecodePoolOptions& options)
    : parts_(std::make_unique<Parts>()) {
  Parts& parts = *parts_;
  internal::open_decoders();  // once for all processes, for which a folder of libraries may be closed
  if (options.confined) parts.confinement = std::make_unique<Confinement>();
  const std::size_t count = std::clamp<std::size_t>(options.processes, 1, kMaxProcesses);
  parts.places.reserve(count);
  for (std::size_t i = 0; i < count; ++i) {
    parts.places.emplace_back(options.max_file_bytes);
    parts.worker_places.push_back(parts.places.back());
  }
  parts.numbers.resize(count);
  int control[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) fail_errno("no sockets");
  const pid_t server = ::getpid();
  parts.supervisor = ::fork();
  if (parts.supervisor < 0) fail_errno("no process");
  if (parts.supervisor == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != server) ::_exit(1);
    ::close(control[0]);
    for (const SharedPlace& place : parts.places) ::close(place.server_socket);
    supervise(parts.worker_places, control[1], parts.confinement.get(), preprocessors);
  }
  ::close(control[1]);
  parts.control = control[0];
  for (const SharedPlace& place : parts.places) ::close(place.socket);
}

void DecodePool::watch(std::function<void()> lost) {
  parts_->watcher = std::thread([parts = parts_.get(), lost = std::move(lost)] {
    while (!parts->is_closed(/*milliseconds=*/3'600'000)) {
    }
    if (!parts->is_ended) lost();
  });
}

bool DecodePool::is_alive() const noexcept {
  return !parts_->is_closed(0);
}

void DecodePool::end() noexcept {
  parts_->is_ended = true;
  ::shutdown(parts_->control, SHUT_RDWR);
}

DecodePool::~DecodePool() {
  end();
  if (parts_->watcher.joinable()) parts_->watcher.join();
  ::close(parts_->control);
  for (const SharedPlace& place : parts_->places) {
    ::close(place.server_socket);
    ::munmap(place.memory, place.file_bytes + place.pixel_bytes);
    ::close(place.memory_file);
  }
  ::waitpid(parts_->supervisor, nullptr, 0);
}

std::size_t DecodePool::size() const noexcept {
  return parts_->places.size();
}

std::size_t DecodePool::num_restarts() const noexcept {
  return parts_->num_restarts.load();
}

FilePixels DecodePool::decode(std::size_t index, std::string_view file, DecodeTask task,
                              Clock::time_point deadline) {
  const SharedPlace& place = parts_->places[index];
  VIT_CHECK(file.size() <= place.file_bytes, (Where{"image", ErrorKind::unsupported}), "a file of ",
            file.size(), " bytes; the server takes ", place.file_bytes);
  struct Cleared {
    const SharedPlace& place;
    std::size_t of_file, of_pixels;
    ~Cleared() { place.clear(of_file, of_pixels); }
  } cleared{place, file.size(), place.pixel_bytes};
  std::memcpy(place.memory, file.data(), file.size());
  task.file_bytes = file.size();
  bool is_taken = false, is_late = false;
  const auto hand_over = [&] {
    task.number = ++parts_->numbers[index];
    is_taken = false;
    if (::send(place.server_socket, &task, sizeof task, MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof task))
      fail_errno("the processes that decode are gone");
  };
  hand_over();
  for (int num_ended = 0, num_replaced = 0;;) {
    const std::optional<DecodeReply> reply = parts_->receive(place, deadline);
    if (!reply) {  // its end is waited for: only then the memory belongs to this thread again
      VIT_CHECK(!is_late, kWhere, "a process does not end");
      is_late = true;
      deadline = Clock::now() + std::chrono::seconds(10);
      const auto order = static_cast<std::uint8_t>(index);
      if (::send(parts_->control, &order, 1, MSG_NOSIGNAL) != 1) fail_errno("the supervisor is gone");
      continue;
    }
    if (reply->kind == DecodeReply::Kind::ended) {
      VIT_CHECK(!is_late, (Where{"image", ErrorKind::unsupported}), "decoding took too long");
      if (WIFEXITED(reply->status) && WEXITSTATUS(reply->status) == kWantsFreshProcess) {
        hand_over();
        continue;
      }
      ++parts_->num_restarts;
      // A process that took the task and ended may have ended of it. One that did not take it may have read
      // it all the same: it is handed over again, and replies to an earlier number are passed over.
      VIT_CHECK(++num_replaced < kMostReplaced, kWhere, "processes that decode do not stay");
      VIT_CHECK(!is_taken || ++num_ended < 2, (Where{"image", ErrorKind::format}),
                "the process that decoded it ended by signal ",
                WIFSIGNALED(reply->status) ? WTERMSIG(reply->status) : 0, "; damaged?");
      hand_over();
      continue;
    }
    if (reply->number != task.number) continue;
    if (reply->kind == DecodeReply::Kind::taken) is_taken = true;
    if (is_late) continue;
    if (reply->kind == DecodeReply::Kind::pixels) {
      FilePixels out = parts_->pixels_of(place, *reply);
      // another process may have written more before it ended
      if (num_replaced == 0) cleared.of_pixels = out.pixels.num_elements() * sizeof(float);
      return out;
    }
    if (reply->kind == DecodeReply::Kind::outside)
      return {.pixels = {}, .image_size = {reply->image_height, reply->image_width}};
    if (reply->kind == DecodeReply::Kind::failure) parts_->fail_as(place, *reply);
  }
}

}  // namespace vit::app
