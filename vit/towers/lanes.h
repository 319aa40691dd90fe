// Lanes: how the work of a call is distributed. Its items, images or texts, are divided into tasks of one
// thread, which never wait for each other, and passes of all threads together over the rest:
//
//   | task | task | task | task | pass | pass |
//
// Results do not depend on the distribution.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "vit/base/parallel.h"
#include "vit/config/output_table.h"
#include "vit/layers/pass.h"
#include "vit/layers/sequences.h"
#include "vit/outputs.h"
#include "vit/towers/map_head.h"

namespace vit::internal {

/// The sequences of each block of a model whose tokens attend in windows, of some images.
struct WindowSequences {
  std::vector<std::size_t> starts;   // of the windows of all images
  std::vector<Sequences> of_blocks;  // windows or images
};

/// What masks between blocks are made with.
struct MaskMemory {
  std::unique_ptr<MapMemory> maps;   // of the head
  Tensor<float> masks;               // (Q, height, width) of an image
  std::vector<std::uint8_t> hidden;  // (B, Q, N)
};

/// Working memory of forward passes, grown to the largest one seen; serves one call at a time.
class ForwardMemory {
 public:
  /// Working memory for the items of one thread, or of all threads together.
  struct Lane {
    Activations activations;
    StageTimes times;
    WindowSequences windows;
    std::vector<float> joined;  // tokens of several blocks side by side, for the merger
    MaskMemory masks;
  };

  /// Working memory of a dense head after the blocks.
  struct Dense {
    Request request;                              // that of the tokens
    Tensor<float> pixels;                         // (B, 3, H, W), padded or cut
    std::unique_ptr<MapMemory> maps;              // of the head, for one image
    std::vector<TensorView<const float>> tokens;  // of one image
    std::vector<TensorView<float>> outputs;       // of one image
    std::vector<MapShape> shapes;                 // of the outputs
    std::vector<Tensor<float>> unwanted;          // outputs of one image that nothing requested

    std::size_t bytes() const noexcept;
  };

  std::size_t bytes() const noexcept;
  /// Passes add their time per stage to `times`, which must outlive them; null = measure nothing.
  void measure_stages(StageTimes* times) noexcept { times_ = times; }
  StageTimes* times() const noexcept { return times_; }
  /// Passes report to `watch`, which must outlive them; null = none.
  void watch_passes(PassWatch* watch) noexcept { watch_ = watch; }
  /// Passes end by `limits`, which must outlive them; null = none.
  void limit_passes(const RunLimits* limits) noexcept { limits_ = limits; }

  /// Lets the dense head use the block of the first lane, whose pass is over.
  void lend_to_dense() noexcept { dense.maps->borrow(lanes_.front().activations.lend()); }

  Dense dense;

 private:
  friend class Lanes;
  std::vector<Lane> lanes_{1};
  std::vector<std::size_t> cuts_;
  StageTimes* times_ = nullptr;
  PassWatch* watch_ = nullptr;
  const RunLimits* limits_ = nullptr;
};

/// While it lives, passes in `memory` report to `watch`.
class Watched {
 public:
  Watched(ForwardMemory& memory, PassWatch& watch) : memory_(memory) { memory_.watch_passes(&watch); }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() { memory_.watch_passes(nullptr); }

 private:
  ForwardMemory& memory_;
};

/// The lanes of one call.
class Lanes {
 public:
  /// Divides items with these rows. `threads`: 0 = all; `rows_per_pass`: of all threads together, 0 = any
  /// number.
  Lanes(const Sequences& items, int threads, std::size_t rows_per_pass, ForwardMemory& memory);

  /// Calls run(first item, number of items, Pass, Lane) for every part of the plan. A task needs activations
  /// of at most `task_shape`, and memory that prepare(Lane) reserves once per lane.
  template <typename Prepare, typename Run>
  void run(const ActivationShape& task_shape, const kernels::Arithmetic& arithmetic, Prepare&& prepare,
           Run&& run) {
    with_team(threads_, [&] {
      if (num_tasks_ != 0) {
        reserve(task_shape, arithmetic);
        for (std::size_t i = 0; i < num_threads_; ++i) prepare(memory_.lanes_[i]);
        parallel_for(num_tasks_, threads_, [&](std::size_t task, int thread) {
          const auto lane = static_cast<std::size_t>(thread);
          run(first_of(task), count_of(task), pass_of(lane, 1), memory_.lanes_[lane]);
        });
        end(first_of(num_tasks_), num_threads_);
      }
      for (std::size_t part = num_tasks_; part < num_parts(); ++part) {
        run(first_of(part), count_of(part), begin_pass(count_of(part)), memory_.lanes_.front());
        end(count_of(part), 1);
      }
    });
  }

  std::size_t num_tasks() const noexcept { return num_tasks_; }
  std::size_t num_parts() const noexcept { return memory_.cuts_.size() - 1; }
  std::size_t first_of(std::size_t part) const noexcept { return memory_.cuts_[part]; }
  std::size_t count_of(std::size_t part) const noexcept { return memory_.cuts_[part + 1] - first_of(part); }

 private:
  void reserve(const ActivationShape& task_shape, const kernels::Arithmetic& arithmetic);
  Pass pass_of(std::size_t lane, int threads) const;
  Pass begin_pass(std::size_t num_items) const;
  void end(std::size_t num_items, std::size_t num_lanes);

  ForwardMemory& memory_;
  int threads_;
  std::size_t num_threads_;
  std::size_t num_tasks_ = 0;
};

}  // namespace vit::internal
