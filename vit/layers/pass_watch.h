// PassWatch: how far forward passes are, told to somebody who may end them.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace vit::internal {

/// Thrown out of a pass that its watcher wants to end; never leaves the library.
struct PassCancelled {};

/// Follows the passes of one call. Serves one thread, that of the caller.
class PassWatch {
 public:
  /// `on_progress` is told how many images are computed, the last ones in part; `is_cancelled` is asked
  /// whether to end, as long as no image is whole that would be lost. Both may be empty.
  PassWatch(std::function<void(double images)> on_progress, std::function<bool()> is_cancelled)
      : on_progress_(std::move(on_progress)), is_cancelled_(std::move(is_cancelled)) {}

  /// A pass over `num_images` images begins, which reports its blocks.
  void begin(std::size_t num_images) { num_in_pass_ = num_images; }
  /// Of the blocks of this pass, `done` of `count` are. Throws PassCancelled.
  void add_block(std::size_t done, std::size_t count) {
    report(static_cast<double>(num_in_pass_) * static_cast<double>(done) / static_cast<double>(count));
    if (num_images_ == 0 && done < count && is_cancelled_ && is_cancelled_()) throw PassCancelled();
  }
  /// `num_images` images are whole.
  void add_images(std::size_t num_images) {
    num_images_ += num_images;
    report(0);
  }

 private:
  void report(double partial) const {
    if (on_progress_) on_progress_(static_cast<double>(num_images_) + partial);
  }

  std::function<void(double)> on_progress_;
  std::function<bool()> is_cancelled_;
  std::size_t num_images_ = 0;
  std::size_t num_in_pass_ = 0;
};

}  // namespace vit::internal
