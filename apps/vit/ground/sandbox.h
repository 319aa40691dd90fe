// --sandbox: hostile input that exploits a decoder controls a process that can read its inputs, write next to
// its outputs, and nothing else: no other file, no network, no other program.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

namespace vit::app {

/// The files that a command may still open. Nonexistent and empty paths are ignored.
struct SandboxRules {
  std::vector<std::filesystem::path> reads;  // files, or folders with all below them
  std::vector<std::filesystem::path>
      outputs;  // files and folders to be written, with all contents of their folders
};

/// The sandbox that processes enter, created once for many. Throws Error of kind unsupported if the kernel
/// or the build offers no sandbox.
class Confinement {
 public:
  Confinement();
  ~Confinement();
  Confinement(const Confinement&) = delete;
  Confinement& operator=(const Confinement&) = delete;

  /// Confines this thread and those it starts from now on; call it while it is the only thread.
  void enter(const SandboxRules& rules) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Continues in a single-threaded child process confined by Landlock (files, TCP, signals) and seccomp
/// (system calls); this process waits for it and ends with its exit status. Call it before there is another
/// thread to be confined and before a file is written. Throws Error of kind unsupported if the kernel or
/// the build offers no sandbox.
void enter_sandbox(const SandboxRules& rules);

}  // namespace vit::app
