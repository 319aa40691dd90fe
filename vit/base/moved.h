// Objects that were moved from: what they are asked to do is an Error, not a crash.
#pragma once

#include "vit/base/check.h"

namespace vit::internal {

/// Throws Error for an object that was moved from, which has nothing left.
inline void check_not_moved(bool has_left, const Where& where) {
  VIT_CHECK(has_left, where, "this object was moved from");
}

/// What `parts` points to. Throws Error for an object that was moved from.
template <typename Pointer>
auto& parts_of(const Pointer& parts, const Where& where) {
  check_not_moved(parts != nullptr, where);
  return *parts;
}

}  // namespace vit::internal
