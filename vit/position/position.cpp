#include "vit/position/position.h"

#include <algorithm>

#include "vit/base/check.h"
#include "vit/base/checked.h"

namespace vit::internal {
using namespace position;

PositionContext Position::build_context(GridSize grid, std::size_t num_steps) const {
  constexpr Where kWhere{"Position", ErrorKind::mismatch};
  checked_add(num_prefix_rows(), checked_mul(num_steps, num_patches(grid), kWhere), kWhere);
  const bool takes_steps = (rope_.has_time() ? rows_.empty() : rows_.has_time()) && relative_.empty() &&
                           window_ == 0 && windows_per_side_ == 0;
  VIT_CHECK(num_steps == 1 || (num_steps > 1 && takes_steps), kWhere, num_steps,
            " steps in time, of positions that have rows and columns only");
  PositionContext context;
  context.sequence_ = {.grid = grid, .num_steps = num_steps};
  if (window_ != 0) context.sequence_.windows = order_by_windows(grid, window_);
  if (windows_per_side_ != 0)
    context.sequence_.windows = order_by_window_count(grid, windows_per_side_, windows_have_tokens_);
  context.rows_ = rows_.of_grid(context.sequence_);
  context.rope_ = rope_.of_grid(context.sequence_);
  context.relative_ = relative_.of_grid(context.sequence_);
  return context;
}

std::shared_ptr<const PositionContext> PositionCache::for_grid(GridSize grid, std::size_t num_steps) const {
  constexpr std::size_t kKept = 8, kMostBytes = std::size_t{1} << 28;
  const std::lock_guard lock(mutex_);
  for (auto entry = contexts_.begin(); entry != contexts_.end(); ++entry) {
    if ((*entry)->grid() != grid || (*entry)->num_steps() != num_steps) continue;
    contexts_.splice(contexts_.begin(), contexts_, entry);
    return contexts_.front();
  }
  contexts_.push_front(std::make_shared<const PositionContext>(position_.build_context(grid, num_steps)));
  std::size_t bytes = 0, fitting = 0;
  for (const auto& context : contexts_) {
    bytes += context->bytes();
    if (fitting == 0 || bytes <= kMostBytes) ++fitting;
  }
  contexts_.resize(std::min({contexts_.size(), kKept, fitting}));
  return contexts_.front();
}

}  // namespace vit::internal
