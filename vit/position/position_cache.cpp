#include "vit/position/position_cache.h"

namespace vit::internal {

std::shared_ptr<const PositionContext> PositionCache::for_grid(GridSize grid) const {
  constexpr std::size_t kKept = 8;
  const std::lock_guard lock(mutex_);
  for (auto entry = contexts_.begin(); entry != contexts_.end(); ++entry) {
    if ((*entry)->grid() != grid) continue;
    contexts_.splice(contexts_.begin(), contexts_, entry);
    return contexts_.front();
  }
  contexts_.push_front(std::make_shared<const PositionContext>(position_.build_context(grid)));
  if (contexts_.size() > kKept) contexts_.pop_back();
  return contexts_.front();
}

}  // namespace vit::internal
