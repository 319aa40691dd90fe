#include "apps/vit/rings/serve/work/decode_worker.h"

#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include "apps/vit/ground/heap.h"
#include "apps/vit/rings/serve/work/decode_link.h"
#include "vit/base/check.h"
#include "vit/image/warp_box.h"

namespace vit::app {
namespace {

constexpr int kBroken = 4;  // exit code where a process cannot go on
constexpr const char* kFileName = "image";
constexpr int kMemoryPattern = 0x5A;  // of memory that a decoder gets and does not write

bool starts_with(std::span<const std::byte> file, std::size_t at, std::string_view magic) {
  return file.size() >= at + magic.size() && std::memcmp(file.data() + at, magic.data(), magic.size()) == 0;
}

void send(int socket, const DecodeReply& reply) {
  if (::write(socket, &reply, sizeof reply) != static_cast<ssize_t>(sizeof reply)) ::_exit(kBroken);
}

/// A decoding process: takes one task after another.
class Worker {
 public:
  Worker(const DecodePlace& place, std::span<const std::optional<Preprocessor>> preprocessors)
      : place_(place), preprocessors_(preprocessors) {}

  [[noreturn]] void run() {
    while (true) {
      DecodeTask task;
      const ssize_t count = ::read(place_.socket, &task, sizeof task);
      if (count < 0 && errno == EINTR) continue;
      if (count != static_cast<ssize_t>(sizeof task) || task.file_bytes > place_.file_bytes ||
          task.model >= preprocessors_.size() || !preprocessors_[task.model])
        ::_exit(count == 0 ? 0 : kBroken);
      const std::span<const std::byte> file(place_.memory, task.file_bytes);
      bool is_safe = true;  // what the decoder does not write shows nothing
      if (needs_fresh_memory(file)) {
        if (has_decoded_) ::_exit(kWantsFreshProcess);
        // What this process has from its parent is of no image, and still not to be shown.
        is_safe = fill_taken_memory(kMemoryPattern);
      }
      has_decoded_ = true;
      send(place_.socket, {.number = task.number, .kind = DecodeReply::Kind::taken});
      send(place_.socket, decode(task, file, is_safe));
    }
  }

 private:
  DecodeReply decode(const DecodeTask& task, std::span<const std::byte> file, bool is_safe) {
    DecodeReply reply{.number = task.number, .kind = DecodeReply::Kind::pixels};
    try {
      VIT_CHECK(is_safe, Where("serve", ErrorKind::unsupported),
                "images are JPEG, PNG, GIF, BMP or WebP here: decoders of other files may show memory that "
                "they do not write, and this C library does not fill it");
      const Preprocessor& preprocessor = *preprocessors_[task.model];
      if (task.has_box) return decode_box(task, preprocessor, file);
      if (task.rules == ImageRules::thumbnail) {
        set_pixels(reply, decode_thumbnail(preprocessor, file));
        return reply;
      }
      const bool has_limits = task.least_area != 0 || task.most_area != 0;
      const FilePixels found =
          has_limits
              ? Preprocessor(with_area_limits(preprocessor.config(), {task.least_area, task.most_area}))
                    .run_bytes(file, kFileName, memory_)
          : task.rules == ImageRules::checkpoint
              ? preprocessor.run_bytes(file, kFileName, memory_)
              : run_by_immich_rules(preprocessor.config(), task.rules, file, memory_);
      set_pixels(reply, found);
    } catch (const Error& error) {
      set_failure(reply, error.message(), error.kind());
    } catch (const std::bad_alloc&) {
      set_failure(reply, "not enough memory for this image", ErrorKind::io);
    } catch (const std::exception& error) {
      set_failure(reply, error.what(), ErrorKind::format);
    }
    return reply;
  }

  /// A box of the image, which is decoded whole.
  DecodeReply decode_box(const DecodeTask& task, const Preprocessor& preprocessor,
                         std::span<const std::byte> file) const {
    DecodeReply reply{.number = task.number, .kind = DecodeReply::Kind::outside};
    const Image image = decode_bytes(file, preprocessor.decode_options(), kFileName);
    reply.image_height = image.height();
    reply.image_width = image.width();
    if (internal::is_outside(task.box, image.size())) return reply;
    reply.kind = DecodeReply::Kind::pixels;
    set_pixels(reply, {.pixels = preprocessor.run_box(image, task.box), .image_size = image.size()});
    return reply;
  }

