// The tables compiled for instruction sets.
#include "vit/kernels/targets.h"
namespace vit::kernels {
const std::vector<CompiledTarget>& compiled_targets() {
  static const std::vector<CompiledTarget> targets;
  return targets;
}
}  // namespace vit::kernels
