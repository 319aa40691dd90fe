// Where the time of a forward pass goes, stage by stage; measured only where somebody asks.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>

namespace vit {

/// norms: those before attention and MLP, with the rounding of their rows for bfloat16 and int8.
enum class Stage { patchify, embed, norms, qkv, attention, proj, mlp, head };

inline constexpr std::array<const char*, 8> kStageNames{"patchify",  "embed", "norms", "qkv",
                                                        "attention", "proj",  "mlp",   "head"};

/// Seconds of wall clock per stage, summed over passes.
struct StageTimes {
  std::array<double, kStageNames.size()> seconds{};
};

/// Adds its own lifetime to one stage; does nothing without `times`.
class StageTimer {
 public:
  StageTimer(StageTimes* times, Stage stage) : times_(times), stage_(stage) {
    if (times_) start_ = std::chrono::steady_clock::now();
  }
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;
  ~StageTimer() {
    if (!times_) return;
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start_;
    times_->seconds[static_cast<std::size_t>(stage_)] += passed.count();
  }

 private:
  StageTimes* times_;
  Stage stage_;
  std::chrono::steady_clock::time_point start_;
};

}  // namespace vit
