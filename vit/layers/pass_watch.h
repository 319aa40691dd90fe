// PassWatch: progress and cancellation of forward passes.
#pragma once

#include <cstddef>
#include <functional>
#include <utility>

namespace vit::internal {

/// Thrown out of a pass that is cancelled; never leaves the library.
struct PassCancelled {};

/// Follows the passes of one call. Used only by the caller's thread.
class PassWatch {
 public:
  /// `on_progress` gets the number of computed images, including fractions; `is_cancelled` is called to check
  /// for cancellation, as long as no completed image would be lost. Both may be empty.
  PassWatch(std::function<void(double images)> on_progress, std::function<bool()> is_cancelled)
      : on_progress_(std::move(on_progress)), is_cancelled_(std::move(is_cancelled)) {}

  /// Starts a pass over `num_images` images, which reports its blocks.
  void begin(std::size_t num_images) { num_in_pass_ = num_images; }
  /// Reports that `done` of `count` blocks of this pass are computed. Throws PassCancelled.
  void add_block(std::size_t done, std::size_t count) {
    report(static_cast<double>(num_in_pass_) * static_cast<double>(done) / static_cast<double>(count));
    if (num_images_ == 0 && done < count && is_cancelled_ && is_cancelled_()) throw PassCancelled();
  }
  /// Reports `num_images` completed images.
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
