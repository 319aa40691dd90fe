// Pass: shared by all layers of one forward pass.
#pragma once

#include <cstddef>

#include "vit/base/run_limits.h"
#include "vit/layers/activations.h"
#include "vit/layers/pass_watch.h"
#include "vit/layers/stage_timer.h"

namespace vit::internal {

/// Rows that a thread takes at a time in work other than products of matrices.
inline constexpr std::size_t kTaskRows = 16;

struct Pass {
  Activations& activations;
  int threads = 1;                    // 0 = all
  StageTimes* times = nullptr;        // where layers add their time; null = nowhere
  PassWatch* watch = nullptr;         // follows the blocks; null = none
  const RunLimits* limits = nullptr;  // end the pass between two blocks; null = none
};

}  // namespace vit::internal
