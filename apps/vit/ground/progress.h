// Progress on stderr: a bar on terminals, one line for each failed input.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace vit::app {

enum class ProgressMode { automatic, always, never };  // automatic: if stderr is a terminal

class Progress {
 public:
  /// `total` images, or items called `unit`, are to be processed; `what` names the work, "embed".
  Progress(std::string what, std::size_t total, ProgressMode mode, std::string unit = "images");
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void add_done(std::size_t count);
  /// Shows progress that counts images partly done: `ended` counts those done and failed.
  void show_partial(double ended);
  /// One line "vit: NAME: CAUSE".
  void add_failed(std::string_view name, std::string_view cause);
  /// Removes the bar and prints `summary` if progress is shown.
  void finish(std::string_view summary);

  std::size_t num_done() const noexcept { return num_done_; }
  std::size_t num_failed() const noexcept { return num_failed_; }
  /// What failed, and why, of the first thousand.
  const std::vector<std::pair<std::string, std::string>>& failures() const noexcept { return failures_; }
  double seconds() const;
  /// Removes the bar, so that other text can be printed; it reappears with the next count.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  void draw();

  std::string what_;
  std::string unit_;
  std::size_t total_;
  bool shown_;
  bool drawn_ = false;
  std::size_t num_done_ = 0;
  std::size_t num_failed_ = 0;
  std::vector<std::pair<std::string, std::string>> failures_;
  double partial_ = 0;  // images done, failed and in progress
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_draw_{};
};

/// The message of a library Error is "[operation] NAME: cause"; if the name is already printed, only the
/// cause is kept.
std::string_view without_repeated_name(std::string_view name, std::string_view cause);

/// "vit: NAME: CAUSE" on stderr, always on one line. An empty name is left out; a cause that
/// starts with the operation and the name, like messages of the library, is reduced to the rest.
void print_failure(std::string_view name, std::string_view cause);

}  // namespace vit::app