  void set_pixels(DecodeReply& reply, const FilePixels& found) const {
    const std::size_t bytes = found.pixels.num_elements() * sizeof(float);
    VIT_CHECK(bytes <= place_.pixel_bytes, (Where{"image", ErrorKind::unsupported}), "an input of ",
              found.pixels.dim(1), " x ", found.pixels.dim(2), " pixels is more than the server takes");
    std::memcpy(place_.memory + place_.file_bytes, found.pixels.data(), bytes);
    reply.channels = found.pixels.dim(0);
    reply.height = found.pixels.dim(1);
    reply.width = found.pixels.dim(2);
    reply.image_height = found.image_size.height;
    reply.image_width = found.image_size.width;
  }

  void set_failure(DecodeReply& reply, std::string_view text, ErrorKind kind) const {
    text = text.substr(0, kMaxFailureText);
    std::memcpy(place_.memory + place_.file_bytes, text.data(), text.size());
    reply.kind = DecodeReply::Kind::failure;
    reply.error_kind = static_cast<std::uint32_t>(kind);
    reply.text_bytes = text.size();
  }

  const DecodePlace& place_;
  std::span<const std::optional<Preprocessor>> preprocessors_;
  PreprocessMemory memory_;
  bool has_decoded_ = false;
};

/// Starts the processes, and starts them again.
class Supervisor {
 public:
  Supervisor(std::span<const DecodePlace> places, int control, const Confinement* confinement,
             std::span<const std::optional<Preprocessor>> preprocessors)
      : places_(places),
        control_(control),
        confinement_(confinement),
        preprocessors_(preprocessors),
        processes_(places.size()) {}

  [[noreturn]] void run() {
    for (std::size_t i = 0; i < places_.size(); ++i) start(i);
    std::vector<pollfd> waited(places_.size() + 1);
    while (true) {
      waited[0] = {.fd = control_, .events = POLLIN, .revents = 0};
      for (std::size_t i = 0; i < places_.size(); ++i)
        waited[i + 1] = {.fd = processes_[i].descriptor, .events = POLLIN, .revents = 0};
      if (::poll(waited.data(), waited.size(), -1) < 0 && errno != EINTR) end();
      if (waited[0].revents != 0) take_orders();
      for (std::size_t i = 0; i < places_.size(); ++i) {
        if (waited[i + 1].revents != 0) start_again(i);
      }
    }
  }

 private:
  struct Process {
    pid_t id = -1;
    int descriptor = -1;  // readable once it has ended
  };

  void start(std::size_t index) {
    const pid_t supervisor = ::getpid(), child = ::fork();
    if (child == 0) become_worker(index, supervisor);
    if (child < 0) {  // memory or processes are short: others may end
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      return start(index);
    }
    const auto descriptor = static_cast<int>(::syscall(SYS_pidfd_open, child, 0));
    if (descriptor < 0) end();
    processes_[index] = {child, descriptor};
  }

  [[noreturn]] void become_worker(std::size_t index, pid_t supervisor) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != supervisor) ::_exit(kBroken);
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (i != index) ::close(places_[i].socket);
      if (processes_[i].descriptor >= 0) ::close(processes_[i].descriptor);
    }
    ::close(control_);
    try {
      if (confinement_ != nullptr) confinement_->enter({.reads = {}, .outputs = {}});
      Worker(places_[index], preprocessors_).run();
    } catch (const std::exception&) {
      ::_exit(kBroken);
    }
  }

  void start_again(std::size_t index) {
    int status = 0;
    ::waitpid(processes_[index].id, &status, 0);
    ::close(processes_[index].descriptor);
    processes_[index] = {};
    if (WIFEXITED(status) && WEXITSTATUS(status) == kBroken)  // it will not do better at once
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    start(index);
    send(places_[index].socket,
         {.number = 0, .kind = DecodeReply::Kind::ended, .status = static_cast<std::int32_t>(status)});
  }

  void take_orders() {
    std::array<std::uint8_t, 64> orders;
    const ssize_t count = ::read(control_, orders.data(), orders.size());
    if (count == 0 || (count < 0 && errno != EINTR)) end();
    for (ssize_t i = 0; i < count; ++i) {
      const std::size_t index = orders[static_cast<std::size_t>(i)];
      if (index < processes_.size()) ::kill(processes_[index].id, SIGKILL);
    }
  }

  [[noreturn]] void end() {
    for (const Process& process : processes_) {
      if (process.id > 0) ::kill(process.id, SIGKILL);
    }
    ::_exit(0);
  }

  std::span<const DecodePlace> places_;
  int control_;
  const Confinement* confinement_;
  std::span<const std::optional<Preprocessor>> preprocessors_;
  std::vector<Process> processes_;
};

