// Runs the program `vit` as a user would: arguments in, exit code and both outputs out. And a folder for its
// files.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "vit/base/tensor.h"

namespace vit::test {

struct RunResult {
  int exit_code = 0;  // 128 + signal where one ended the process
  std::string out;
  std::string err;

  /// Lines of stderr.
  std::size_t num_errors() const;
};

struct RunOptions {
  std::string standard_input{};
  std::string standard_input_path{};  // what is opened instead
  std::string standard_output{};      // a file that takes the place of RunResult::out
  std::map<std::string, std::string> environment{};
  std::chrono::milliseconds signal_after{};  // sends `signal` then; 0 = never
  std::function<bool()> signal_when{};       // sends `signal` once this holds
  bool signal_at_progress = false;           // sends `signal` once --progress always counts an input
  int signal = 9;                            // SIGKILL
  int signal_after_lines = 0;                // sends `signal` once stdout holds this many lines; 0 = never
  bool ignores_signal = false;               // started with `signal` ignored, as by nohup
  std::vector<std::string> wrapper{};        // a command that runs the program, whose command line follows
};

/// The program that run_vit() starts.
std::string program_path();
/// Whether the ring is part of this build: "dense", "index", ...
bool is_built(std::string_view ring);
/// Whether a command is: those of the core always are.
bool is_command_built(std::string_view command);

/// Runs the program with stdout and stderr in files. Ends it, and fails the test, after two minutes.
RunResult run_vit(const std::vector<std::string>& arguments, const RunOptions& options = {});

/// Starts the program and returns; both outputs go to files. The caller waits for the process.
pid_t start_vit(const std::vector<std::string>& arguments,
                const std::map<std::string, std::string>& environment, const std::string& out_path,
                const std::string& err_path);

/// A temporary folder whose paths are strings, as arguments of the program are.
class TestFolder : public TemporaryFolder {
 public:
  /// Absolute path of a name in the folder.
  std::string operator/(const std::string& name) const { return TemporaryFolder::operator/(name).string(); }
  std::string path() const { return TemporaryFolder::path().string(); }
};

/// Writes a binary PPM image with a pattern that `seed` chooses.
void write_picture(const std::string& path, std::size_t height, std::size_t width, unsigned seed);
/// Writes pixels as .npy.
void write_npy(const std::string& path, TensorView<const float> values);

/// One array of a .npy file or of a member of a .npz file.
struct NpyArray {
  std::string descr;
  std::vector<std::size_t> shape;
  std::string bytes;

  std::vector<float> floats() const;
  std::vector<std::string> strings() const;  // of a <U array of ASCII
};
NpyArray parse_npy(std::string_view file);
/// Members of a .npz file by name, without ".npy".
std::map<std::string, NpyArray> read_npz(const std::string& path);

/// A text of `count` lines that are all the same: one input again and again.
std::string repeated_line(const std::string& line, std::size_t count);
/// Lines of a text, without their ends.
std::vector<std::string> lines_of(const std::string& text);
/// Command and a small model, followed by the arguments.
std::vector<std::string> with_model(const std::string& command, std::vector<std::string> arguments);

/// A tiny model of data/golden/models.
std::string golden_model(const std::string& name);

}  // namespace vit::test
