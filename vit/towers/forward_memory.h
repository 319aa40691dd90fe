// ForwardMemory: what passes of one session need again and again.
#pragma once

#include <vector>

#include "vit/dense/dense_memory.h"
#include "vit/layers/activations.h"
#include "vit/layers/pass_watch.h"
#include "vit/layers/sequences.h"
#include "vit/layers/stage_timer.h"
#include "vit/outputs.h"

namespace vit::internal {

/// The sequences of each block of a model whose tokens attend in windows, of some images.
struct WindowSequences {
  std::vector<std::size_t> starts;   // of the windows of all images
  std::vector<Sequences> of_blocks;  // windows or images
};

/// Working memory of forward passes, grown to the largest one seen; serves one pass at a time.
class ForwardMemory {
 public:
  /// What the images of one thread, or of all threads together, need on their way.
  struct Lane {
    Activations activations;
    StageTimes times;
    WindowSequences windows;
  };

  std::size_t bytes() const noexcept {
    std::size_t bytes = 0;
    for (const Lane& lane : lanes) bytes += lane.activations.capacity_bytes();
    return bytes + dense.bytes();
  }
  /// Passes add their time per stage to `times`, which must outlive them; null = measure nothing.
  void measure_stages(StageTimes* times) noexcept { times_ = times; }

  StageTimes* times() const noexcept { return times_; }

  /// Passes tell `watch` how far they are, which must outlive them; null = nobody.
  void watch_passes(PassWatch* watch) noexcept { watch_ = watch; }
  PassWatch* watch() const noexcept { return watch_; }

  /// Where layers that work on a lane add their time.
  StageTimes* times_of(Lane& lane) const noexcept { return times_ != nullptr ? &lane.times : nullptr; }
  /// Adds `share` of what the lanes measured to the times asked for; n lanes that ran side by side had 1 / n
  /// each.
  void collect_times(double share) {
    if (times_ == nullptr) return;
    for (Lane& lane : lanes) {
      for (std::size_t i = 0; i < lane.times.seconds.size(); ++i)
        times_->seconds[i] += share * lane.times.seconds[i];
      lane.times = {};
    }
  }

  /// What a dense head needs after the blocks.
  struct Dense {
    Request request;                              // that of the tokens
    Tensor<float> pixels;                         // (B, 3, H, W), padded
    DenseMemory maps;                             // of one image
    std::vector<TensorView<const float>> tokens;  // of one image
    std::vector<TensorView<float>> outputs;       // of one image

    std::size_t bytes() const noexcept {
      return maps.capacity_bytes() + (pixels.empty() ? 0 : pixels.num_elements() * sizeof(float));
    }
  };

  std::vector<Lane> lanes = std::vector<Lane>(1);
  Dense dense;

 private:
  StageTimes* times_ = nullptr;
  PassWatch* watch_ = nullptr;
};

}  // namespace vit::internal
