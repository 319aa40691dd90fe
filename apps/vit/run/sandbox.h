// --sandbox: hostile bytes that take over a decoder find a process that can read its inputs, write beside its
// outputs, and nothing else: no other file, no network, no other program.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

namespace vit::app {

/// What a command still opens. Paths that do not exist and empty ones are passed over.
struct SandboxRules {
  std::vector<std::filesystem::path> reads;    // files, or folders with all below them
  std::vector<std::filesystem::path> outputs;  // files and folders to be written: whatever their folders hold
};

/// What processes enter a sandbox by, made once for many. Throws Error of kind unsupported where the kernel
/// or the build offers no sandbox.
class Confinement {
 public:
  Confinement();
  ~Confinement();
  Confinement(const Confinement&) = delete;
  Confinement& operator=(const Confinement&) = delete;

  /// From now on, for this thread and those that it starts: to be called while it is the only one.
  void enter(const SandboxRules& rules) const;

 private:
  struct Parts;
  std::unique_ptr<const Parts> parts_;
};

/// Goes on in a child process of one thread that is confined by Landlock (files, TCP, signals) and seccomp
/// (calls of the system); this process waits for it and ends as it ends. To be called before there is another
/// thread to be confined and before a file is written. Throws Error of kind unsupported where the kernel or
/// the build offers no sandbox.
void enter_sandbox(const SandboxRules& rules);

}  // namespace vit::app
