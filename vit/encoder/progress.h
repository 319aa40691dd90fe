// Progress: reports the blocks of a pass to its watch, which may cancel it.
#pragma once

#include "vit/encoder/block_hook.h"
#include "vit/layers/pass_watch.h"

namespace vit::internal {

class Progress final : public BlockHook {
 public:
  /// `watch` may be null. Throws PassCancelled after a block.
  Progress(PassWatch* watch, std::size_t depth) : watch_(watch), depth_(depth) {}

  void after(std::size_t layer, TensorView<float> /*x*/) override {
    if (watch_ != nullptr) watch_->add_block(layer + 1, depth_);
  }

 private:
  PassWatch* watch_;
  std::size_t depth_;
};

}  // namespace vit::internal
