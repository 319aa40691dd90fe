// --sandbox: the same results, and what a confined process can no longer do. Where the kernel or the build
// offers no sandbox, the program says so instead of going on without.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "apps/vit/ground/sandbox.h"
#include "tests/apps/program.h"
#include "vit/base/error.h"

using namespace vit;
using namespace vit::test;

namespace {

/// Runs `work` confined, in a process of its own; its result, or -1 where there is no sandbox.
int run_confined(const app::SandboxRules& rules, const std::function<int()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    try {
      app::enter_sandbox(rules);
    } catch (const Error& error) {
      ::_exit(error.kind() == ErrorKind::unsupported ? 200 : 201);
    }
    ::_exit(work());
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  const int code = WEXITSTATUS(status);
  REQUIRE(code != 201);
  return code == 200 ? -1 : code;
}

bool opens(const std::string& path, int flags) {
  const int descriptor = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (descriptor >= 0) ::close(descriptor);
  return descriptor >= 0;
}

/// What of `work` went otherwise than expected, as its number from 1; 0 if nothing did.
int first_failure(const std::vector<bool>& checks) {
  for (std::size_t i = 0; i < checks.size(); ++i) {
    if (!checks[i]) return static_cast<int>(i) + 1;
  }
  return 0;
}

}  // namespace

TEST_CASE("apps: a confined process reads its inputs, writes next to its outputs, and does nothing else") {
  const TestFolder folder;
  std::filesystem::create_directories(folder / "in");
  std::filesystem::create_directories(folder / "out");
  std::filesystem::create_directories(folder / "other");
  for (const char* const name : {"in/a", "other/secret", "linked"}) write_text(folder / name, "text");
  std::filesystem::create_symlink(folder / "linked", folder / "in/link");
  const pid_t tests = ::getpid();
  const int outcome =
      run_confined({.reads = {folder / "in", ""}, .outputs = {folder / "out/new/result.npz"}}, [&] {
        bool has_thread = false;
        std::thread([&] { has_thread = true; }).join();
        return first_failure({
            opens(folder / "in/a", O_RDONLY),             // 1
            opens(folder / "in/link", O_RDONLY),          // 2: what a link there leads to
            opens(folder / "out/x", O_WRONLY | O_CREAT),  // 3
            ::rename((folder / "out/x").c_str(), (folder / "out/y").c_str()) == 0,
            ::truncate((folder / "out/y").c_str(), 0) == 0 ||
                errno == EPERM,  // 5: by descriptor on old kernels
            ::unlink((folder / "out/y").c_str()) == 0,
            has_thread,                                 // 7
            !opens(folder / "other/secret", O_RDONLY),  // 8
            !opens("/etc/passwd", O_RDONLY),
            !opens(folder / "in/a", O_WRONLY),  // 10
            !opens(folder / "in/a", O_RDONLY | O_TRUNC),
            !opens(folder / "in/new", O_WRONLY | O_CREAT),  // 12
            ::truncate((folder / "in/a").c_str(), 0) != 0,
            ::rename((folder / "in/a").c_str(), (folder / "out/a").c_str()) != 0,  // 14
            ::unlink((folder / "in/a").c_str()) != 0,
            ::socket(AF_INET, SOCK_STREAM, 0) < 0,  // 16
            ::socket(AF_UNIX, SOCK_DGRAM, 0) < 0,
            ::fork() < 0,  // 18
            ::execl("/bin/true", "true", nullptr) < 0,
            ::kill(tests, 0) < 0,  // 20
        });
      });
  if (outcome < 0) {
    MESSAGE("no sandbox here");
    return;
  }
  CHECK(outcome == 0);  // the number of the first that went wrong
  CHECK(read_text(folder / "in/a") == "text");
}

TEST_CASE("apps: --sandbox changes no result") {
  const TestFolder folder;
  for (unsigned i = 0; i < 4; ++i) write_picture(folder / ("p" + std::to_string(i) + ".ppm"), 30 + i, 40, i);
  write_text(folder / "broken.png", "no image");
  std::filesystem::create_directory(folder / "out");
  const auto with_flag = [](std::vector<std::string> arguments) {
    arguments.emplace_back("--sandbox");
    return arguments;
  };
  const std::vector<std::string> classify = with_model("classify", {folder.path()});
  const RunResult open = run_vit(classify), confined = run_vit(with_flag(classify));
  if (confined.out.empty()) {
    CHECK(confined.exit_code == 1);
    CHECK(confined.err.starts_with("vit: --sandbox: "));
    return;
  }
  CHECK(confined.exit_code == 1);  // broken.png
  CHECK(confined.out == open.out);
  CHECK(confined.err == open.err);

  const std::string image = folder / "p0.ppm";
  for (const std::string name : {"x.npz", "x.jsonl", "x/", "x.safetensors"}) {
    CAPTURE(name);
    CHECK(run_vit(with_flag(with_model("embed", {image, "--output", folder / ("out/" + name)}))).exit_code ==
          0);
  }
  CHECK(run_vit(with_model("embed", {image, "--output", folder / "y.npz"})).exit_code == 0);
  CHECK(read_text(folder / "out/x.npz") == read_text(folder / "y.npz"));
  CHECK(run_vit(with_flag(with_model("preprocess", {image, "--output", folder / "out/p.npy"}))).exit_code ==
        0);
  CHECK(run_vit(with_flag({"classify", "-", "--model", golden_model("rope-axial")}),
                {.standard_input = image + "\n"})
            .exit_code == 0);
}

TEST_CASE("apps: --sandbox passes on interrupts and failures") {
  const TestFolder folder;
  const RunResult missing = run_vit(with_model("classify", {folder / "missing.jpg", "--sandbox"}));
  CHECK(missing.exit_code == 1);
  CHECK(missing.num_errors() == 1);
  CHECK(run_vit({"classify", "--sandbox", "--model", folder / "none", "x.jpg"}).exit_code == 1);
  constexpr std::size_t kCopies = 4000;
  write_picture(folder / "a.ppm", 300, 300, 1);
  const std::string list = repeated_line(folder / "a.ppm", kCopies);
  RunOptions terminated;  // the signal comes to the process that waits
  terminated.standard_input = list;
  terminated.signal = SIGTERM;
  terminated.signal_after_lines = 5;
  const RunResult classified = run_vit(with_model("classify", {"--sandbox", "-"}), terminated);
  if (missing.err.starts_with("vit: --sandbox: ")) return;  // there is none here
  CHECK(classified.exit_code == 128 + SIGTERM);
  CHECK(classified.err.empty());
  CHECK(lines_of(classified.out).size() < 5 * kCopies);
}
