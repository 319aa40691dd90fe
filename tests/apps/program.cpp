#include "tests/apps/program.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <thread>

#include "apps/vit/inputs/npy.h"
#include "tests/support/shared_data.h"
#include "vit/base/error.h"
#include "vit/io/source_file.h"
#include "vit/io/zip_archive.h"

namespace vit::test {
using namespace internal;
namespace {

namespace fs = std::filesystem;

std::vector<std::string> merged_environment(const std::map<std::string, std::string>& changes) {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (!changes.contains(text.substr(0, text.find('=')))) out.push_back(text);
  }
  for (const auto& [name, value] : changes) out.push_back(name + "=" + value);
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

std::size_t count_lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Whether a bar of --progress always counts at least one input as done.
bool shows_progress(const std::string& err) {
  for (std::size_t at = err.find('/'); at != std::string::npos; at = err.find('/', at + 1)) {
    const std::size_t space = err.find_last_of(' ', at);
    const std::string done = space == std::string::npos ? "" : err.substr(space + 1, at - space - 1);
    if (done.find_first_not_of("0123456789") == std::string::npos &&
        done.find_first_not_of('0') != std::string::npos)
      return true;
  }
  return false;
}

/// The exit code that a shell reports.
int wait_for(pid_t process, const std::string& out_path, const std::string& err_path,
             const RunOptions& options) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  const auto deadline = start + std::chrono::minutes(2);
  const auto is_due = [&] {
    if (options.signal_after_lines > 0)
      return count_lines(read_text(out_path)) >= static_cast<std::size_t>(options.signal_after_lines);
    if (options.signal_at_progress) return shows_progress(read_text(err_path));
    if (options.signal_when) return options.signal_when();
    return options.signal_after.count() > 0 && Clock::now() - start >= options.signal_after;
  };
  bool is_signalled = false;
  int status = 0;
  while (::waitpid(process, &status, WNOHANG) == 0) {
    if (!is_signalled && is_due()) {
      ::kill(process, options.signal);
      is_signalled = true;
    }
    if (Clock::now() > deadline) {
      ::kill(process, SIGKILL);
      ::waitpid(process, &status, 0);
      FAIL("the program did not end within two minutes");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

std::string program_path() {
  return VIT_TEST_PROGRAM;
}

bool is_built(std::string_view ring) {
  constexpr std::string_view kRings = "," VIT_TEST_RINGS ",";
  return kRings.find("," + std::string(ring) + ",") != kRings.npos;
}

bool is_command_built(std::string_view command) {
  for (const std::string_view word : {"depth", "segment", "detect", "pose"})
    if (command == word) return is_built("dense");
  for (const std::string_view word : {"search", "duplicates"})
    if (command == word) return is_built("index");
  for (const std::string_view word : {"anomaly", "fit", "index", "show", "serve"})
    if (command == word) return is_built(word);
  return true;
}

std::size_t RunResult::num_errors() const {
  return count_lines(err);
}

pid_t start_vit(const std::vector<std::string>& arguments,
                const std::map<std::string, std::string>& environment, const std::string& out_path,
                const std::string& err_path) {
  std::vector<std::string> command{VIT_TEST_PROGRAM};
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::vector<std::string> merged = merged_environment(environment);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out_path.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, err_path.c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t process = 0;
  const int error = ::posix_spawnp(&process, command.front().c_str(), &files, nullptr,
                                   pointers(command).data(), pointers(merged).data());
  posix_spawn_file_actions_destroy(&files);
  REQUIRE_MESSAGE(error == 0, "cannot start ", command.front());
  return process;
}

RunResult run_vit(const std::vector<std::string>& arguments, const RunOptions& options) {
  const TestFolder folder;
  write_text(folder / "in", options.standard_input);
  std::vector<std::string> command = options.wrapper;
  command.push_back(VIT_TEST_PROGRAM);
  command.insert(command.end(), arguments.begin(), arguments.end());
  std::map<std::string, std::string> changed = options.environment;
  // Leaks are looked for by a process of its own, which a confined one cannot have.
  if (std::ranges::find(arguments, "--sandbox") != arguments.end())
    changed.emplace("ASAN_OPTIONS", "detect_leaks=0");
  std::vector<std::string> environment = merged_environment(changed);

  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  const std::string in = options.standard_input_path.empty() ? folder / "in" : options.standard_input_path;
  posix_spawn_file_actions_addopen(&files, STDIN_FILENO, in.c_str(), O_RDONLY, 0);
  const std::string out = options.standard_output.empty() ? folder / "out" : options.standard_output;
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, out.c_str(), O_WRONLY | O_CREAT, 0600);
  posix_spawn_file_actions_addopen(&files, STDERR_FILENO, (folder / "err").c_str(), O_WRONLY | O_CREAT, 0600);
  pid_t process = 0;
  // Tests that a shell runs in the background have been started with SIGINT ignored.
  const auto former = ::signal(options.signal, options.ignores_signal ? SIG_IGN : SIG_DFL);
  const int error = ::posix_spawnp(&process, command.front().c_str(), &files, nullptr,
                                   pointers(command).data(), pointers(environment).data());
  if (former != SIG_ERR) ::signal(options.signal, former);
  posix_spawn_file_actions_destroy(&files);
  REQUIRE_MESSAGE(error == 0, "cannot start ", command.front());
  RunResult result;
  result.exit_code = wait_for(process, folder / "out", folder / "err", options);
  result.out = read_text(folder / "out");
  result.err = read_text(folder / "err");
  return result;
}

void write_picture(const std::string& path, std::size_t height, std::size_t width, unsigned seed) {
  std::string bytes = "P6\n" + std::to_string(width) + " " + std::to_string(height) + "\n255\n";
  for (std::size_t y = 0; y < height; ++y) {
    for (std::size_t x = 0; x < width; ++x) {
      bytes += static_cast<char>((x * 7 + seed * 31) & 0xFF);
      bytes += static_cast<char>((y * 5 + x * seed) & 0xFF);
      bytes += static_cast<char>(((x ^ y) * 3 + seed * 17) & 0xFF);
    }
  }
  write_text(path, bytes);
}

void write_npy(const std::string& path, TensorView<const float> values) {
  std::vector<std::size_t> shape;
  for (std::size_t i = 0; i < values.rank(); ++i) shape.push_back(values.dim(i));
  const std::span<const float> flat = values.flat();
  write_text(path, app::npy_header("<f4", shape) +
                       std::string(reinterpret_cast<const char*>(flat.data()), flat.size_bytes()));
}

std::vector<float> NpyArray::floats() const {
  REQUIRE(descr == "<f4");
  std::vector<float> out(bytes.size() / sizeof(float));
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

std::vector<std::string> NpyArray::strings() const {
  REQUIRE(descr.starts_with("<U"));
  const std::size_t width = std::stoul(descr.substr(2));
  std::vector<std::string> out;
  for (std::size_t begin = 0; begin < bytes.size(); begin += 4 * width) {
    std::string value;
    for (std::size_t i = 0; i < width && bytes[begin + 4 * i] != '\0'; ++i) value += bytes[begin + 4 * i];
    out.push_back(value);
  }
  return out;
}

NpyArray parse_npy(std::string_view file) {
  REQUIRE(file.starts_with(std::string_view("\x93NUMPY\x01\x00", 8)));
  const std::size_t header_bytes =
      static_cast<unsigned char>(file[8]) + 256u * static_cast<unsigned char>(file[9]);
  REQUIRE((10 + header_bytes) % 64 == 0);
  const app::NpyHeader header = app::parse_npy_header(file.substr(10, header_bytes));
  CHECK(!header.fortran_order);
  return {header.descr, header.shape, std::string(file.substr(10 + header_bytes))};
}

std::map<std::string, NpyArray> read_npz(const std::string& path) {
  const SourceFile file(path, "test");
  std::map<std::string, NpyArray> out;
  for (const auto& [name, record] : open_zip(file, "test")) {
    REQUIRE(name.ends_with(".npy"));
    const std::vector<std::byte> bytes = record.bytes.copy();
    out[name.substr(0, name.size() - 4)] =
        parse_npy({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  }
  return out;
}

std::string golden_model(const std::string& name) {
  return data_path("golden/models/" + name).string();
}

std::string repeated_line(const std::string& line, std::size_t count) {
  std::string out;
  for (std::size_t i = 0; i < count; ++i) out += line + "\n";
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

/// Command and model, followed by the arguments.
std::vector<std::string> with_model(const std::string& command, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {command, "--model", golden_model("rope-axial"), "--threads", "1"});
  return arguments;
}

}  // namespace vit::test
