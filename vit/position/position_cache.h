// PositionCache: the positions of the grids used last, each computed once.
#pragma once

#include <list>
#include <memory>
#include <mutex>

#include "vit/position/position.h"

namespace vit::internal {

/// Safe to use from several threads at once.
class PositionCache {
 public:
  explicit PositionCache(Position position) : position_(std::move(position)) {}

  /// The positions of `grid`, kept for as long as it is among the grids used last. Throws Error if a side of
  /// the grid is zero.
  std::shared_ptr<const PositionContext> for_grid(GridSize grid) const;

 private:
  Position position_;
  mutable std::mutex mutex_;
  mutable std::list<std::shared_ptr<const PositionContext>> contexts_;  // used last first
};

}  // namespace vit::internal
