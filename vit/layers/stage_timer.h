// Measures the time of the stages of a forward pass, when enabled.
#pragma once

#include <chrono>
#include <cstddef>

#include "vit/base/task_recorder.h"
#include "vit/outputs.h"

namespace vit::internal {

/// Adds its own lifetime to one stage, which is the label of its loops; does nothing without `times`.
class StageTimer {
 public:
  StageTimer(StageTimes* times, Stage stage) : times_(times), stage_(stage) {
    if (!times_) return;
    label_before_ = set_loop_label(static_cast<int>(stage));
    start_ = std::chrono::steady_clock::now();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;
  ~StageTimer() {
    if (!times_) return;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    times_->seconds[static_cast<std::size_t>(stage_)] += passed.count();
    set_loop_label(label_before_);
  }

 private:
  StageTimes* times_;
  Stage stage_;
  int label_before_ = -1;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace vit::internal
