// Progress: reports the blocks of a pass to its watch, which may cancel it, and asks its limits.
#pragma once

#include "vit/base/run_limits.h"
#include "vit/encoder/block_hook.h"
#include "vit/layers/pass_watch.h"

namespace vit::internal {

class Progress final : public BlockHook {
 public:
  /// `watch` and `limits` may be null. Throws PassCancelled after a block, Cancelled before one.
  Progress(PassWatch* watch, const RunLimits* limits, std::size_t depth)
      : watch_(watch), limits_(limits), depth_(depth) {}

  void before(std::size_t /*layer*/, TensorView<float> /*x*/, AttentionInput& /*input*/) override {
    if (limits_ != nullptr) limits_->check();
  }
  void after(std::size_t layer, TensorView<float> /*x*/) override {
    if (watch_ != nullptr) watch_->add_block(layer + 1, depth_);
  }

 private:
  PassWatch* watch_;
  const RunLimits* limits_;
  std::size_t depth_;
};

}  // namespace vit::internal