/// A secret of the environment lies in the memory of every process that is forked.
void forget_environment(const char* name) {
  if (char* const value = std::getenv(name)) {
    std::memset(value, '*', std::strlen(value));
    ::unsetenv(name);
  }
}

}  // namespace

FilePixels decode_thumbnail(const Preprocessor& preprocessor, std::span<const std::byte> file) {
  const Image image = decode_bytes(file, preprocessor.decode_options(), kFileName);
  PreprocessConfig rules;
  rules.source = "thumbnail";
  rules.filter = ResizeFilter::bicubic;
  const bool is_large = std::max(image.height(), image.width()) > kThumbnailEdge;
  rules.resize = is_large ? ResizeRule::contain : ResizeRule::none;
  rules.resize_height = rules.resize_width = kThumbnailEdge;
  rules.crop = false;
  const Image small = Preprocessor(rules).crop_stage(image);
  FilePixels out{.pixels = Tensor<float>(Shape{3, small.height(), small.width()}),
                 .image_size = image.size()};
  for (std::size_t c = 0; c < 3; ++c) {
    for (std::size_t y = 0; y < small.height(); ++y) {
      float* const to = out.pixels.view()[c].row(y);
      for (std::size_t x = 0; x < small.width(); ++x) to[x] = small.row(y)[3 * x + c];
    }
  }
  return out;
}

bool needs_fresh_memory(std::span<const std::byte> file) {
  // Decoders of still images that write every byte of their rows, or whose rows vit fills itself.
  constexpr std::array<std::string_view, 4> kComplete{"\xFF\xD8\xFF", "\x89PNG", "GIF8", "BM"};
  const bool is_complete =
      std::ranges::any_of(kComplete, [&](std::string_view magic) { return starts_with(file, 0, magic); });
  return !is_complete && !(starts_with(file, 0, "RIFF") && starts_with(file, 8, "WEBP"));
}

void supervise(std::span<const DecodePlace> places, int control, const Confinement* confinement,
               std::span<const std::optional<Preprocessor>> preprocessors) {
  // Signals of a terminal or a service manager go to the whole group: the server decides when this ends.
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGPIPE}) ::signal(number, SIG_IGN);
  forget_environment("VIT_API_KEY");
  Supervisor(places, control, confinement, preprocessors).run();
}

FilePixels run_by_immich_rules(const PreprocessConfig& config, ImageRules by, std::span<const std::byte> file,
                               PreprocessMemory& memory) {
  // resize_pil and crop_pil of immich_ml/models/transforms.py: the other edge is int(ratio * size), the ratio
  // a double; the crop begins at int(edge / 2 - size / 2). Transparency is dropped, orientation ignored.
  const Image image = decode_bytes(file, {.max_pixels = config.max_pixels}, kFileName);
  const std::size_t size = config.crop ? config.crop_height : config.resize_height;
  const auto scaled = [size](std::size_t edge, std::size_t shorter) {
    return static_cast<std::size_t>(static_cast<double>(edge) / static_cast<double>(shorter) *
                                    static_cast<double>(size));
  };
  PreprocessConfig rules;
  rules.resampler = Resampler::pillow;
  const bool is_as_model = by == ImageRules::immich_model;
  rules.filter = is_as_model ? config.filter : ResizeFilter::bicubic;
  rules.resize = ResizeRule::squash;
  rules.resize_height = rules.resize_width = size;
  if (!is_as_model || config.resize != ResizeRule::squash) {
    const bool is_upright = image.width() < image.height();
    if (is_upright) rules.resize_height = scaled(image.height(), image.width());
    if (!is_upright) rules.resize_width = scaled(image.width(), image.height());
  }
  rules.crop = true;
  rules.crop_height = rules.crop_width = size;
  rules.crop_rounding = CropRounding::floor;
  rules.normalize = NormalizeRule::divide_then_normalize;
  rules.mean = config.mean;
  rules.std = config.std;
  rules.subtract_mean = config.subtract_mean;
  rules.source = "immich";
  FilePixels out{.pixels = Tensor<float>(Shape{3, size, size}), .image_size = image.size()};
  Preprocessor(rules).run(image, out.pixels, memory);
  return out;
}

}  // namespace vit::app
